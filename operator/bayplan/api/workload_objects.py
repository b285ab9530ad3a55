"""The objects around pods: namespaces, what owns pods, their groups, disruption budgets, and what admission reads."""

from typing import Any

from bayplan.api.meta_objects import Described, LabelSelector, Quantity, Struct
from bayplan.api.objects import Condition, Toleration


class Namespace(Described, frozen=True):
    """A v1 Namespace; pod affinity terms select namespaces by their labels."""


class ServiceSpec(Struct, frozen=True):
    """What a Service selects."""

    selector: dict[str, str] | None = None


class Service(Described, frozen=True):
    """A v1 Service; default topology spreading groups the pods it selects."""

    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Struct, frozen=True):
    """What a ReplicationController selects."""

    selector: dict[str, str] | None = None


class ReplicationController(Described, frozen=True):
    """A v1 ReplicationController."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class WorkloadSpec(Struct, frozen=True):
    """What a ReplicaSet or StatefulSet selects."""

    selector: LabelSelector | None = None


class _Workload(Described, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()


class ReplicaSet(_Workload, frozen=True):
    """An apps/v1 ReplicaSet."""


class StatefulSet(_Workload, frozen=True):
    """An apps/v1 StatefulSet."""


class PodDisruptionBudgetSpec(Struct, frozen=True):
    """Which pods a budget protects, and whether those that are not ready may be evicted all the same."""

    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True):
    """How many disruptions the budget allows now, and which pods' disruptions it has counted already."""

    current_healthy: int = 0
    desired_healthy: int = 0
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str | None] | None = None


class PodDisruptionBudget(Described, frozen=True):
    """A policy/v1 PodDisruptionBudget; preemption prefers victims that violate none."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(Described, frozen=True):
    """A scheduling.k8s.io/v1 PriorityClass; read only for objects that come from files."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class Overhead(Struct, frozen=True):
    """What a runtime itself takes for each pod."""

    pod_fixed: dict[str, Quantity] | None = None


class RuntimeClassScheduling(Struct, frozen=True):
    """Which nodes have a runtime."""

    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class RuntimeClass(Described, frozen=True):
    """A node.k8s.io/v1 RuntimeClass; read only for objects that come from files."""

    overhead: Overhead = Overhead()
    scheduling: RuntimeClassScheduling = RuntimeClassScheduling()


class LimitRangeItem(Struct, frozen=True):
    """What containers, or other things of a `type`, get that say nothing, and what they may ask for."""

    type: str = ""
    default: dict[str, Quantity] | None = None
    default_request: dict[str, Quantity] | None = None
    max: dict[str, Quantity] | None = None
    min: dict[str, Quantity] | None = None


class LimitRangeSpec(Struct, frozen=True):
    """The limits of a namespace."""

    limits: list[LimitRangeItem] | None = None


class LimitRange(Described, frozen=True):
    """A v1 LimitRange; read only for objects that come from files."""

    spec: LimitRangeSpec = LimitRangeSpec()


class GangPolicy(Struct, frozen=True):
    """How many pods of the group start together, or none."""

    min_count: int = 0


class SchedulingPolicy(Struct, frozen=True):
    """Exactly one is set: `basic` places pods as they come, `gang` all or nothing."""

    basic: dict[str, Any] | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Struct, frozen=True):
    """The label of nodes in one value of which all pods of the group stand."""

    key: str = ""


class SchedulingConstraints(Struct, frozen=True):
    """Where the pods of a group stand together."""

    topology: list[TopologyConstraint] | None = None


class DisruptionMode(Struct, frozen=True):
    """Whether preemption takes the pods of a group one by one, or all of them."""

    single: dict[str, Any] | None = None
    all: dict[str, Any] | None = None


class PodGroupSpec(Struct, frozen=True):
    """What either kind asks for; the fields of the other are absent.

    `min_member` and `min_resources` are the CRD's, which has no defaults and requires nothing; the others are
    Kubernetes' own.
    """

    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    min_member: int | None = None
    min_resources: dict[str, Quantity] | None = None


class PodGroupStatus(Struct, frozen=True):
    """What is known of the group's life; the CRD's own controller writes other fields, which nobody reads here."""

    conditions: list[Condition] | None = None


class PodGroup(Described, frozen=True):
    """A scheduling.k8s.io/v1beta1 or a scheduling.x-k8s.io/v1alpha1 PodGroup."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
