"""NodeResourcesFragmentation: prefer the node where least becomes useless for the pods that typically come."""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.strategies import NodeResourcesFragmentationArgs
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Scores
from bayplan.framework.status import Normalize, Reads, Traits
from bayplan.plugins.node_resources.node_resources_least_remainder import LargestAmounts, share_of
from bayplan.plugins.node_resources.typical_pods import TypicalPods

_MANY: Final = 2**62
"""More pods than fit on a node."""


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

    @property
    def sign_version(self) -> int:
        self._largest.catch_up()
        self._typical.catch_up()
        return self._largest.version + self._typical.version

    def sign_inputs(self, pod: PodInfo) -> object:
        return (self._largest.version, self._typical.version)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return (self._asked(pod), self._largest.version, self._typical.version)

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
            total += weight * (shares @ share_of(largest, amounts - fit * asked[:, np.newaxis]))
        return total
