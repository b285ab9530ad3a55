"""How full the cluster is, from the node table's columns."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.resources import PODS

_HALF = 32
_LOW = (1 << _HALF) - 1


@dataclass(frozen=True, slots=True)
class AllocationSummary:
    """How full the cluster is, for the packing metrics.

    A node is in use when a pod runs there that could run elsewhere (`NodeTable.in_use`). Amounts are by resource
    name, in milli-CPU for cpu and in the resource's own unit (bytes, counts) for the rest; `requested` is the sum over
    all placed pods, `requested_in_use` over those on nodes in use.
    """

    nodes: int
    nodes_in_use: int
    requested: Mapping[str, int]
    requested_in_use: Mapping[str, int]
    allocatable_in_use: Mapping[str, int]
    allocatable: Mapping[str, int]


def allocation_summary(nodes: NodeTable) -> AllocationSummary:
    """What pods take of what existing nodes have, in total and over the nodes in use; metrics and reports show it."""
    in_use = nodes.in_use()
    taken = {**nodes.requested, PODS: nodes.pod_count}
    return AllocationSummary(
        nodes=len(nodes),
        nodes_in_use=int(np.count_nonzero(in_use)),
        requested={name: _sum(column[nodes.exists]) for name, column in taken.items()},
        requested_in_use={name: _sum(column[in_use]) for name, column in taken.items()},
        allocatable_in_use={name: _sum(column[in_use]) for name, column in nodes.allocatable.items()},
        allocatable={name: _sum(column[nodes.exists]) for name, column in nodes.allocatable.items()},
    )


def _sum(column: Column) -> int:
    """The exact sum: a few absurd amounts would wrap int64, their halves do not."""
    return (int((column >> _HALF).sum()) << _HALF) + int((column & _LOW).sum())
