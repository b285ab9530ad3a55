"""The scores that kube-scheduler does not have, for one pod and one node, in plain integers."""

from collections.abc import Mapping, Sequence
from math import isqrt

from tests.reference.filters import Host
from tests.reference.kubernetes_1_16 import used_and_capacity

from bayplan.cache.pod_info import PodInfo


def fit_plus(pod: PodInfo, host: Host, resources: Mapping[str, tuple[str, int]]) -> int:
    """By the name of each resource its strategy and weight."""
    total = weights = 0
    for name, (kind, weight) in resources.items():
        if pod.requests.amounts.get(name, 0) and host.allocatable(name):
            used, capacity = used_and_capacity(pod, host, name)
            part = min(used, capacity) if kind == "MostAllocated" else max(capacity - used, 0)
            total, weights = total + weight * (100 * part // capacity), weights + weight
    return total // weights if weights else 100


def scarce_resource_avoidance(pod: PodInfo, host: Host, scarce: Sequence[str]) -> int:
    kinds = {name for name, amount in (host.node.status.allocatable or {}).items() if int(amount) and name != "pods"}
    unused = kinds - {name for name, amount in pod.requests.amounts.items() if amount}
    kept = unused & set(scarce)
    return 100 * len(unused - kept) // len(unused) if kept else 100


def least_remainder(pod: PodInfo, hosts: Sequence[Host], host: Host, weights: Mapping[str, int]) -> int:
    """The score before it is compared with the largest; less is better."""
    total = 0
    for name, weight in weights.items():
        largest = max(each.allocatable(name) for each in hosts)
        used, capacity = used_and_capacity(pod, host, name)
        total += weight * (max(capacity - used, 0) * 2**20 // max(largest, 1))
    return isqrt(total // sum(weights.values()))
