"""Pods and nodes as they come over the wire, cut to the fields bayplan reads."""

from typing import Any

import msgspec

from bayplan.api.meta_objects import Described, LabelSelector, Quantity, Struct


class NodeSelectorRequirement(Struct, frozen=True):
    """One expression of a node selector term; Gt and Lt compare integers."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeSelectorTerm(Struct, frozen=True):
    """Expressions and fields that must all match; an empty term matches nothing."""

    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(Struct, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(Struct, frozen=True, omit_defaults=False):
    """Nodes that the pod prefers, and by what weight; both are written out, as upstream's types have it."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Struct, frozen=True):
    """What the pod requires and prefers of a node's labels and fields."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = None


class PodAffinityTerm(Struct, frozen=True):
    """Pods that must, or must not, share the pod's `topology_key` domain."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(Struct, frozen=True):
    """Other pods that the pod prefers to be near or far from, and by what weight."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True):
    """What the pod requires and prefers of pods nearby (also the shape of podAntiAffinity)."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = None


class Affinity(Struct, frozen=True):
    """The pod's affinity rules."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Struct, frozen=True):
    """A taint the pod puts up with; an empty key (with Exists) or effect matches all."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class ContainerPort(Struct, frozen=True):
    """A port of a container; `host_port` 0 means none on the host."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class ResourceRequirements(Struct, frozen=True):
    """Requests and limits by resource name, as quantities."""

    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None


class ContainerRestartRule(Struct, frozen=True):
    """What happens when a container exits in some way; cut to the action."""

    action: str = ""


class VolumeMount(Struct, frozen=True):
    """Where a container finds a volume; cut to the options it is mounted there with."""

    bind_mount_options: list[str] | None = None


class Container(Struct, frozen=True):
    """A container or init container; `restart_policy` Always makes an init container a sidecar."""

    name: str = ""
    image: str = ""
    ports: list[ContainerPort] | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] | None = None
    volume_mounts: list[VolumeMount] | None = None


class EphemeralContainer(Struct, frozen=True):
    """A container that somebody added to look into the pod; it asks for no resources."""

    volume_mounts: list[VolumeMount] | None = None


class PodSchedulingGate(Struct, frozen=True):
    """A gate that keeps the pod out of the queue until it is removed."""

    name: str = ""


class TopologySpreadConstraint(Struct, frozen=True):
    """How evenly matching pods must spread over `topology_key` domains."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class PersistentVolumeClaimSource(Struct, frozen=True):
    """A volume that names a claim."""

    claim_name: str = ""


class ImageVolumeSource(Struct, frozen=True):
    """A volume made of an image."""

    reference: str = ""


class Volume(Struct, frozen=True):
    """A volume of the pod, cut to the kinds that bind a pod to nodes; the others decode as neither."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: dict[str, Any] | None = None
    image: ImageVolumeSource | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    azure_file: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None
    vsphere_volume: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None
    csi: dict[str, Any] | None = None


class PodResourceClaim(Struct, frozen=True):
    """A claim on devices (dynamic resource allocation): one by name, or one that is made from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Struct, frozen=True):
    """Which PodGroup of its namespace the pod belongs to."""

    pod_group_name: str | None = None


class PodSpec(Struct, frozen=True):
    """What the pod requires of a node and of its scheduler."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    containers: list[Container] = msgspec.field(default_factory=list)
    init_containers: list[Container] | None = None
    ephemeral_containers: list[EphemeralContainer] | None = None
    overhead: dict[str, Quantity] | None = None
    runtime_class_name: str | None = None
    resources: ResourceRequirements | None = None
    scheduling_gates: list[PodSchedulingGate] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    volumes: list[Volume] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    termination_grace_period_seconds: int | None = None
    host_network: bool = False
    host_users: bool | None = None
    scheduling_group: SchedulingGroup | None = None

    @property
    def required_nodes(self) -> NodeSelector | None:
        """What its node affinity requires; None where that is nothing."""
        affinity = None if self.affinity is None else self.affinity.node_affinity
        return None if affinity is None else affinity.required_during_scheduling_ignored_during_execution


class Condition(Struct, frozen=True):
    """One condition of a pod, a pod group or a device; times are RFC 3339 strings, kept as they came."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int | None = None


class ContainerStatus(Struct, frozen=True):
    """What the kubelet actuated for a container, for in-place resize."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Quantity] | None = None


class PodResourceClaimStatus(Struct, frozen=True):
    """The claim that was made for an entry of `resourceClaims`; without a name none was needed."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Struct, frozen=True):
    """What is known of the pod's life."""

    phase: str = ""
    conditions: list[Condition] | None = None
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Quantity] | None = None
    resource_claim_statuses: list[PodResourceClaimStatus] | None = None


class Pod(Described, frozen=True):
    """A v1 Pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(Struct, frozen=True):
    """A node's repulsion of pods that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class ContainerImage(Struct, frozen=True):
    """An image a node already holds, under all its names."""

    names: list[str] | None = None
    size_bytes: int = 0


class NodeCondition(Struct, frozen=True):
    """One condition of a node."""

    type: str = ""
    status: str = ""


class NodeSpec(Struct, frozen=True):
    """What the administrator says of a node."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeStatus(Struct, frozen=True):
    """What the kubelet says of a node."""

    allocatable: dict[str, Quantity] | None = None
    capacity: dict[str, Quantity] | None = None
    conditions: list[NodeCondition] | None = None
    images: list[ContainerImage] | None = None
    declared_features: list[str] | None = None


class Node(Described, frozen=True):
    """A v1 Node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
