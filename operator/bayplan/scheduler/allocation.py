"""How full the cluster is, from the node table's columns."""

import numpy as np

from bayplan.cache.node_table import NodeTable
from bayplan.cache.resources import PODS
from bayplan.scheduler.observer import AllocationSummary


def allocation_summary(nodes: NodeTable) -> AllocationSummary:
    """What pods take of what existing nodes have, in total and over the nodes in use; metrics and reports show it."""
    in_use = nodes.exists & (nodes.pod_count > 0)
    requested = {name: int(column[nodes.exists].sum()) for name, column in nodes.requested.items()}
    requested[PODS] = int(nodes.pod_count[nodes.exists].sum())
    return AllocationSummary(
        nodes=len(nodes),
        nodes_in_use=int(np.count_nonzero(in_use)),
        requested=requested,
        allocatable_in_use={name: int(column[in_use].sum()) for name, column in nodes.allocatable.items()},
        allocatable={name: int(column[nodes.exists].sum()) for name, column in nodes.allocatable.items()},
    )
