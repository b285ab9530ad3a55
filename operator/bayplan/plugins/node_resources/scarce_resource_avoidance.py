"""ScarceResourceAvoidance: keep nodes with scarce resources for the pods that ask for these."""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import PODS
from bayplan.config.bayplan_args import ScarceResourceAvoidanceArgs
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Scores
from bayplan.framework.status import Reads, Traits


class ScarceResourceAvoidance:
    """Scores `100 * (unused - scarce) / unused` over the kinds of resources that a node has and the pod leaves unused.

    100 where none of these is scarce. The same arguments and formula as koordinator's plugin of that name
    (pkg/scheduler/plugins/scarceresourceavoidance).
    """

    name: ClassVar[str] = "ScarceResourceAvoidance"
    traits: ClassVar[Traits] = Traits(reads=Reads.NODE)

    def __init__(self, args: ScarceResourceAvoidanceArgs) -> None:
        self._scarce = frozenset(args.resources)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return frozenset(name for name, amount in pod.requests.amounts.items() if amount)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        unused = np.zeros(len(rows), dtype=np.int64)
        scarce = np.zeros(len(rows), dtype=np.int64)
        for name, column in nodes.allocatable.items():
            if name != PODS and not pod.requests.amounts.get(name, 0):
                there_is = column[rows] > 0
                unused += there_is
                if name in self._scarce:
                    scarce += there_is
        return np.where(scarce, (unused - scarce) * MAX_NODE_SCORE // np.maximum(unused, 1), MAX_NODE_SCORE)
