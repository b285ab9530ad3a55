"""TopologyMostAllocated: fill a rack or a zone before the next one is begun."""

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.strategies import TopologyMostAllocatedArgs
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Scores
from bayplan.framework.status import Reads, Traits
from bayplan.plugins.node_resources.resource_scoring import resource_columns

_MOST: Final = 2.0**56
"""A hundred times this is within int64. Sums up to 2**53 are exact, and more is in no domain there is."""


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
            allocatable = np.bincount(ids, column.allocatable, domains)
            taken = np.zeros(domains) if column.taken is None else np.bincount(ids, column.taken, domains)
            used = np.minimum(taken + column.wanted, np.minimum(allocatable, _MOST)).astype(np.int64)
            has = np.maximum(np.minimum(allocatable, _MOST), 1.0).astype(np.int64)
            total += column.weight * (used * MAX_NODE_SCORE // has)
            weights += column.weight
        # Place 0 is of nodes without the label.
        total[0] = 0
        return (total // max(weights, 1))[ids[rows]]
