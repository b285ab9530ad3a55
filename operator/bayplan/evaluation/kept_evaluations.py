"""The evaluations that a scheduling cycle keeps between pods, bounded by the bytes they take."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.evaluation import Evaluation
from bayplan.framework.nominated_table import NominatedTable

Key = tuple[int, Hashable, NominatedTable | None]
"""The framework, the pod's signature, and the nominations it respects."""

KEPT_BYTES: Final = 128 * 2**20
"""What evaluations may take together: some 500 plain shapes on 5,000 nodes."""
KEPT_BYTES_PER_NODE: Final = 6 * 2**10
"""What they may take for each row of the table where that is more: some 120 plain shapes on however many nodes.

What is not kept is worked out anew for every pod, which takes the longer the more nodes there are.
"""
KEPT_RULE_BYTES: Final = 32 * 2**20
"""How much of that may be compiled rules and other things worked out of pods, as `PodInfo.size` counts them."""
_LARGE_RULE_BYTES: Final = 2 * 2**20
"""The evaluation of a pod with more than this does not count towards `KEPT_RULE_BYTES`; only the newest is kept."""
_ORDINARY_BYTES: Final = 2**19
"""A pod with more than this is larger than any ordinary one."""
_OBJECT_BYTES: Final = 4 * 2**10
"""What an evaluation takes besides its arrays."""
_MEASURED_EVERY: Final = 4096
"""After so many switches between evaluations, all that were used are measured."""


@dataclass(slots=True, eq=False)
class _Kept:
    evaluation: Evaluation
    rule_bytes: int
    nbytes: int = 0
    """As measured last."""


class KeptEvaluations:
    """The most recently used evaluations; the cycle relies on it to forget those that would take too much memory.

    At least two are kept. What is compiled of pods' rules has a bound of its own, so that nobody can fill the memory
    with pods of thousands of rules, nor push out what other pods need. An evaluation grows after it was put here, when
    rows are first filtered and scored: those used since are measured whenever another is put, and once in a while. A
    table that grew makes all of them start over, so they are dropped.
    """

    def __init__(self, nodes: NodeTable, limit: int | None = None) -> None:
        self._nodes = nodes
        self._most = limit
        self._layout = nodes.layout
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._used: set[_Kept] = set()
        self._last: _Kept | None = None
        self._gets = 0
        self._total = self._rule_bytes = 0
        self._large: Key | None = None
        self._table_bytes: dict[NominatedTable, int] = {}

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def limit(self) -> int:
        """What all that is kept may take, in bytes."""
        return max(KEPT_BYTES, KEPT_BYTES_PER_NODE * self._nodes.capacity) if self._most is None else self._most

    def measure(self) -> int:
        """Measure what was used since the last time. Returns what all that is kept takes, in bytes.

        The nominated pods that evaluations see are counted in.
        """
        for kept in self._used:
            now = _OBJECT_BYTES + kept.rule_bytes + kept.evaluation.nbytes
            self._total += now - kept.nbytes
            kept.nbytes = now
        # The last one may not have been filtered and scored yet.
        self._used = set() if self._last is None else {self._last}
        self._gets = 0
        return self._total + sum(self._table_bytes.values())

    def get(self, key: Key) -> Evaluation | None:
        """The evaluation under `key`, now the most recently used one; one that is not whole is dropped."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if not kept.evaluation.is_whole:
            self._drop([key])
            return None
        if kept is self._last:
            return kept.evaluation
        if self._layout != self._nodes.layout:
            self._layout = self._nodes.layout
            self._drop(list(self._kept))
            return None
        self._last = kept
        self._kept.move_to_end(key)
        self._used.add(kept)
        self._gets += 1
        if self._gets > _MEASURED_EVERY:
            self._shrink()
        return kept.evaluation

    def put(self, key: Key, evaluation: Evaluation, pod: PodInfo) -> None:
        """Keep an evaluation made for `pod`, and forget the least recently used ones that are too many."""
        rule_bytes = pod.size
        if rule_bytes > _LARGE_RULE_BYTES:
            if self._large is not None:
                self._drop([self._large])
            self._large, rule_bytes = key, 0
        kept = self._kept[key] = self._last = _Kept(evaluation, rule_bytes)
        self._rule_bytes += rule_bytes
        self._used.add(kept)
        nominated = key[2]
        if nominated is not None and nominated not in self._table_bytes:
            self._table_bytes[nominated] = nominated.nbytes
        self._shrink()

    def forget_nominated(self, nominated: NominatedTable) -> None:
        """Drop what is kept for pods that saw these nominations, which are gone."""
        self._drop([key for key in self._kept if key[2] is nominated])
        self._table_bytes.pop(nominated, None)

    def forget_large(self) -> None:
        """Drop what is kept for pods that are larger than any ordinary one."""
        self._drop([key for key, kept in self._kept.items() if key == self._large or kept.rule_bytes > _ORDINARY_BYTES])

    def _shrink(self) -> None:
        while len(self) > 2 and (self._rule_bytes > KEPT_RULE_BYTES or self.measure() > self.limit):
            self._drop([next(iter(self._kept))])

    def _drop(self, keys: list[Key]) -> None:
        for key in keys:
            kept = self._kept.pop(key)
            self._used.discard(kept)
            if kept is self._last:
                self._last = None
            if key == self._large:
                # The key holds the nominations that its pod saw, and these a table of all pods.
                self._large = None
            self._total -= kept.nbytes
            self._rule_bytes -= kept.rule_bytes
