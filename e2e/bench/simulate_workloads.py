"""The streams of pods that `python -m e2e.bench.simulate` schedules: plain ones, and each rule that costs most."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from bayplan.api.meta_objects import LabelSelector
from bayplan.api.objects import (
    Affinity,
    Node,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import DEFAULT_SCHEDULER_NAME
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.synthetic import pod_shapes, synthetic_nodes
from e2e.bench.pod_stream import POOLS, synthetic_pods

SHAPES: Final = 20
ZONES: Final = 3

_HOSTNAME: Final = "kubernetes.io/hostname"
_ZONE: Final = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Workload:
    """A cluster of `nodes`, and what pods ask for besides resources, given the selector of their own app."""

    name: str
    nodes: int
    rule: Callable[[PodSpec, LabelSelector], PodSpec] | None = None


def _spread(spec: PodSpec, own: LabelSelector) -> PodSpec:
    constraints = [
        TopologySpreadConstraint(topology_key=key, max_skew=1, when_unsatisfiable=action, label_selector=own)
        for key, action in ((_ZONE, "DoNotSchedule"), (_HOSTNAME, "ScheduleAnyway"))
    ]
    return msgspec.structs.replace(spec, topology_spread_constraints=constraints)


def _prefers_own(spec: PodSpec, own: LabelSelector) -> PodSpec:
    wish = WeightedPodAffinityTerm(
        weight=10, pod_affinity_term=PodAffinityTerm(label_selector=own, topology_key=_HOSTNAME)
    )
    near = PodAffinity(preferred_during_scheduling_ignored_during_execution=[wish])
    return msgspec.structs.replace(spec, affinity=Affinity(pod_affinity=near))


def _avoids_own(spec: PodSpec, own: LabelSelector) -> PodSpec:
    term = PodAffinityTerm(label_selector=own, topology_key=_HOSTNAME)
    far = PodAffinity(required_during_scheduling_ignored_during_execution=[term])
    return msgspec.structs.replace(spec, affinity=Affinity(pod_anti_affinity=far))


WORKLOADS: Final = (
    Workload("plain", 500),
    Workload("plain", 5000),
    Workload("hard zone spread, soft hostname spread", 5000, _spread),
    Workload("preferred affinity by hostname", 5000, _prefers_own),
    Workload("required anti-affinity by hostname", 5000, _avoids_own),
)


def objects_of(workload: Workload, pods: int, seed: int) -> ClusterObjects:
    """Nodes in zones, and `pods` of 20 shapes; pods of one shape are one app, which its rule is about."""
    stream = synthetic_pods(pods, pod_shapes(SHAPES, seed), seed=seed, scheduler_name=DEFAULT_SCHEDULER_NAME)
    nodes = [_in_zone(node, number % ZONES) for number, node in enumerate(synthetic_nodes(workload.nodes, POOLS))]
    if workload.rule is not None:
        apps: dict[str, str] = {}
        stream = [_with_rule(pod, workload.rule, apps) for pod in stream]
    return ClusterObjects(nodes=nodes, pods=stream)


def _in_zone(node: Node, zone: int) -> Node:
    labels = {**(node.metadata.labels or {}), _ZONE: f"zone-{zone}"}
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels=labels))


def _with_rule(info: PodInfo, rule: Callable[[PodSpec, LabelSelector], PodSpec], apps: dict[str, str]) -> PodInfo:
    pod = info.pod
    app = apps.setdefault(repr(pod.spec), f"app-{len(apps)}")
    metadata = msgspec.structs.replace(pod.metadata, labels={"app": app})
    spec = rule(pod.spec, LabelSelector(match_labels={"app": app}))
    return PodInfo(msgspec.structs.replace(pod, metadata=metadata, spec=spec))
