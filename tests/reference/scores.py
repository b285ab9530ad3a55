"""The raw score of each plugin for one pod and one node, and how raw scores become 0..100."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from tests.reference.filters import Host, term_holds, tolerated
from tests.reference.kubernetes_1_16 import used_and_capacity

from bayplan.api.objects import PreferredSchedulingTerm
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import (
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
)

_MIB = 1024 * 1024
_NATIVE = ("cpu", "memory", "ephemeral-storage")


def taint_toleration(pod: PodInfo, host: Host) -> int:
    tolerations = [each for each in pod.pod.spec.tolerations or [] if each.effect in ("", "PreferNoSchedule")]
    taints = [taint for taint in host.node.spec.taints or [] if taint.effect == "PreferNoSchedule"]
    return len([taint for taint in taints if not tolerated(taint, tolerations)])


def node_affinity(pod: PodInfo, host: Host, args: NodeAffinityArgs) -> int:
    return sum(term.weight for term in preferred_terms(pod, args) if term_holds(term.preference, host))


def preferred_terms(pod: PodInfo, args: NodeAffinityArgs) -> list[PreferredSchedulingTerm]:
    own = pod.pod.spec.affinity and pod.pod.spec.affinity.node_affinity
    terms: list[PreferredSchedulingTerm] = []
    for affinity in (own, args.added_affinity):
        if affinity is not None:
            terms += affinity.preferred_during_scheduling_ignored_during_execution or []
    return terms


def node_resources_fit(pod: PodInfo, host: Host, args: NodeResourcesFitArgs) -> int:
    if args.scoring_strategies:
        return sum(each.weight * by_strategy(pod, host, each.strategy) for each in args.scoring_strategies)
    return by_strategy(pod, host, args.scoring_strategy)


def by_strategy(pod: PodInfo, host: Host, strategy: ScoringStrategy) -> int:
    total, weights = 0, 0
    for resource in strategy.resources:
        used, capacity = used_and_capacity(pod, host, resource.name)
        counted = resource.name in _NATIVE or pod.requests.scoring_amounts.get(resource.name, 0)
        if capacity == 0 or not counted:
            continue
        if strategy.type is ScoringStrategyType.LEAST_ALLOCATED:
            score = 0 if used > capacity else (capacity - used) * 100 // capacity
        elif strategy.type is ScoringStrategyType.MOST_ALLOCATED:
            score = min(used, capacity) * 100 // capacity
        else:
            score = shape_score(strategy.shape, 100 if used > capacity else used * 100 // capacity)
            if score == 0:
                continue
        total += score * resource.weight
        weights += resource.weight
    if weights == 0:
        return 0
    if strategy.type is ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
        return math.floor(Fraction(total, weights) + Fraction(1, 2))
    return total // weights


def shape_score(shape: Sequence[UtilizationShapePoint], utilization: int) -> int:
    """The point on the broken line, cut toward zero between points."""
    if utilization <= shape[0].utilization:
        return shape[0].score * 10
    for left, right in itertools.pairwise(shape):
        if utilization <= right.utilization:
            rise = Fraction((right.score - left.score) * 10 * (utilization - left.utilization))
            return left.score * 10 + math.trunc(rise / (right.utilization - left.utilization))
    return shape[-1].score * 10


def balanced_allocation(pod: PodInfo, host: Host, args: NodeResourcesBalancedAllocationArgs) -> int:
    before, after = [], []
    for resource in args.resources:
        wanted, capacity = pod.requests.amounts.get(resource.name, 0), host.allocatable(resource.name)
        if capacity == 0 or (wanted == 0 and resource.name not in _NATIVE):
            continue
        used = host.requested(resource.name)
        before.append(min(float(used) / float(capacity), 1.0))
        after.append(min(float(used + wanted) / float(capacity), 1.0))
    return 50 + math.trunc((50 + balance(after) - balance(before)) / 2)


def resulting_balance(pod: PodInfo, host: Host, args: NodeResourcesBalancedAllocationArgs) -> int:
    names = [resource.name for resource in args.resources]
    counted = [name for name in names if name in _NATIVE or pod.requests.scoring_amounts.get(name, 0)]
    both = [used_and_capacity(pod, host, name) for name in counted]
    if not both or any(capacity == 0 or used >= capacity for used, capacity in both):
        return 0
    fractions = [float(used) / float(capacity) for used, capacity in both]
    return int((1 - (max(fractions) - min(fractions))) * 100.0)


def balance(fractions: Sequence[float]) -> int:
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = _sum(fractions) / len(fractions)
        deviation = math.sqrt(_sum([(each - mean) * (each - mean) for each in fractions]) / len(fractions))
    else:
        deviation = 0.0
    return int((1 - deviation) * 100.0)


def _sum(values: Sequence[float]) -> float:
    total = 0.0  # sum() may compensate rounding, which Go does not
    for value in values:
        total += value
    return total


def image_locality(pod: PodInfo, host: Host, hosts: Sequence[Host]) -> int:
    spec = pod.pod.spec
    containers = [*(spec.init_containers or []), *spec.containers]
    images = [container.image for container in containers]
    images += [volume.image.reference for volume in spec.volumes or [] if volume.image is not None]
    total = 0
    for image in images:
        name = image if ":" in image.rsplit("/", 1)[-1] else image + ":latest"
        sizes = [_image_size(each, name) for each in hosts]
        held = [size for size in sizes if size is not None]
        if _image_size(host, name) is not None:
            total += int(float(held[0]) * (len(held) / len(hosts)))
    low, high = 23 * _MIB, 1000 * _MIB * len(images)
    return 100 * (min(max(total, low), high) - low) // (high - low)


def _image_size(host: Host, name: str) -> int | None:
    for image in host.node.status.images or []:
        if name in (image.names or []):
            return image.size_bytes
    return None


def default_normalize(scores: Sequence[int], *, reverse: bool) -> list[int]:
    top = max([0, *scores])
    if top == 0:
        return [100 for _ in scores] if reverse else list(scores)
    return [100 - 100 * score // top if reverse else 100 * score // top for score in scores]


def expected_duration(spans: list[tuple[float, int | None]], lasts: int | None, now: float) -> int:
    """The score of a node by the starts and durations of its pods, None for what nobody knows; see ExpectedDuration."""
    never = 2**40
    if not spans:
        return 0
    ends = [never if each is None else int(start) + each for start, each in spans]
    drains_in = never if max(ends) == never else abs(max(ends) - int(now))
    ends_in = never if lasts is None else lasts
    if drains_in >= ends_in:
        return 50 + 50 * ends_in // drains_in
    return 50 * drains_in // ends_in
