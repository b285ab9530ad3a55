"""What pods typically ask for, learnt from those that came of late."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import PodChange
from bayplan.cache.incremental_view import PodView
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed

MOST_SHAPES: Final = 64
"""How many different requests are counted; a rare one gives its place to a new one."""
MOST_GONE: Final = 8192
"""So many pods are known again that came back, with a node that was away or after a bind that failed: 1 MiB."""
_ONE: Final = 2**20
"""What a pod counts when it comes, so that it can be halved twenty times."""
_THOUSAND: Final = 1000

Shape = tuple[int, ...]


class TypicalPods(PodView):
    """Counts what pods that were placed ask for of some resources; after each `half_life` pods all counts are halved.

    It begins with the pods that run, and keeps what it learnt when the table is laid out anew. A pod that comes back,
    as with its node, counts once. Pods that ask for none of the resources do not count, nor those of DaemonSets.
    `shapes`, `(shapes, resources) int64`, and their `shares`, `(shapes,) int64` of a thousand, are settled anew only
    now and then, as all that was scored by them is scored again then; `version` grows with it.
    """

    def __init__(self, nodes: NodeTable, names: Sequence[str], half_life: int) -> None:
        super().__init__(nodes)
        self._names = tuple(names)
        self._half_life = half_life
        self._counts: dict[Shape, int] = {}
        self._gone: RecentlyUsed[str, bool] = RecentlyUsed(MOST_GONE)
        """The UIDs of pods that left a node of late."""
        self._counted = 0
        self._settle_at = 1
        self.shapes: NDArray[np.int64] = np.zeros((0, len(self._names)), dtype=np.int64)
        self.shares: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.version = 0

    def _read_all(self) -> None:
        if self._counted:
            # The table grew, or its log was cut: what was learnt says more than what runs now.
            return
        for pods in self._nodes.pods:
            for pod in pods.values():
                self._count(pod)
        self._settle()

    def _read(self, changes: Sequence[PodChange]) -> None:
        for _, before, after in changes:
            if before is not None and after is None:
                self._gone.put(before.uid, True)
            elif before is None and after is not None and not self._gone.get(after.uid):
                self._count(after)
        if self._counted >= self._settle_at:
            self._settle()

    def _count(self, pod: PodInfo) -> None:
        shape = tuple(pod.requests.amounts.get(name, 0) for name in self._names)
        if pod.stays or not any(shape):
            return
        counts = self._counts
        if shape not in counts and len(counts) >= MOST_SHAPES:
            # It takes over the count of the rarest, so that what is frequent stays (Metwally: Space-Saving).
            counts[shape] = counts.pop(min(counts, key=counts.__getitem__))
        counts[shape] = counts.get(shape, 0) + _ONE
        self._counted += 1
        if self._counted % self._half_life == 0:
            self._counts = {each: count // 2 for each, count in counts.items() if count > 1}

    def _settle(self) -> None:
        # Twice as many at first, later four times in a half-life.
        self._settle_at = self._counted + min(max(self._counted, 1), max(self._half_life // 4, 1))
        total = sum(self._counts.values())
        kept = sorted((each, count * _THOUSAND // total) for each, count in self._counts.items())
        self.shapes = np.array([each for each, _ in kept], dtype=np.int64).reshape(len(kept), len(self._names))
        self.shares = np.array([share for _, share in kept], dtype=np.int64)
        self.version += 1
