"""NodeResourcesFragmentation: prefer the node where least becomes useless for the pods that typically come."""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import PodChange, Rows
from bayplan.cache.incremental_view import PodView
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.config.bayplan_args import NodeResourcesFragmentationArgs
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Scores
from bayplan.framework.status import Normalize, Reads, Traits
from bayplan.plugins.node_resources.node_resources_least_remainder import LargestAmounts, part_of_largest

MOST_SHAPES: Final = 64
"""How many different requests are counted; a rare one gives its place to a new one."""
MOST_GONE: Final = 8192
"""So many pods are known again that came back, with a node that was away or after a bind that failed: 1 MiB."""
_ONE: Final = 2**20
"""What a pod counts when it comes, so that it can be halved twenty times."""
_THOUSAND: Final = 1000

Shape = tuple[int, ...]

_MANY: Final = 2**62
"""More pods than fit on a node."""


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


class NodeResourcesFragmentation:
    """Scores how little a node's fragmentation grows with the pod, from 0 for most growth to 100 for least.

    A node's fragmentation by a shape is what of its free resources would be left with as many pods of that shape as
    fit, each resource as a share of the largest node's, by its weight. The expected one is the mean over the typical
    pods. Source: fragmentation gradient descent, Weng et al., Beware of Fragmentation, USENIX ATC 2023, section 4,
    where a node counts as whole as soon as one pod fits; here any resource counts, and nodes take many pods.
    """

    name: ClassVar[str] = "NodeResourcesFragmentation"
    traits: ClassVar[Traits] = Traits(reads=Reads.USAGE, normalize=Normalize.CUSTOM)

    def __init__(self, args: NodeResourcesFragmentationArgs, nodes: NodeTable) -> None:
        self._names = tuple(each.name for each in args.resources)
        self._weights = tuple(each.weight for each in args.resources)
        self._largest = LargestAmounts(nodes, self._names)
        self._typical = TypicalPods(nodes, self._names, args.half_life_pods)

    def sign_inputs(self, pod: PodInfo) -> object:
        self._largest.catch_up()
        self._typical.catch_up()
        return (self._largest.amounts, self._typical.version)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return (self._asked(pod), self._largest.amounts, self._typical.version)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        free = np.array([np.maximum(nodes.offered(name)[rows] - nodes.taken(name)[rows], 0) for name in self._names])
        asked = np.array(self._asked(pod), dtype=np.int64)[:, np.newaxis]
        return self._fragmentation(free) - self._fragmentation(np.maximum(free - asked, 0))

    def normalize_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows, scores: Scores) -> Scores:
        if not len(scores):
            return scores
        least, most = int(scores.min()), int(scores.max())
        normalised: Scores = (scores - least) * MAX_NODE_SCORE // max(most - least, 1)
        return normalised

    def _asked(self, pod: PodInfo) -> Sequence[int]:
        return tuple(pod.requests.amounts.get(name, 0) for name in self._names)

    def _fragmentation(self, free: NDArray[np.int64]) -> Scores:
        """The expected fragmentation of nodes with so much free, `(resources, rows) int64`; `(rows,) int64`."""
        shapes, shares = self._typical.shapes, self._typical.shares
        fit = np.full((len(shapes), free.shape[1]), _MANY, dtype=np.int64)
        for asked, amounts in zip(shapes.T, free, strict=True):
            of_each = amounts // np.maximum(asked, 1)[:, np.newaxis]
            np.minimum(fit, np.where(asked[:, np.newaxis] > 0, of_each, _MANY), out=fit)
        total = np.zeros(free.shape[1], dtype=np.int64)
        parts = zip(shapes.T, free, self._weights, self._largest.amounts, strict=True)
        for asked, amounts, weight, largest in parts:
            total += weight * (shares @ part_of_largest(largest, amounts - fit * asked[:, np.newaxis]))
        return total
