"""What is derived from a node table or from its pods, and read again only where these changed."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import PodChange, Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.scratch_table import ScratchTable

C = TypeVar("C")

PodPredicate = Callable[[PodInfo], int]
"""Whether a pod counts, or with what weight; depends on the pod alone, never on when it is asked."""


class _View(ABC, Generic[C]):
    """One reader's place in one of a table's logs: `catch_up` reads everything at first, then what changed.

    Everything is read again, too, when the table was laid out anew or when the log no longer reaches back far enough.
    """

    _followed: ClassVar[str]
    """The attribute of a table that is the log it follows; read each time, as a scratch table begins new ones."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._layout: int | None = None
        self.read_to = 0
        """Up to where it has read the log."""

    def catch_up(self) -> bool:
        """Take in what changed in the table since the last call; whether anything did."""
        log, layout, position = getattr(self._nodes, self._followed), self._layout, self.read_to
        self._layout, self.read_to = self._nodes.layout, log.position
        changes = None
        if layout == self._layout:
            if position == self.read_to:
                return False
            changes = log.since(position)
        if changes is None:
            self._read_all()
        else:
            self._read(changes)
        return True

    @abstractmethod
    def _read_all(self) -> None:
        """Derive everything anew."""

    def _read(self, changes: C) -> None:
        """Take in some changes; by default everything is derived anew."""
        self._read_all()


class NodeView(_View[Rows]):
    """Follows node objects, for readers that pods do not concern; `_read` gets the rows whose object changed.

    A subclass overrides one of `_read_all` and `_read`, which come down to each other, or both.
    """

    _followed: ClassVar[str] = "objects_changed"

    def _read_all(self) -> None:
        self._start_over()
        self._read(np.arange(self._nodes.capacity))

    def _start_over(self) -> None:
        """Make room for what all rows say, and forget what they said."""


class UsageView(NodeView):
    """Follows nodes and the pods on them; `_read` gets the rows where either changed."""

    _followed: ClassVar[str] = "usage_changed"


class PodView(_View[Sequence[PodChange]]):
    """Follows pods, for readers that count them; `_read` gets those that came, went or look different.

    They come in order, but for large ones, which come at once: a reader must end alike in any order.
    """

    _followed: ClassVar[str] = "pods_changed"

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes)
        nodes.pods_changed.readers.add(self)

    def take(self, change: PodChange) -> None:
        """Take in a change that the log does not keep, before or after those that it does.

        Who is to start over will find the pod as it is then.
        """
        if self._layout == self._nodes.layout:
            self._read((change,))


class MatchingPods(PodView):
    """Counts, per row of a node table, the pods that a predicate holds for; spreading and pod affinity build on it.

    The answer always equals a count from scratch, but only pods that came or went are looked at, and all of them when
    the table was laid out anew.
    """

    def __init__(self, nodes: NodeTable, predicate: PodPredicate) -> None:
        super().__init__(nodes)
        self._predicate = predicate
        self._counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.version = 0
        """Grows whenever `counts` answers differently than before."""

    def counts(self) -> NDArray[np.int64]:
        """The sum of `predicate(pod)` over each row's pods, `(capacity,) int64`; valid until the table changes next.

        The array is kept and changed in place by the next call: do not write to it, copy what must last.
        """
        self.catch_up()
        return self._counts

    def _read_all(self) -> None:
        counted = [sum(map(self._predicate, pods.values())) for pods in self._nodes.pods]
        self._counts = np.array(counted, dtype=np.int64)
        self.version += 1

    def _read(self, changes: Sequence[PodChange]) -> None:
        counts, predicate = self._counts, self._predicate
        for row, before, after in changes:
            grown = (0 if after is None else predicate(after)) - (0 if before is None else predicate(before))
            if grown:
                counts[row] += grown
                self.version += 1


class MatchingPodsOfScratch:
    """Counts as MatchingPods on a scratch table: what `of_source` counts, and the pods that were moved here.

    A moved pod counts where `predicate` holds for it, whether or not `of_source` counts such pods; None counts nobody.
    kube-scheduler counts no terminating pods, and nobody for an empty spread selector, but adds and subtracts all that
    nominations and dry runs of preemption move (upstream: podtopologyspread/filtering.go updateWithPod).
    """

    def __init__(self, scratch: ScratchTable, of_source: MatchingPods | None, predicate: PodPredicate) -> None:
        self._scratch = scratch
        self._of_source = of_source
        self._predicate = predicate
        self._moves_seen = self._changes = 0
        self._moved: dict[int, int] = {}

    @property
    def version(self) -> int:
        """Grows whenever `counts` answers differently than before."""
        return self._changes + (0 if self._of_source is None else self._of_source.version)

    def counts(self) -> NDArray[np.int64]:
        """As in MatchingPods; rows may be below zero."""
        scratch, of_source = self._scratch, self._of_source
        if self._moves_seen != scratch.moves:
            self._moves_seen = scratch.moves
            moved: Counter[int] = Counter()
            for sign, by_row in ((1, scratch.come), (-1, scratch.gone)):
                for row, pods in by_row.items():
                    moved[row] += sign * sum(map(self._predicate, pods.values()))
            self._changes += moved != self._moved
            self._moved = moved
        counts = np.zeros(scratch.capacity, dtype=np.int64) if of_source is None else of_source.counts()
        if any(self._moved.values()):
            counts = counts.copy()
            for row, number in self._moved.items():
                counts[row] += number
        return counts


PodCounts = MatchingPods | MatchingPodsOfScratch
