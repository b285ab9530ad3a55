"""Nodes that are drained: their pods go elsewhere, and what keeps a real drain waiting is said."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec
from msgspec import structs

from bayplan.api.objects import Node, Pod, PodStatus, Taint
from bayplan.api.selectors import compile_label_selector
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.cache import is_finished
from bayplan.cache.pod_info import PodInfo

_CORDONED: Final = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")
_STAY: Final = ("DaemonSet", "Node")
"""What owns pods that no drain evicts: a static pod belongs to its node."""


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
    """With these a drain takes as long as the evicted pods take to be ready elsewhere, or for ever."""


def cordoned(node: Node) -> Node:
    """Return the node closed for new pods, as `kubectl cordon` and the node controller leave it."""
    taints = [each for each in node.spec.taints or () if each.key != _CORDONED.key]
    return structs.replace(node, spec=structs.replace(node.spec, unschedulable=True, taints=[*taints, _CORDONED]))


def drained(
    pods: Sequence[PodInfo], nodes: Collection[str], gone: Collection[str], budgets: Iterable[PodDisruptionBudget]
) -> tuple[list[PodInfo], list[DrainedNode]]:
    """Return the pods with those of `nodes` waiting for another node, and what is to be said about each node.

    Pods that stay on their node are removed where the node is among those `gone`.
    """
    reports = {name: DrainedNode(name, 0, 0, [], []) for name in nodes}
    evicted: dict[str, list[PodInfo]] = {name: [] for name in nodes}
    kept: list[PodInfo] = []
    for pod in pods:
        report = reports.get(pod.pod.spec.node_name)
        if report is None or is_finished(pod.pod):
            kept.append(pod)
            continue
        kind = _controller_kind(pod.pod)
        if kind in _STAY:
            report.staying += 1
            if report.node not in gone:
                kept.append(pod)
            continue
        if pod.is_terminating:
            # It goes anyway.
            continue
        report.evicted += 1
        evicted[report.node].append(pod)
        if not kind:
            report.without_controller.append(pod.key)
        kept.append(PodInfo(_waiting(pod.pod)))
    for budget in budgets:
        matcher = compile_label_selector(budget.spec.selector)
        allowed = max(budget.status.disruptions_allowed, 0)
        for name, gone_pods in evicted.items():
            count = sum(
                pod.namespace == budget.metadata.namespace and matcher.matches(pod.pod.metadata.labels)
                for pod in gone_pods
            )
            if count > allowed:
                key = f"{budget.metadata.namespace}/{budget.metadata.name}"
                reports[name].budgets.append(BlockingBudget(key, count, allowed))
    return kept, list(reports.values())


def drain_lines(report: DrainedNode) -> Iterable[str]:
    """Yield what people are told about a drained node, a line each."""
    staying = f", {report.staying} of DaemonSets or static stay" if report.staying else ""
    pods = "1 pod" if report.evicted == 1 else f"{report.evicted} pods"
    yield f"{report.node}: {pods} evicted{staying}"
    for budget in report.budgets:
        yield (
            f"{report.node}: PodDisruptionBudget {budget.name} allows {budget.disruptions_allowed} of "
            f"{budget.evictions} evictions at once: a drain waits for it"
        )
    if report.without_controller:
        first, more = report.without_controller[0], len(report.without_controller) - 1
        others = f" and {more} others have" if more else " has"
        yield f"{report.node}: {first}{others} no controller: a drain wants --force, and nothing would make it again"


def _waiting(pod: Pod) -> Pod:
    """The pod as its controller makes it anew, under the name it had."""
    meta = structs.replace(pod.metadata, creation_timestamp=None, resource_version="")
    return Pod(meta, structs.replace(pod.spec, node_name=""), PodStatus(phase="Pending"))


def _controller_kind(pod: Pod) -> str:
    return next((each.kind for each in pod.metadata.owner_references or () if each.controller), "")
