"""Where a DaemonSet makes pods, and how it keeps each to its node."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import structs

from bayplan.api.objects import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    Toleration,
)
from bayplan.api.selectors import compile_node_selector
from bayplan.api.tolerations import Tolerance, find_untolerated_taint
from bayplan.simulate.workloads import PodTemplateSpec

_NAME: Final = "metadata.name"
_KEEPS_AWAY: Final = ("NoSchedule", "NoExecute")
_TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOSTS_NETWORK: Final = ("network-unavailable", "NoSchedule")


def with_tolerations(template: PodTemplateSpec) -> PodTemplateSpec:
    """Return the template with what every daemon puts up with (upstream: controller/daemon/util/daemonset_util.go)."""
    spec = template.spec
    taints = (*_TOLERATED, _TOLERATED_ON_HOSTS_NETWORK) if spec.host_network else _TOLERATED
    own = [Toleration(f"node.kubernetes.io/{name}", "Exists", effect=effect) for name, effect in taints]
    # Those that are about the same taint are replaced.
    same = {(each.key, each.operator, each.value, each.effect) for each in own}
    kept = [each for each in spec.tolerations or () if (each.key, each.operator, each.value, each.effect) not in same]
    return structs.replace(template, spec=structs.replace(spec, tolerations=[*kept, *own]))


def nodes_for(spec: PodSpec, nodes: Iterable[Node]) -> Sequence[str]:
    """The names of the nodes that a daemon of that spec is made for, whether or not it finds room there.

    Upstream: controller/daemon/daemon_controller.go NodeShouldRunDaemonPod.
    """
    wanted = (spec.node_selector or {}).items()
    required = _required(spec)
    matcher = None if required is None else compile_node_selector(required)
    tolerance = Tolerance(spec.tolerations)
    return [
        node.metadata.name
        for node in nodes
        if spec.node_name in ("", node.metadata.name)
        and wanted <= (node.metadata.labels or {}).items()
        and (matcher is None or matcher.matches(node.metadata.labels, node.metadata.name))
        and find_untolerated_taint(node.spec.taints, tolerance, _KEEPS_AWAY) is None
    ]


def kept_to(spec: PodSpec, node: str) -> PodSpec:
    """Return the spec for one node: the name replaces the terms that the node was chosen by (upstream: as above)."""
    term = NodeSelectorTerm(match_fields=[NodeSelectorRequirement(_NAME, "In", [node])])
    affinity = spec.affinity or Affinity()
    on_nodes = structs.replace(
        affinity.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=NodeSelector([term]),
    )
    return structs.replace(spec, affinity=structs.replace(affinity, node_affinity=on_nodes))


def node_of(pod: Pod) -> str:
    """The node that a DaemonSet's pod is on or was made for; "" if it does not say."""
    required = _required(pod.spec)
    if pod.spec.node_name or required is None:
        return pod.spec.node_name
    fields = (each for term in required.node_selector_terms or () for each in term.match_fields or ())
    return next((each.values[0] for each in fields if each.key == _NAME and each.values), "")


def _required(spec: PodSpec) -> NodeSelector | None:
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    return None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
