"""NodeResourcesBalancedAllocation as Kubernetes 1.16 had it: by the balance a node has once the pod is there."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import is_scalar
from bayplan.config.types import NodeResourcesBalancedAllocationArgs
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Scores
from bayplan.framework.status import SUCCESS, Reads, Status, Traits
from bayplan.plugins.node_resources.resource_scoring import ResourceColumns, resource_columns


class ResultingBalance:
    """Scores `100 * (1 - spread)`, with the spread between the least and the most used resource; 0 where one is full.

    Source: pkg/scheduler/algorithm/priorities/balanced_resource_allocation.go of release 1.16, there on 0..10 and for
    cpu and memory. As there, containers that request none of these count with what scores take for them, and a node
    that lacks one of them scores 0.
    """

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    traits: ClassVar[Traits] = Traits(reads=Reads.USAGE)

    def __init__(self, args: NodeResourcesBalancedAllocationArgs) -> None:
        self._resources = args.resources

    def sign_pod(self, pod: PodInfo) -> Hashable:
        requests = pod.requests
        others = tuple(requests.scoring_amounts.get(each.name, 0) for each in self._resources)
        return (requests.scoring_cpu, requests.scoring_memory, others)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        columns = self._columns(pod, nodes)
        if not columns:
            return np.zeros(len(rows), dtype=np.int64)
        lowest, highest = np.ones(len(rows)), np.zeros(len(rows))
        for column in columns:
            used, allocatable = column.on(rows)
            fraction = np.where(allocatable > 0, used / np.maximum(allocatable, 1), 1.0)
            lowest, highest = np.minimum(lowest, fraction), np.maximum(highest, fraction)
        balance = (1 - (highest - lowest)) * float(MAX_NODE_SCORE)
        scores: Scores = np.where(highest < 1, balance, 0.0).astype(np.int64)
        return scores

    def score_few(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> list[int]:
        columns = self._columns(pod, nodes)
        scores: list[int] = []
        for row in rows:
            fractions = []
            for column in columns:
                used, allocatable = column.on_row(row)
                fractions.append(float(used) / float(allocatable) if allocatable > 0 else 1.0)
            full = max(fractions, default=1.0) >= 1
            scores.append(0 if full else int((1 - (max(fractions) - min(fractions))) * float(MAX_NODE_SCORE)))
        return scores

    def _columns(self, pod: PodInfo, nodes: NodeTable) -> list[ResourceColumns]:
        """Give what counts, extended resources for pods that want them; nothing where one of these is on no node."""
        wanted = pod.requests.scoring_amounts
        names = [each.name for each in self._resources if not is_scalar(each.name) or wanted.get(each.name, 0)]
        if any(nodes.allocatable.get(name) is None for name in names):
            return []
        return resource_columns(self._resources, pod, nodes)
