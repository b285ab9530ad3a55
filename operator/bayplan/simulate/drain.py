"""Nodes that are drained: their pods go elsewhere, and what keeps a real drain waiting is said."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec
from msgspec import structs

from bayplan.api.meta_objects import controller_of
from bayplan.api.objects import Node, Pod, PodStatus, Taint
from bayplan.api.selectors import LabelMatcher, compile_label_selector
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.cache import is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.shown_text import counted

_CORDONED: Final = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")
_PENDING: Final = "Pending"
ALONE: Final = "without a controller"
"""Nothing would make such a pod again."""


class BlockingBudget(msgspec.Struct, rename="camel"):
    """A budget that allows fewer disruptions at once than a drain asks for."""

    name: str
    """As namespace/name."""
    evictions: int
    disruptions_allowed: int


class DrainedNode(msgspec.Struct, rename="camel"):
    """What a drain did to one node's pods."""

    node: str
    evicted: int
    """Pods that are scheduled anew."""
    staying: int
    """Pods of DaemonSets, and static pods."""
    without_controller: list[str]
    """Evicted pods that nothing would make again, as namespace/name; they are scheduled all the same."""
    budgets: list[BlockingBudget]
    """With these a drain takes as long as the evicted pods take to be ready elsewhere, or for ever.

    What a budget allows is used up by the nodes in the order they were given.
    """
    of_several_budgets: list[str]
    """Pods, as namespace/name, that more than one budget covers; they are scheduled all the same."""
    scheduler_names: dict[str, int]
    """How many of the evicted pods name which scheduler; those that name no profile are not placed."""


def why_it_stays(pod: PodInfo) -> str | None:
    """Return why a pod that runs is not to be moved, wherever there is room; None for one that is made anew elsewhere.

    Whatever says how much could be moved relies on it: plans, `--repack` and the doctor. Budgets, which say how
    many may move at a time, are beside it.
    """
    if pod.stays:
        return "of DaemonSets or static"
    if pod.is_terminating:
        return "being deleted"
    return ALONE if controller_of(pod.pod.metadata) is None else None


def cordoned(node: Node) -> Node:
    """Return the node closed for new pods, as `kubectl cordon` and the node controller leave it."""
    taints = [each for each in node.spec.taints or () if each.key != _CORDONED.key]
    return structs.replace(node, spec=structs.replace(node.spec, unschedulable=True, taints=[*taints, _CORDONED]))


def drained(
    pods: Sequence[PodInfo], nodes: Collection[str], gone: Collection[str], budgets: Iterable[PodDisruptionBudget]
) -> tuple[list[PodInfo], list[DrainedNode]]:
    """Return the pods with those of `nodes` waiting for another node, and what is to be said about each node.

    Pods that stay on their node are removed where the node is among those `gone`. Pods that are being deleted have left
    their node.
    """
    reports = {name: DrainedNode(name, 0, 0, [], [], [], {}) for name in nodes}
    evicted: dict[str, list[PodInfo]] = {name: [] for name in nodes}
    kept: list[PodInfo] = []
    for pod in pods:
        report = reports.get(pod.pod.spec.node_name)
        if report is None or is_finished(pod.pod):
            kept.append(pod)
            continue
        if pod.stays:
            report.staying += 1
            if report.node not in gone:
                kept.append(pod)
            continue
        if pod.is_terminating:
            # It goes anyway.
            kept.append(pod.with_spec(node_name=""))
            continue
        report.evicted += 1
        scheduler = pod.pod.spec.scheduler_name
        report.scheduler_names[scheduler] = report.scheduler_names.get(scheduler, 0) + 1
        evicted[report.node].append(pod)
        if controller_of(pod.pod.metadata) is None:
            report.without_controller.append(pod.key)
        kept.append(PodInfo(waiting_anew(pod.pod)))
    asked = Allowances(budgets)
    for name, pods_of_node in evicted.items():
        reports[name].of_several_budgets, reports[name].budgets = asked.evict(pods_of_node)
    return kept, list(reports.values())


class Allowances:
    """What budgets still allow, as the eviction API asks them (upstream: registry/core/pod/storage/eviction.go)."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[tuple[str, LabelMatcher, PodDisruptionBudget]]] = {}
        self._left: dict[str, int] = {}
        for budget in budgets:
            meta = budget.metadata
            key = f"{meta.namespace}/{meta.name}"
            entry = key, compile_label_selector(budget.spec.selector), budget
            self._by_namespace.setdefault(meta.namespace, []).append(entry)
            self._left[key] = max(budget.status.disruptions_allowed, 0)
        self._allowed = dict(self._left)

    def asked_by(self, pod: PodInfo) -> list[str]:
        """Return the budgets, as namespace/name, that an eviction of the pod asks; of several the API server has none.

        None is asked where nothing is disrupted, or where the budget lets go of pods that are not ready.
        """
        if pod.pod.status.phase == _PENDING:
            # Its containers never started.
            return []
        labels = pod.pod.metadata.labels
        covering = [each for each in self._by_namespace.get(pod.namespace, ()) if each[1].matches(labels)]
        if len(covering) == 1 and _goes_unready(pod.pod, covering[0][2]):
            return []
        return [key for key, *_ in covering]

    def allowed(self, budget: str) -> int:
        """Return how many disruptions it allowed before any pod was taken off."""
        return self._allowed[budget]

    def take(self, budget: str) -> bool:
        """Take one disruption off a budget, and return whether it allowed one still."""
        left = self._left[budget]
        self._left[budget] = max(left - 1, 0)
        return left > 0

    def evict(self, pods: Iterable[PodInfo]) -> tuple[list[str], list[BlockingBudget]]:
        """Take the pods off, and return those of several budgets, and the budgets that allow less than that."""
        several: list[str] = []
        counts = Counter[str]()
        for pod in pods:
            budgets = self.asked_by(pod)
            if len(budgets) > 1:
                several.append(pod.key)
            else:
                counts.update(budgets)
        left = {key: self._left[key] for key in counts}
        self._left |= {key: max(left[key] - count, 0) for key, count in counts.items()}
        return several, [BlockingBudget(key, count, left[key]) for key, count in counts.items() if count > left[key]]


def _goes_unready(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Whether the pod is not ready, and the budget lets go of such pods whatever it allows."""
    if any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ()):
        return False
    status = budget.status
    return budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow" or (
        status.current_healthy >= status.desired_healthy > 0
    )


def waiting_anew(pod: Pod) -> Pod:
    """Return the pod as its controller makes it anew, under the name it had."""
    meta = structs.replace(pod.metadata, creation_timestamp=None, resource_version="")
    return Pod(meta, structs.replace(pod.spec, node_name=""), PodStatus(phase="Pending"))


def drain_lines(report: DrainedNode) -> Iterable[str]:
    """Yield what people are told about a drained node, a line each."""
    staying = f", {report.staying} of DaemonSets or static stay" if report.staying else ""
    yield f"{report.node}: {counted(report.evicted, 'pod')} evicted{staying}"
    for budget in report.budgets:
        yield (
            f"{report.node}: PodDisruptionBudget {budget.name} allows {budget.disruptions_allowed} of "
            f"{budget.evictions} evictions at once: a drain waits for it"
        )
    if report.of_several_budgets:
        pods = _and_others(report.of_several_budgets, "is", "are")
        yield f"{report.node}: {pods} of more than one PodDisruptionBudget: the API server refuses to evict"
    if report.without_controller:
        pods = _and_others(report.without_controller, "has", "have")
        yield f"{report.node}: {pods} no controller: a drain wants --force, and nothing would make it again"


def _and_others(pods: Sequence[str], one: str, several: str) -> str:
    return f"{pods[0]} {one}" if len(pods) == 1 else f"{pods[0]} and {counted(len(pods) - 1, 'other')} {several}"
