"""TopologyMostAllocated: fill a rack or a zone before the next one is begun."""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.bayplan_args import TopologyMostAllocatedArgs
from bayplan.framework.interface import CycleState, Scores
from bayplan.framework.status import Reads, Traits
from bayplan.plugins.node_resources.resource_scoring import domain_shares, resource_columns, sums_of


class TopologyMostAllocated:
    """Scores by how much of a node's whole domain is allocated with the pod: the mean over resources by weight.

    As MostAllocated, with the domain as the node. A node without the label scores 0.
    """

    name: ClassVar[str] = "TopologyMostAllocated"
    traits: ClassVar[Traits] = Traits(reads=Reads.CLUSTER)

    def __init__(self, args: TopologyMostAllocatedArgs, index: NodeIndex) -> None:
        self._key = args.topology_key
        self._resources = args.resources
        self._labels = index.labels

    def sign_pod(self, pod: PodInfo) -> Hashable:
        # What reads the cluster is asked about every pod itself.
        return ()

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        ids = self._labels.column(self._key).ids
        domains = int(ids.max()) + 1
        total = np.zeros(domains, dtype=np.int64)
        weights = 0
        for column in resource_columns(self._resources, pod, nodes):
            taken = np.zeros(domains) if column.taken is None else sums_of(ids, column.taken, domains)
            share, _ = domain_shares(taken + column.wanted, sums_of(ids, column.allocatable, domains))
            total += column.weight * share
            weights += column.weight
        # Place 0 is of nodes without the label.
        total[0] = 0
        return (total // max(weights, 1))[ids[rows]]
