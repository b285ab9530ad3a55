"""How full a cluster is, from the scheduler's own node table, and how few nodes could do."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bayplan.cache.node_table import NodeTable
from bayplan.cache.resources import PODS
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
    """Sum up the existing nodes, in Python's integers so that absurd amounts cannot wrap."""
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


def lower_bound_nodes(
    allocatable: Sequence[Mapping[str, int]], demand: Mapping[str, int], pod_count: int, allowed_pods: Iterable[int]
) -> int:
    """Return the fewest nodes whose allocatable covers `demand` in every resource, and whose pod limits cover the pods.

    Per resource the largest nodes are taken first, so no set of fewer nodes has as much. The largest of those numbers
    is the bound: constraints and the shapes of pods can only ask for more. Where all nodes together do not cover the
    demand, all of them count.

    Args:
        allocatable: per node, amounts by resource name.
        demand: the pods' requests summed up, by resource name.
        pod_count: how many pods there are.
        allowed_pods: per node, how many pods it may hold.
    """
    needs = [_largest_first((node.get(name, 0) for node in allocatable), amount) for name, amount in demand.items()]
    return max([*needs, _largest_first(allowed_pods, pod_count)], default=0)


def _largest_first(capacities: Iterable[int], demand: int) -> int:
    count = 0
    for capacity in sorted(capacities, reverse=True):
        if demand <= 0:
            break
        demand -= capacity
        count += 1
    return count
