"""Short ways to make pods, nodes and their parts: tests name only what they are about."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bayplan.api.meta_objects import LabelSelectorRequirement, ObjectMeta, OwnerReference
from bayplan.api.objects import (
    Affinity,
    Condition,
    Container,
    ContainerImage,
    ContainerPort,
    ContainerStatus,
    LabelSelector,
    Node,
    NodeAffinity,
    NodeCondition,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    Pod,
    PodAffinity,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    Quantity,
    ResourceRequirements,
    SchedulingGroup,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from bayplan.cache.pod_info import PodInfo

CREATED = "2026-01-01T00:00:00Z"
DELETED = "2026-01-01T01:00:00Z"

HostPort = int | tuple[str, str, int]

_serial = itertools.count(1)
_API_VERSIONS = {"ReplicationController": "v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}


def make_pod(name: str = "p", *, node: str = "", **fields: Any) -> Pod:
    """A pod of the fields its parts name: `_metadata`, `_containers`, `_affinity`, `_spec` and `_status`, below."""
    parts = (_metadata, _containers, _affinity, _spec, _status)
    metadata, containers, affinity, spec, status = (
        {key: fields.pop(key) for key in fields.keys() & part.__kwdefaults__.keys()} for part in parts
    )
    if fields:
        raise TypeError(f"make_pod() knows no {', '.join(fields)}")
    return Pod(
        metadata=_metadata(name, **metadata),
        spec=_spec(node, _containers(**containers), _affinity(**affinity), **spec),
        status=_status(node, **status),
    )


def make_pod_info(name: str = "p", **fields: Any) -> PodInfo:
    """As `make_pod`, as the cache and the queue hold it."""
    return PodInfo(make_pod(name, **fields))


def make_container(
    name: str = "c",
    *,
    cpu: Quantity = None,
    memory: Quantity = None,
    requests: Mapping[str, Quantity] | None = None,
    image: str = "",
    host_ports: Sequence[HostPort] = (),
    restart_policy: str | None = None,
) -> Container:
    """A container; host ports are numbers or (ip, protocol, port); restart policy Always makes a sidecar."""
    wanted = dict(requests or {}) | _given(cpu=cpu, memory=memory)
    return Container(
        name=name,
        image=image,
        ports=[_port(p) for p in host_ports] or None,
        resources=ResourceRequirements(requests=wanted) if wanted else None,
        restart_policy=restart_policy,
    )


def make_node(
    name: str = "n",
    *,
    cpu: Quantity = "4",
    memory: Quantity = "32Gi",
    pods: Quantity = 110,
    allocatable: Mapping[str, Quantity] | None = None,
    taints: Sequence[str | Taint] = (),
    labels: Mapping[str, str] | None = None,
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    conditions: Mapping[str, str] | None = None,
    uid: str | None = None,
    resource_version: str = "1",
) -> Node:
    """A node; `allocatable` adds to or overrides the rest, None leaves one out; `images` gives sizes."""
    amounts = _given(cpu=cpu, memory=memory, pods=pods) | dict(allocatable or {})
    return Node(
        metadata=ObjectMeta(
            name=name,
            uid=uid if uid is not None else f"uid-{next(_serial)}",
            resource_version=resource_version,
            creation_timestamp=CREATED,
            labels=dict(labels) if labels is not None else None,
        ),
        spec=NodeSpec(unschedulable=unschedulable, taints=[_taint(t) for t in taints] or None),
        status=NodeStatus(
            allocatable=amounts,
            capacity=amounts,
            conditions=[NodeCondition(type=t, status=s) for t, s in (conditions or {"Ready": "True"}).items()],
            images=[ContainerImage(names=[n], size_bytes=size) for n, size in (images or {}).items()] or None,
        ),
    )


def make_term(*expressions: str, fields: Iterable[str] = ()) -> NodeSelectorTerm:
    """A node selector term: `make_term("zone In a,b", "gpu Exists", fields=["metadata.name In n1"])`."""
    return NodeSelectorTerm(
        match_expressions=[_node_requirement(e) for e in expressions] or None,
        match_fields=[_node_requirement(f) for f in fields] or None,
    )


def make_selector(*expressions: str, **match_labels: str) -> LabelSelector:
    """A label selector from texts and labels: `make_selector("tier NotIn db", app="web")`."""
    requirements = []
    for text in expressions:
        key, operator, *values = text.split(" ", 2)
        requirements.append(LabelSelectorRequirement(key=key, operator=operator, values=_values(values)))
    return LabelSelector(match_labels=match_labels or None, match_expressions=requirements or None)


def _metadata(
    name: str,
    *,
    namespace: str = "default",
    uid: str | None = None,
    resource_version: str = "1",
    created: str = CREATED,
    deleting: bool = False,
    labels: Mapping[str, str] | None = None,
    owner: str | None = None,
) -> ObjectMeta:
    """`owner` is "Kind/name" of the controller."""
    return ObjectMeta(
        name=name,
        namespace=namespace,
        uid=uid if uid is not None else f"uid-{next(_serial)}",
        resource_version=resource_version,
        creation_timestamp=created,
        deletion_timestamp=DELETED if deleting else None,
        labels=dict(labels) if labels is not None else None,
        owner_references=[_owner(owner)] if owner else None,
    )


def _containers(
    *,
    cpu: Quantity = None,
    memory: Quantity = None,
    requests: Mapping[str, Quantity] | None = None,
    containers: Sequence[Container] | None = None,
    images: Sequence[str] = (),
    host_ports: Sequence[HostPort] = (),
) -> list[Container]:
    """Without `containers` there is one (or one per image), the first with requests and ports."""
    if containers is not None:
        return list(containers)
    first, *others = images or ("",)
    return [
        make_container(image=first, cpu=cpu, memory=memory, requests=requests, host_ports=host_ports),
        *(make_container(f"c{i}", image=image) for i, image in enumerate(others, 1)),
    ]


def _spec(
    node: str,
    containers: list[Container],
    affinity: Affinity | None,
    *,
    scheduler_name: str = "bayplan",
    init_containers: Sequence[Container] | None = None,
    overhead: Mapping[str, Quantity] | None = None,
    pod_level: Mapping[str, Quantity] | None = None,
    priority: int | None = None,
    preemption_policy: str | None = None,
    tolerations: Sequence[str | Toleration] = (),
    node_selector: Mapping[str, str] | None = None,
    spread: Sequence[TopologySpreadConstraint] = (),
    volumes: Sequence[Volume] = (),
    gates: Sequence[str] = (),
    grace_seconds: int | None = None,
    group: str | None = None,
) -> PodSpec:
    """`group` is the native PodGroup that it is a member of."""
    return PodSpec(
        node_name=node,
        scheduler_name=scheduler_name,
        priority=priority,
        preemption_policy=preemption_policy,
        node_selector=dict(node_selector) if node_selector is not None else None,
        affinity=affinity,
        tolerations=[_toleration(t) for t in tolerations] or None,
        containers=containers,
        init_containers=list(init_containers) if init_containers else None,
        overhead=dict(overhead) if overhead is not None else None,
        resources=ResourceRequirements(requests=dict(pod_level)) if pod_level is not None else None,
        scheduling_gates=[PodSchedulingGate(name=g) for g in gates] or None,
        topology_spread_constraints=list(spread) or None,
        volumes=list(volumes) or None,
        termination_grace_period_seconds=grace_seconds,
        scheduling_group=SchedulingGroup(pod_group_name=group) if group is not None else None,
    )


def _status(
    node: str,
    *,
    phase: str | None = None,
    nominated: str = "",
    start_time: str | None = None,
    conditions: Sequence[Condition] = (),
    container_statuses: Sequence[ContainerStatus] = (),
) -> PodStatus:
    """`phase` defaults to Running on a node and to Pending elsewhere."""
    return PodStatus(
        phase=phase if phase is not None else ("Running" if node else "Pending"),
        conditions=list(conditions) or None,
        nominated_node_name=nominated,
        start_time=start_time,
        container_statuses=list(container_statuses) or None,
    )


def _given(**amounts: Quantity) -> dict[str, Quantity]:
    return {name: amount for name, amount in amounts.items() if amount is not None}


def _owner(text: str) -> OwnerReference:
    kind, _, name = text.partition("/")
    version = _API_VERSIONS.get(kind, "")
    return OwnerReference(api_version=version, kind=kind, name=name, uid=f"uid-{kind}-{name}", controller=True)


def _affinity(
    *,
    node_affinity: NodeAffinity | Sequence[NodeSelectorTerm] | None = None,
    preferred: Sequence[tuple[int, NodeSelectorTerm]] = (),
    pod_affinity: PodAffinity | None = None,
    pod_anti_affinity: PodAffinity | None = None,
) -> Affinity | None:
    """`node_affinity` is a whole NodeAffinity or the list of required terms; `preferred` adds weighted terms."""
    if not isinstance(node_affinity, NodeAffinity):
        node_affinity = _node_affinity(node_affinity, preferred)
    if node_affinity is None and pod_affinity is None and pod_anti_affinity is None:
        return None
    return Affinity(node_affinity=node_affinity, pod_affinity=pod_affinity, pod_anti_affinity=pod_anti_affinity)


def _node_affinity(
    required: Sequence[NodeSelectorTerm] | None, preferred: Sequence[tuple[int, NodeSelectorTerm]]
) -> NodeAffinity | None:
    parts: dict[str, Any] = {}
    if required is not None:
        parts["required_during_scheduling_ignored_during_execution"] = NodeSelector(node_selector_terms=list(required))
    if preferred:
        parts["preferred_during_scheduling_ignored_during_execution"] = [
            PreferredSchedulingTerm(weight=weight, preference=term) for weight, term in preferred
        ]
    return NodeAffinity(**parts) if parts else None


def _toleration(text: str | Toleration) -> Toleration:
    """From "key=value:Effect" (Equal), "key:Effect" (Exists), "key" (any effect) or ":" (everything)."""
    if isinstance(text, Toleration):
        return text
    key_value, _, effect = text.partition(":")
    key, equals, value = key_value.partition("=")
    return Toleration(key=key, operator="Equal" if equals else "Exists", value=value, effect=effect)


def _taint(text: str | Taint) -> Taint:
    """From "key=value:Effect" or "key:Effect"."""
    if isinstance(text, Taint):
        return text
    key_value, _, effect = text.partition(":")
    key, _, value = key_value.partition("=")
    return Taint(key=key, value=value, effect=effect)


def _port(port: HostPort) -> ContainerPort:
    ip, protocol, number = port if isinstance(port, tuple) else ("", "TCP", port)
    return ContainerPort(container_port=max(number, 1), host_port=number, host_ip=ip, protocol=protocol)


def _node_requirement(text: str) -> NodeSelectorRequirement:
    key, operator, *values = text.split(" ", 2)
    return NodeSelectorRequirement(key=key, operator=operator, values=_values(values))


def _values(rest: list[str]) -> list[str] | None:
    return rest[0].split(",") if rest else None
