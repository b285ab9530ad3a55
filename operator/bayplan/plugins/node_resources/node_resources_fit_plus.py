"""NodeResourcesFitPlus: for each resource that the pod asks for, prefer full or empty nodes."""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.bayplan_args import AllocationType, NodeResourcesFitPlusArgs, WeightedResource
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Scores
from bayplan.framework.status import Reads, ResourceScore, Traits
from bayplan.plugins.node_resources.resource_scoring import ResourceColumns, resource_columns, what_counts


class NodeResourcesFitPlus:
    """Scores by a strategy and a weight for each resource; only what the pod asks for counts, else all score 100.

    The same arguments and formulas as koordinator's plugin of that name (pkg/scheduler/plugins/noderesourcefitplus),
    which kubernetes-sigs/scheduler-plugins was offered as well.
    """

    name: ClassVar[str] = "NodeResourcesFitPlus"
    traits: ClassVar[Traits] = Traits(reads=Reads.USAGE)

    def __init__(self, args: NodeResourcesFitPlusArgs) -> None:
        self._resources = [WeightedResource(name, each.weight) for name, each in args.resources.items()]
        self._least = {name for name, each in args.resources.items() if each.type is AllocationType.LEAST_ALLOCATED}

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return what_counts(pod, self._resources)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        total = np.zeros(len(rows), dtype=np.int64)
        for column in self._columns(pod, nodes):
            after, allocatable = column.on(rows)
            share = np.minimum(after, allocatable)
            share = allocatable - share if column.name in self._least else share
            total += column.weight * (share * MAX_NODE_SCORE // np.maximum(allocatable, 1))
        # Also what no node has counts: kept scores must not depend on other nodes.
        weights = sum(each.weight for each in self._resources if pod.requests.amounts.get(each.name, 0))
        return total // weights if weights else total + MAX_NODE_SCORE

    def resource_scores(self, pod: PodInfo, nodes: NodeTable, row: int) -> list[ResourceScore]:
        scores: list[ResourceScore] = []
        for column in self._columns(pod, nodes):
            after, allocatable = column.on_row(row)
            if allocatable > 0:
                share = min(after, allocatable)
                share = allocatable - share if column.name in self._least else share
                scores.append(column.told(row, share * MAX_NODE_SCORE // allocatable))
        return scores

    def _columns(self, pod: PodInfo, nodes: NodeTable) -> list[ResourceColumns]:
        asked = [each for each in self._resources if pod.requests.amounts.get(each.name, 0)]
        return resource_columns(asked, pod, nodes)
