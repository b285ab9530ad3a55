"""Shortages of resources, one node after the other: what the groups of an explanation are compared with."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from tests.reference.filters import Host

from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import PODS, node_allocatable


def shortages(pod: PodInfo, host: Host) -> dict[str, int]:
    """What is free on the node of each resource that it has too little of; `pods` when it takes none more."""
    has = node_allocatable(host.node)
    free = {name: has.get(name, 0) - sum(each.placed.amounts.get(name, 0) for each in host.pods) for name in has}
    slots = has.get(PODS, 0) - len(host.pods)
    short = {name: free.get(name, 0) for name, asked in pod.requests.amounts.items() if asked > free.get(name, 0)}
    return short | ({PODS: slots} if slots < 1 else {})


def shortage_counts(pod: PodInfo, hosts: Sequence[Host]) -> Counter[frozenset[str]]:
    """How many nodes lack exactly these resources."""
    return Counter(frozenset(short) for host in hosts if (short := shortages(pod, host)))


def smallest_reduction(pod: PodInfo, hosts: Sequence[Host]) -> Fraction | None:
    """The least share of one request by which some node that lacks nothing else and has some left falls short.

    None if there is no such node.
    """
    shares = [
        Fraction(pod.requests.amounts[name] - free, pod.requests.amounts[name])
        for host in hosts
        if len(short := shortages(pod, host)) == 1
        for name, free in short.items()
        if name != PODS and free > 0
    ]
    return min(shares, default=None)
