"""The evaluations that a scheduling cycle keeps between pods, bounded by the bytes they take."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

import msgspec

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.evaluation import Evaluation
from bayplan.framework.nominated_table import NominatedTable

Key = tuple[int, Hashable, NominatedTable | None]
"""The framework, the pod's signature, and the nominations it sees."""

KEPT_BYTES: Final = 128 * 2**20
"""What evaluations may take together: some 500 plain shapes on 5,000 nodes."""
_OBJECT_BYTES: Final = 10 * 2**10
"""What an evaluation takes besides its arrays."""
_RULE_BYTES: Final = 10
"""What compiled rules take, per byte of the pod's spec as JSON: they matter for pods with thousands of rules."""
_MEASURED_EVERY: Final = 4096


class KeptEvaluations:
    """The most recently used evaluations; the cycle relies on it to forget those that would take too much memory.

    At least two are kept. A pod with a megabyte of rules counts as much as a hundred plain ones, so that nobody can
    fill the memory with shapes. An evaluation grows after it was put here, when rows are first filtered and scored:
    those used since are measured whenever another is put, and once in a while. A table that grew makes all of them
    start over, so they are dropped.
    """

    def __init__(self, nodes: NodeTable, limit: int = KEPT_BYTES) -> None:
        self._nodes = nodes
        self._limit = limit
        self._layout = nodes.layout
        self._evaluations: OrderedDict[Key, Evaluation] = OrderedDict()
        self._rule_bytes: dict[Evaluation, int] = {}
        self._measured: dict[Evaluation, int] = {}
        self._used: set[Evaluation] = set()
        self._last: Evaluation | None = None
        self._gets = 0
        self._total = 0
        self._table_bytes: dict[NominatedTable, int] = {}

    def __len__(self) -> int:
        return len(self._evaluations)

    @property
    def nbytes(self) -> int:
        """What is kept takes, in bytes, with the nominated pods that evaluations see."""
        for evaluation in self._used:
            now = _OBJECT_BYTES + self._rule_bytes[evaluation] + evaluation.nbytes
            self._total += now - self._measured.get(evaluation, 0)
            self._measured[evaluation] = now
        # The last one may not have been filtered and scored yet.
        self._used = set() if self._last is None else {self._last}
        self._gets = 0
        return self._total + sum(self._table_bytes.values())

    def get(self, key: Key) -> Evaluation | None:
        """The evaluation under `key`, now the most recently used one."""
        evaluation = self._evaluations.get(key)
        if evaluation is None or evaluation is self._last:
            return evaluation
        if self._layout != self._nodes.layout:
            self._layout = self._nodes.layout
            self._drop(list(self._evaluations))
            return None
        self._last = evaluation
        self._evaluations.move_to_end(key)
        self._used.add(evaluation)
        self._gets += 1
        if self._gets > _MEASURED_EVERY:
            self._shrink()
        return evaluation

    def put(self, key: Key, evaluation: Evaluation, pod: PodInfo) -> None:
        """Keep an evaluation made for `pod`, and forget the least recently used ones that are too many."""
        self._evaluations[key] = evaluation
        self._rule_bytes[evaluation] = _RULE_BYTES * len(msgspec.json.encode(pod.pod.spec))
        self._used.add(evaluation)
        self._last = evaluation
        seen = key[2]
        if seen is not None and seen not in self._table_bytes:
            self._table_bytes[seen] = seen.nbytes
        self._shrink()

    def forget(self, framework: int, signature: Hashable) -> None:
        """Drop what is kept for a shape, whatever nominations it saw."""
        self._drop([key for key in self._evaluations if key[:2] == (framework, signature)])

    def forget_nominated(self, seen: NominatedTable) -> None:
        """Drop what is kept for pods that saw these nominations, which are gone."""
        self._drop([key for key in self._evaluations if key[2] is seen])
        self._table_bytes.pop(seen, None)

    def _shrink(self) -> None:
        while self.nbytes > self._limit and len(self) > 2:
            self._drop([next(iter(self._evaluations))])

    def _drop(self, keys: list[Key]) -> None:
        for key in keys:
            evaluation = self._evaluations.pop(key)
            self._used.discard(evaluation)
            if evaluation is self._last:
                self._last = None
            self._total -= self._measured.pop(evaluation, 0)
            del self._rule_bytes[evaluation]
