"""What happens in a cluster that may make a rejected pod schedulable, and who wants to know."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag, StrEnum
from typing import Any


class ActionType(IntFlag):
    """What happened to an object; a registration may name several (upstream: kube-scheduler framework/types.go)."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_POD_LABEL = 128
    UPDATE_POD_SCALE_DOWN = 256
    UPDATE_POD_TOLERATION = 512
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1024
    UPDATE_NODE_DECLARED_FEATURE = 4096
    UPDATE = 2048 | 4 | 8 | 16 | 32 | 64 | 128 | 256 | 512 | 1024 | 4096


class EventResource(StrEnum):
    """The kind of object an event is about; a pod is told apart by whether a node has it."""

    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    SERVICE = "Service"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One kind of event; `label` is kube-scheduler's name for it in metrics and logs."""

    resource: EventResource
    action: ActionType
    label: str

    def __hash__(self) -> int:
        # Every event is looked up by its kind: a string remembers its hash, where enums work theirs out in Python.
        return hash(self.label)

    def matches(self, registered: "ClusterEvent") -> bool:
        """Whether a plugin that registered `registered` wants to hear of this event.

        The event must be as specific as the registration or more: a plain UPDATE does not reach a plugin that
        asked for label changes only, because an update that changed labels arrives as one (upstream:
        framework/types.go).
        """
        if self.resource is EventResource.WILDCARD:
            return True
        if registered.resource not in (self.resource, EventResource.WILDCARD):
            return False
        return self.action & registered.action == self.action


class QueueingHint(Enum):
    """Whether an event may make the pod schedulable."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"

    @classmethod
    def queue_if(cls, may_help: bool) -> "QueueingHint":
        """Return QUEUE for an event that may help, otherwise SKIP."""
        return cls.QUEUE if may_help else cls.SKIP


QueueingHintFn = Callable[[Any, Any, Any], QueueingHint]
"""`(pod: PodInfo, old: object | None, new: object | None)`: the rejected pod; the object before and after."""


@dataclass(frozen=True, slots=True)
class EventRegistration:
    """A plugin's wish to hear of an event; without a hint every such event wakes the pods it rejected."""

    event: ClusterEvent
    hint: QueueingHintFn | None = None


_ACTION_NAMES = {ActionType.ADD: "Add", ActionType.UPDATE: "Update", ActionType.DELETE: "Delete"}


def cluster_event(resource: EventResource, action: ActionType) -> ClusterEvent:
    """The event of a whole kind, labelled as kube-scheduler does, such as `PersistentVolumeClaimAdd`.

    A registration may join actions, as in `ADD | UPDATE`; its label joins their names by "|".
    """
    names = (name for single, name in _ACTION_NAMES.items() if action & single == single)
    return ClusterEvent(resource, action, f"{resource}{'|'.join(names)}")


NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD, "NodeAdd")
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE, "NodeDelete")
NODE_ALLOCATABLE = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE, "NodeUpdateNodeAllocatable")
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL, "NodeUpdateNodeLabel")
NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT, "NodeUpdateNodeTaint")
NODE_CONDITION = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_CONDITION, "NodeUpdateNodeCondition")
NODE_DECLARED_FEATURE = ClusterEvent(
    EventResource.NODE, ActionType.UPDATE_NODE_DECLARED_FEATURE, "NodeUpdateNodeDeclaredFeature"
)
ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD, "AssignedPodAdd")
ASSIGNED_POD_UPDATE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL, "AssignedPodUpdatePodLabel")
ASSIGNED_POD_SCALE_DOWN = ClusterEvent(
    EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN, "AssignedPodUpdatePodScaleDown"
)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, "AssignedPodDelete")
UNSCHEDULABLE_POD_ADD = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.ADD, "UnschedulablePodAdd")
UNSCHEDULABLE_POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE, "UnschedulablePodUpdate")
UNSCHEDULABLE_POD_LABEL = ClusterEvent(
    EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL, "UnschedulablePodUpdatePodLabel"
)
UNSCHEDULABLE_POD_SCALE_DOWN = ClusterEvent(
    EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCALE_DOWN, "UnschedulablePodUpdatePodScaleDown"
)
UNSCHEDULABLE_POD_GATES = ClusterEvent(
    EventResource.UNSCHEDULABLE_POD,
    ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
    "UnschedulablePodUpdatePodSchedulingGatesEliminated",
)
UNSCHEDULABLE_POD_TOLERATION = ClusterEvent(
    EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_TOLERATION, "UnschedulablePodUpdatePodToleration"
)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(
    EventResource.WILDCARD, ActionType.UPDATE | ActionType.ADD | ActionType.DELETE, "UnschedulableTimeout"
)
WILDCARD = ClusterEvent(EventResource.WILDCARD, ActionType.UPDATE | ActionType.ADD | ActionType.DELETE, "ForceActivate")
