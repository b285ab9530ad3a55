"""NodeResourcesLeastRemainder: prefer the node on which the pod leaves least, in absolute amounts."""

from collections.abc import Hashable, Iterator
from typing import ClassVar, Final

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import NodeView
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.bayplan_args import NodeResourcesLeastRemainderArgs
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Scores
from bayplan.framework.status import Normalize, Reads, ResourceScore, Traits
from bayplan.plugins.node_resources.resource_scoring import ResourceColumns, resource_columns

SHARE_BITS: Final = 20
"""A share of the largest node is told in 2**20 parts."""
_LARGEST_BITS: Final = 62 - SHARE_BITS
"""Amounts with more bits lose the lowest, so that no product leaves int64."""


class LargestAmounts(NodeView):
    """How much of each resource the node has that has most of it; remainders of different resources compare by that."""

    def __init__(self, nodes: NodeTable, names: tuple[str, ...]) -> None:
        super().__init__(nodes)
        self.names = names
        self.amounts: tuple[int, ...] = (0,) * len(names)

    def _read_all(self) -> None:
        self.amounts = tuple(int(self._nodes.offered(name).max()) for name in self.names)


def part_of_largest(largest: int, amounts: Scores) -> Scores:
    """Return amounts of 0 or more as shares of `largest`, of any shape, in 0..2**20 for those that are no larger."""
    cut = max(largest.bit_length() - _LARGEST_BITS, 0)
    return (amounts >> cut << SHARE_BITS) // max(largest >> cut, 1)


class NodeResourcesLeastRemainder:
    """Scores `100 * (1 - root / largest root)`, of the mean of what remains as shares of the largest node's amounts.

    The root tells small remainders apart, which a share of the largest would make equal. Also resources count that the
    pod does not ask for, so that a node that is left with idle GPUs comes late. The largest is that of all feasible
    nodes. What the best fit of a bin is: Weng et al., Beware of Fragmentation, USENIX ATC 2023, section 6.
    """

    name: ClassVar[str] = "NodeResourcesLeastRemainder"
    traits: ClassVar[Traits] = Traits(reads=Reads.USAGE, normalize=Normalize.REVERSE)

    def __init__(self, args: NodeResourcesLeastRemainderArgs, nodes: NodeTable) -> None:
        self._resources = args.resources
        self._largest = LargestAmounts(nodes, tuple(each.name for each in args.resources))

    def sign_inputs(self, pod: PodInfo) -> object:
        self._largest.catch_up()
        return self._largest.amounts

    def sign_pod(self, pod: PodInfo) -> Hashable:
        requests = pod.requests
        asked = tuple(requests.scoring_amounts.get(each.name, 0) for each in self._resources)
        return (requests.scoring_cpu, requests.scoring_memory, asked, self._largest.amounts)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        total = np.zeros(len(rows), dtype=np.int64)
        for column, largest in self._columns(pod, nodes):
            total += column.weight * _remaining(column, largest, rows)
        mean = total // sum(each.weight for each in self._resources)
        return np.sqrt(mean).astype(np.int64)

    def resource_scores(self, pod: PodInfo, nodes: NodeTable, row: int) -> list[ResourceScore]:
        scores: list[ResourceScore] = []
        for column, largest in self._columns(pod, nodes):
            if column.allocatable.item(row) > 0:
                left = int(_remaining(column, largest, np.array([row]))[0])
                scores.append(column.told(row, MAX_NODE_SCORE - (MAX_NODE_SCORE * left >> SHARE_BITS)))
        return scores

    def _columns(self, pod: PodInfo, nodes: NodeTable) -> Iterator[tuple[ResourceColumns, int]]:
        """Give each resource that some node has, and how much of it the node has that has most."""
        largest = dict(zip(self._largest.names, self._largest.amounts, strict=True))
        for column in resource_columns(self._resources, pod, nodes, asked_only=False):
            yield column, largest[column.name]


def _remaining(column: ResourceColumns, largest: int, rows: Rows) -> Scores:
    """What remains of a resource as a share of the largest node's, `(rows,) int64` in 0..2**20."""
    after, allocatable = column.on(rows)
    return part_of_largest(largest, np.maximum(allocatable - after, 0))
