"""How few nodes could do: a bound that no placement beats."""

from collections.abc import Iterable, Mapping, Sequence


def lower_bound_nodes(
    allocatable: Sequence[Mapping[str, int]], demand: Mapping[str, int], pod_count: int, allowed_pods: Iterable[int]
) -> int:
    """The fewest nodes whose allocatable covers `demand` in every resource, and whose pod limits cover the pods.

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
