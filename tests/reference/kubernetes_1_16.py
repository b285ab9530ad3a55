"""How Kubernetes 1.16 scored nodes: whole numbers from 0 to 10, cut at every step.

Sources: pkg/scheduler/algorithm/priorities of release 1.16. Beside each score stands how far it may lie from today's
score divided by ten, by the steps at which each of the two rounds.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from tests.reference.filters import Host

from bayplan.cache.pod_info import PodInfo

Points = Callable[[PodInfo, Host], int]
Rounding = tuple[Fraction, Fraction]
"""Open interval of (1.16's score - today's / 10)."""


def used_and_capacity(pod: PodInfo, host: Host, name: str) -> tuple[int, int]:
    """What would be taken with the pod, and what the node has; cpu and memory with the defaults for scoring."""
    if name == "cpu":
        wanted, taken = pod.requests.scoring_cpu, sum(each.placed.non_zero_cpu for each in host.pods)
    elif name == "memory":
        wanted, taken = pod.requests.scoring_memory, sum(each.placed.non_zero_memory for each in host.pods)
    else:
        wanted, taken = pod.requests.scoring_amounts.get(name, 0), host.requested(name)
    return taken + wanted, host.allocatable(name)


def least_requested(pod: PodInfo, host: Host) -> int:
    return _mean_of_two(pod, host, lambda used, capacity: (capacity - used) * 10 // capacity)


def most_requested(pod: PodInfo, host: Host) -> int:
    return _mean_of_two(pod, host, lambda used, capacity: used * 10 // capacity)


def _mean_of_two(pod: PodInfo, host: Host, points: Callable[[int, int], int]) -> int:
    both = [used_and_capacity(pod, host, name) for name in ("cpu", "memory")]
    return sum(0 if capacity == 0 or used > capacity else points(used, capacity) for used, capacity in both) // 2


REQUESTED_ROUNDING = (Fraction(-2), Fraction(2, 10))
"""Two cuts, of each resource and of the mean: together less than 2 below the true value, and today less than 0.2."""


def balanced_allocation(pod: PodInfo, host: Host) -> int:
    both = [used_and_capacity(pod, host, name) for name in ("cpu", "memory")]
    if any(capacity == 0 or used >= capacity for used, capacity in both):
        return 0
    cpu, memory = (used / capacity for used, capacity in both)
    return int((1 - abs(cpu - memory)) * 10.0)


BALANCED_ROUNDING = (Fraction(-1), Fraction(1, 10))
"""One cut: less than 1 below the true value, and today less than 0.1."""


def requested_to_capacity_ratio(shape: Sequence[tuple[int, int]], weights: Mapping[str, int]) -> Points:
    """The score by a shape of (utilization, points) and the weights of resources."""

    def points(pod: PodInfo, host: Host) -> int:
        total = weight_sum = 0
        for name, weight in weights.items():
            used, capacity = used_and_capacity(pod, host, name)
            utilization = 100 if capacity == 0 or used > capacity else 100 - (capacity - used) * 100 // capacity
            if score := _on_shape(shape, utilization):
                total += score * weight
                weight_sum += weight
        return math.floor(Fraction(total, weight_sum) + Fraction(1, 2)) if weight_sum else 0

    return points


def _on_shape(shape: Sequence[tuple[int, int]], utilization: int) -> int:
    before = None
    for corner in shape:
        if utilization <= corner[0]:
            if before is None:
                return corner[1]
            rise = (corner[1] - before[1]) * (utilization - before[0])
            return before[1] + math.trunc(Fraction(rise, corner[0] - before[0]))
        before = corner
    return shape[-1][1]


RATIO_ROUNDING = (Fraction(-155, 100), Fraction(85, 100))
"""For a shape from 0 to 10 points over the whole range, where no resource is cut to 0 points.

1.16 rounds a utilization up by less than 1 %, which is 0.1 points, cuts each resource by less than 1 and rounds the
mean by at most 0.5: it lies within (-1.5, 0.6) of the true value. Today rounds utilization down by less than 1 %, cuts
by less than 0.1 and rounds by at most 0.05: within (-0.25, 0.05).
"""
