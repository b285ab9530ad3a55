"""How full a cluster is, from the scheduler's own node table."""

from dataclasses import dataclass

from bayplan.cache.node_table import NodeTable
from bayplan.cache.resources import PODS
from bayplan.simulate.bounds import lower_bound_nodes
from bayplan.simulate.report import Allocation


@dataclass(frozen=True, slots=True)
class ClusterUse:
    """What the nodes of a table hold."""

    nodes_in_use: int
    lower_bound_nodes: int
    pods_on_unknown_nodes: int
    allocation: dict[str, Allocation]
    """By resource name, in alphabetical order; `pods` counts pods."""


def cluster_use(nodes: NodeTable) -> ClusterUse:
    """Sums over the existing nodes, in Python's integers so that absurd amounts cannot wrap."""
    rows = nodes.rows()
    pod_counts = nodes.pod_count[rows].tolist()
    allowed = nodes.allowed_pods[rows].tolist()
    in_use = [count > 0 for count in pod_counts]
    allocation: dict[str, Allocation] = {}
    demand: dict[str, int] = {}
    per_node: list[dict[str, int]] = [{} for _ in pod_counts]
    for name, taken in sorted(nodes.requested.items()):
        offered = nodes.allocatable[name][rows].tolist()
        demand[name] = sum(taken[rows].tolist())
        for node, amount in zip(per_node, offered, strict=True):
            node[name] = amount
        used = sum(amount for amount, used in zip(offered, in_use, strict=True) if used)
        allocation[name] = Allocation(demand[name], sum(offered), used)
    for row in rows.tolist():
        # No number of nodes covers a resource that none has.
        demand |= {n: a for pod in nodes.pods[row].values() for n, a in pod.placed.amounts.items() if n not in demand}
    pods = sum(pod_counts)
    allocation[PODS] = Allocation(pods, sum(allowed), sum(a for a, used in zip(allowed, in_use, strict=True) if used))
    return ClusterUse(
        nodes_in_use=sum(in_use),
        lower_bound_nodes=lower_bound_nodes(per_node, demand, pods, allowed),
        pods_on_unknown_nodes=sum(map(len, nodes.pods)) - pods,
        allocation=dict(sorted(allocation.items())),
    )
