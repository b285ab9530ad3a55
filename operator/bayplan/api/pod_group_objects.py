"""The two kinds called PodGroup: the one of Kubernetes itself, and the one that scheduler-plugins brings as a CRD."""

from typing import Any

from bayplan.api.meta_objects import ObjectMeta, Quantity, Struct


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


class PodGroupCondition(Struct, frozen=True):
    """One condition of a group, written by whichever scheduler places it, or preempts it."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class PodGroupStatus(Struct, frozen=True):
    """What is known of the group's life; the CRD's own controller writes other fields, which nobody reads here."""

    conditions: list[PodGroupCondition] | None = None


class PodGroup(Struct, frozen=True):
    """A scheduling.k8s.io/v1beta1 or a scheduling.x-k8s.io/v1alpha1 PodGroup."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
