"""What each filter says of one pod and one node, written as kube-scheduler's documentation tells it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bayplan.api.objects import LabelSelector, Node, NodeSelectorRequirement, NodeSelectorTerm, Pod, Taint, Toleration
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import node_allocatable
from bayplan.config.bayplan_args import NodeHeadroomArgs
from bayplan.config.types import NodeAffinityArgs, NodeResourcesFitArgs

Labels = Mapping[str, str]

UNSCHEDULABLE = 1
UNRESOLVABLE = 2


@dataclass(frozen=True)
class Host:
    """A node and the pods on it."""

    node: Node
    pods: tuple[PodInfo, ...]

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.node.metadata.labels or {}

    def allocatable(self, resource: str) -> int:
        return node_allocatable(self.node).get(resource, 0)

    def requested(self, resource: str) -> int:
        return sum(pod.placed.amounts.get(resource, 0) for pod in self.pods)


Verdict = tuple[int, list[str]] | None
"""The code and the reasons of a rejection; None if the node passes."""


def node_unschedulable(pod: PodInfo, host: Host) -> Verdict:
    cordon = Taint(key="node.kubernetes.io/unschedulable", value="", effect="NoSchedule")
    if host.node.spec.unschedulable and not tolerated(cordon, pod.pod.spec.tolerations or []):
        return UNRESOLVABLE, ["node(s) were unschedulable"]
    return None


def node_name(pod: PodInfo, host: Host) -> Verdict:
    if pod.pod.spec.node_name not in ("", host.name):
        return UNRESOLVABLE, ["node(s) didn't match the requested node name"]
    return None


def taint_toleration(pod: PodInfo, host: Host) -> Verdict:
    for taint in host.node.spec.taints or []:
        if taint.effect in ("NoSchedule", "NoExecute") and not tolerated(taint, pod.pod.spec.tolerations or []):
            return UNRESOLVABLE, ["node(s) had untolerated taint(s)"]
    return None


def tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    for toleration in tolerations:
        if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
            continue
        if toleration.operator == "Exists":
            return True
        if toleration.operator in ("", "Equal") and toleration.value == taint.value:
            return True
    return False


def node_affinity(pod: PodInfo, host: Host, args: NodeAffinityArgs) -> Verdict:
    added = args.added_affinity
    if added is not None and added.required_during_scheduling_ignored_during_execution is not None:
        terms = added.required_during_scheduling_ignored_during_execution.node_selector_terms or []
        if not any(term_holds(term, host) for term in terms):
            return UNRESOLVABLE, ["node(s) didn't match scheduler-enforced node affinity"]
    reasons = ["node(s) didn't match Pod's node affinity/selector"]
    for key, value in (pod.pod.spec.node_selector or {}).items():
        if key not in host.labels or host.labels[key] != value:
            return UNRESOLVABLE, reasons
    terms = required_terms(pod.pod)
    if terms is not None and not any(term_holds(term, host) for term in terms):
        return UNRESOLVABLE, reasons
    return None


def required_terms(pod: Pod) -> list[NodeSelectorTerm] | None:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return None if required is None else required.node_selector_terms or []


def term_holds(term: NodeSelectorTerm, host: Host) -> bool:
    expressions, fields = term.match_expressions or [], term.match_fields or []
    if not expressions and not fields:
        return False
    if not all(_is_valid(each) for each in expressions):
        return False
    labels = all(_expression_holds(each, host.labels.get(each.key)) for each in expressions)
    return labels and all(_field_holds(each, host.name) for each in fields)


def _expression_holds(expression: NodeSelectorRequirement, value: str | None) -> bool:
    values = expression.values or []
    if expression.operator == "In":
        return value in values
    if expression.operator == "NotIn":
        return value not in values
    if expression.operator == "Exists":
        return value is not None
    if expression.operator == "DoesNotExist":
        return value is None
    if expression.operator in ("Gt", "Lt") and value is not None and value.isdecimal():
        return int(value) > int(values[0]) if expression.operator == "Gt" else int(value) < int(values[0])
    return False


def _is_valid(expression: NodeSelectorRequirement) -> bool:
    values = expression.values or []
    if expression.operator in ("In", "NotIn"):
        return len(values) > 0
    if expression.operator in ("Exists", "DoesNotExist"):
        return not values
    return expression.operator in ("Gt", "Lt") and len(values) == 1 and values[0].isdecimal()


def _field_holds(field: NodeSelectorRequirement, name: str) -> bool:
    values = field.values or []
    if field.key != "metadata.name" or len(values) != 1:
        return False
    return (name == values[0]) == (field.operator == "In") and field.operator in ("In", "NotIn")


def label_selector_holds(selector: LabelSelector | None, labels: Labels) -> bool:
    """Whether labels match the selector; none matches without one."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.match_labels or {}).items()):
        return False
    tests: dict[str, Callable[[str, list[str]], bool]] = {
        "In": lambda key, values: labels.get(key) in values,
        "NotIn": lambda key, values: labels.get(key) not in values,
        "Exists": lambda key, values: key in labels,
        "DoesNotExist": lambda key, values: key not in labels,
    }
    return all(tests[each.operator](each.key, each.values or []) for each in selector.match_expressions or [])


def node_ports(pod: PodInfo, host: Host) -> Verdict:
    for wanted in _ports(pod.pod):
        for other in host.pods:
            for taken in _ports(other.pod):
                if wanted[1:] == taken[1:] and (wanted[0] == taken[0] or "0.0.0.0" in (wanted[0], taken[0])):
                    return UNSCHEDULABLE, ["node(s) didn't have free ports for the requested pod ports"]
    return None


def _ports(pod: Pod) -> list[tuple[str, str, int]]:
    sidecars = [each for each in pod.spec.init_containers or [] if each.restart_policy == "Always"]
    return [
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in [*pod.spec.containers, *sidecars]
        for port in container.ports or []
        if port.host_port > 0
    ]


def node_headroom(pod: PodInfo, host: Host, args: NodeHeadroomArgs) -> Verdict:
    controllers = {each.kind for each in pod.pod.metadata.owner_references or [] if each.controller}
    if controllers & {"DaemonSet", "Node"} or pod.priority >= args.priority_threshold:
        return None
    code, reasons = 0, []
    for each in args.resources:
        of_pods = each.name == "pods"
        amount = 1 if of_pods else pod.requests.amounts.get(each.name, 0)
        if amount == 0:
            continue
        allocatable = host.allocatable(each.name)
        unit = 1000 if each.name == "cpu" else 1
        kept = allocatable * each.percentage // 100 + int(each.amount or 0) * unit
        if amount > allocatable - kept - (len(host.pods) if of_pods else host.requested(each.name)):
            reasons.append(f"Insufficient {each.name} beside the head room")
            code = max(code, UNRESOLVABLE if amount > allocatable - kept else UNSCHEDULABLE)
    return (code, reasons) if reasons else None


def node_resources_fit(pod: PodInfo, host: Host, args: NodeResourcesFitArgs) -> Verdict:
    code, reasons = 0, []
    if len(host.pods) + 1 > host.allocatable("pods"):
        code, reasons = UNSCHEDULABLE, ["Too many pods"]
    for name, amount in pod.requests.amounts.items():
        is_extended = "/" in name and "kubernetes.io/" not in name
        ignored = name in args.ignored_resources or name.split("/")[0] in args.ignored_resource_groups
        if amount == 0 or (is_extended and ignored):
            continue
        if amount > host.allocatable(name) - host.requested(name):
            reasons.append(f"Insufficient {name}")
            code = max(code, UNRESOLVABLE if amount > host.allocatable(name) else UNSCHEDULABLE)
    return (code, reasons) if reasons else None
