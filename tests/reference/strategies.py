"""The scores that kube-scheduler does not have, for one pod and one node, in plain integers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isqrt

from tests.reference.filters import Host
from tests.reference.kubernetes_1_16 import used_and_capacity

from bayplan.cache.pod_info import PodInfo


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


def topology_most_allocated(
    pod: PodInfo, hosts: Sequence[Host], host: Host, key: str, weights: Mapping[str, int]
) -> int:
    domain = (host.node.metadata.labels or {}).get(key)
    if domain is None:
        return 0
    members = [each for each in hosts if (each.node.metadata.labels or {}).get(key) == domain]
    total = summed = 0
    for name, weight in weights.items():
        counts = "/" not in name or pod.requests.scoring_amounts.get(name, 0)
        if counts and any(each.allocatable(name) for each in hosts):
            wanted, _ = used_and_capacity(pod, Host(host.node, ()), name)
            capacity = sum(each.allocatable(name) for each in members)
            used = wanted + sum(used_and_capacity(pod, each, name)[0] - wanted for each in members)
            total, summed = total + weight * (100 * min(used, capacity) // max(capacity, 1)), summed + weight
    return total // max(summed, 1)


def typical_pods(pods: Iterable[PodInfo], names: Sequence[str]) -> dict[tuple[int, ...], int]:
    """By what they ask for, how many of a thousand, of pods that came while none was halved."""
    shapes = Counter(tuple(each.requests.amounts.get(name, 0) for name in names) for each in pods if not each.stays)
    shapes = Counter({shape: count for shape, count in shapes.items() if any(shape)})
    return {shape: 1000 * count // shapes.total() for shape, count in shapes.items()}


def fragmentation_decrease(pod: PodInfo, hosts: Sequence[Host], host: Host, weights: Mapping[str, int]) -> int:
    names = list(weights)
    typical = typical_pods([placed for each in hosts for placed in each.pods], names)
    free = [max(host.allocatable(name) - host.requested(name), 0) for name in names]
    asked = [pod.requests.amounts.get(name, 0) for name in names]
    after = [max(has - wanted, 0) for has, wanted in zip(free, asked, strict=True)]
    largest = [max(each.allocatable(name) for each in hosts) for name in names]

    def fragmentation(amounts: Sequence[int]) -> int:
        total = 0
        for shape, share in typical.items():
            fit = min(has // wanted for has, wanted in zip(amounts, shape, strict=True) if wanted)
            for has, wanted, whole, weight in zip(amounts, shape, largest, weights.values(), strict=True):
                total += weight * share * ((has - fit * wanted) * 2**20 // max(whole, 1))
        return total

    return fragmentation(free) - fragmentation(after)
