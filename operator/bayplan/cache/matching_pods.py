"""How many pods of each row match something, recounted only where pods came or went."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.row_follower import RowFollower

PodPredicate = Callable[[PodInfo], int]
"""Whether a pod counts, or with what weight; depends on the pod alone, never on when it is asked."""


class MatchingPods:
    """Counts, per row of a node table, the pods that a predicate holds for; spreading and pod affinity build on it.

    Each reader keeps its own. The answer always equals a count from scratch: a row is recounted when its pods or its
    node changed, all rows when the table was laid out anew. Rows without a node object count their pods too, so
    readers mask with `NodeTable.exists` where that matters.
    """

    __slots__ = ("__weakref__", "_counts", "_follower", "_nodes", "_predicate", "version")

    def __init__(self, nodes: NodeTable, predicate: PodPredicate) -> None:
        self._nodes = nodes
        self._predicate = predicate
        self._follower = RowFollower(nodes)
        self._counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.version = 0
        """Grows whenever `counts` answers differently than before."""

    def counts(self) -> NDArray[np.int64]:
        """The sum of `predicate(pod)` over each row's pods, `(capacity,) int64`; valid until the table changes next.

        The array is kept and changed in place by the next call: do not write to it, copy what must last.
        """
        change = self._follower.follow()
        pods, predicate = self._nodes.pods, self._predicate
        if change.everything:
            self._counts = np.array([sum(map(predicate, on_row.values())) for on_row in pods], dtype=np.int64)
            self.version += 1
            return self._counts
        counts = self._counts
        for row in change.usage.tolist():
            count = sum(map(predicate, pods[row].values()))
            if count != counts[row]:
                counts[row] = count
                self.version += 1
        return counts
