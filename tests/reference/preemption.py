"""Preemption in plain Python, one node and one pod at a time, after kube-scheduler's description of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.reference.filters import Host, node_ports, node_resources_fit

from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import NodeResourcesFitArgs

NEVER_STARTED = "9999-01-01T00:00:00Z"


@dataclass
class Choice:
    node: str
    victims: list[str]
    rank: tuple


def fits(pod: PodInfo, host: Host, nominated: Sequence[PodInfo]) -> bool:
    rounds = [host.pods]
    if nominated:
        rounds.insert(0, (*host.pods, *nominated))
    return not any(verdict(pod, Host(host.node, pods)) for pods in rounds)


def verdict(pod: PodInfo, host: Host):
    return node_ports(pod, host) or node_resources_fit(pod, host, NodeResourcesFitArgs())


def is_hopeless(pod: PodInfo, host: Host) -> bool:
    found = verdict(pod, host)
    return found is not None and found[0] == 2


def choices(
    pod: PodInfo,
    hosts: Sequence[Host],
    budgets: Sequence[PodDisruptionBudget],
    nominated: Mapping[str, Sequence[PodInfo]],
) -> list[Choice]:
    """Every node that evictions would help on, the best first; the pod must fit no host as it is."""
    found = []
    for host in hosts:
        beside = [each for each in nominated.get(host.name, ()) if each.priority >= pod.priority]
        if is_hopeless(pod, host):
            continue
        choice = victims_on(pod, host, budgets, beside)
        if choice is not None:
            found.append(choice)
    return sorted(found, key=lambda choice: choice.rank)


def victims_on(pod, host, budgets, beside) -> Choice | None:
    lower = [each for each in host.pods if each.priority < pod.priority]
    if not lower:
        return None
    kept = [each for each in host.pods if each not in lower]
    if not fits(pod, Host(host.node, tuple(kept)), beside):
        return None
    lower.sort(key=_importance)
    violating = _violating(lower, budgets)
    victims, violations = [], 0
    for each in [*violating, *(other for other in lower if other not in violating)]:
        if fits(pod, Host(host.node, (*kept, each)), beside):
            kept.append(each)
        else:
            victims.append(each)
            violations += each in violating
    victims.sort(key=_importance)
    top = victims[0].priority
    started = min(_started(each) for each in victims if each.priority == top)
    rank = (violations, top, sum(each.priority + 2**31 for each in victims), len(victims), _descending(started))
    return Choice(host.name, [each.name for each in victims], rank)


def _importance(pod: PodInfo):
    return -pod.priority, _started(pod)


def _started(pod: PodInfo) -> str:
    return pod.pod.status.start_time or NEVER_STARTED


def _descending(text: str) -> tuple[int, ...]:
    return tuple(-ord(character) for character in text)


def _violating(pods: Sequence[PodInfo], budgets: Sequence[PodDisruptionBudget]) -> list[PodInfo]:
    left = [budget.status.disruptions_allowed for budget in budgets]
    found = []
    for pod in pods:
        broken = False
        for index, budget in enumerate(budgets):
            wanted = budget.spec.selector.match_labels if budget.spec.selector else None
            labels = pod.pod.metadata.labels or {}
            if budget.metadata.namespace != pod.namespace or not wanted or not labels:
                continue
            if any(labels.get(key) != value for key, value in wanted.items()):
                continue
            if pod.name in (budget.status.disrupted_pods or {}):
                continue
            left[index] -= 1
            if left[index] < 0:
                broken = True
                break
        if broken:
            found.append(pod)
    return found
