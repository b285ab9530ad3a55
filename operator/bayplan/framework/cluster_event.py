"""What happens in a cluster that may make a rejected pod schedulable, and who wants to know."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag, StrEnum
from functools import cache
from typing import Any

from bayplan.api.objects import Node
from bayplan.cache.pod_info import PodInfo


class ActionType(IntFlag):
    """What happened to an object; a registration may name several (upstream: kube-scheduler framework/types.go).

    Annotations are not read, so no event tells of their change.
    """

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_POD_LABEL = 128
    UPDATE_POD_SCALE_DOWN = 256
    UPDATE_POD_TOLERATION = 512
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1024
    UPDATE_NODE_DECLARED_FEATURE = 4096
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 8192
    # The bit of its own stands for changes that no kind above names.
    UPDATE = (
        2048
        | UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
    )


class EventResource(StrEnum):
    """The kind of object an event is about.

    A pod is told apart by whether it has a node, and among those without by whether it is the very pod that a hint is
    asked about, the target. Registrations may name all three as POD.
    """

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnscheduledPod"
    TARGET_POD = "TargetPod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    DEVICE_TAINT_RULE = "DeviceTaintRule"
    WILDCARD = "*"


_PODS = frozenset({EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD, EventResource.TARGET_POD})


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
        if registered.resource is EventResource.POD:
            if self.resource not in _PODS:
                return False
        elif registered.resource not in (self.resource, EventResource.WILDCARD):
            return False
        return self.action & registered.action == self.action


class QueueingHint(Enum):
    """Whether an event may make the pod schedulable."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


QueueingHintFn = Callable[[PodInfo, Any, Any], QueueingHint]
"""`(pod, old: object | None, new: object | None)`: the rejected pod; the object before and after."""


def hint(may_help: Callable[[PodInfo, Any, Any], bool], *, old: type = object, new: type = object) -> QueueingHintFn:
    """Make a hint of what tells whether an event may help a pod, from the object before and after.

    It is asked about objects of these kinds only; an event about anything else queues the pod.
    """
    queue, skip = QueueingHint.QUEUE, QueueingHint.SKIP

    def queueing_hint(pod: PodInfo, before: object, after: object) -> QueueingHint:
        is_known = isinstance(before, old) and isinstance(after, new)
        return queue if not is_known or may_help(pod, before, after) else skip

    return queueing_hint


def hint_of_change(read: Callable[[Any], object], kind: type) -> QueueingHintFn:
    """Make a hint that queues every pod where what is read of an object of this kind is another than before."""
    return hint(lambda _, old, new: read(old) != read(new), old=kind, new=kind)


@dataclass(frozen=True, slots=True)
class EventRegistration:
    """A plugin's wish to hear of an event; without a hint every such event wakes the pods it rejected."""

    event: ClusterEvent
    hint: QueueingHintFn | None = None


_ACTION_NAMES = {ActionType.ADD: "Add", ActionType.UPDATE: "Update", ActionType.DELETE: "Delete"}


@cache
def cluster_event(resource: EventResource, action: ActionType) -> ClusterEvent:
    """The event of a whole kind, labelled as kube-scheduler does, such as `PersistentVolumeClaimAdd`.

    A registration may join actions, as in `ADD | UPDATE`; its label joins their names by "|".
    """
    names = [name for single, name in _ACTION_NAMES.items() if action & single == single]
    if not names:
        names = [(action.name or "").title().replace("_", "")]
    return ClusterEvent(resource, action, f"{resource}{'|'.join(names)}")


NODE_ADD = cluster_event(EventResource.NODE, ActionType.ADD)
NODE_DELETE = cluster_event(EventResource.NODE, ActionType.DELETE)
NODE_ALLOCATABLE = cluster_event(EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE)
NODE_LABEL = cluster_event(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
NODE_TAINT = cluster_event(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
NODE_CONDITION = cluster_event(EventResource.NODE, ActionType.UPDATE_NODE_CONDITION)
NODE_DECLARED_FEATURE = cluster_event(EventResource.NODE, ActionType.UPDATE_NODE_DECLARED_FEATURE)
ASSIGNED_POD_ADD = cluster_event(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_LABEL = cluster_event(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL)
ASSIGNED_POD_SCALE_DOWN = cluster_event(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN)
ASSIGNED_POD_DELETE = cluster_event(EventResource.ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULED_POD_ADD = cluster_event(EventResource.UNSCHEDULED_POD, ActionType.ADD)
TARGET_POD_UPDATE = cluster_event(EventResource.TARGET_POD, ActionType.UPDATE)
TARGET_POD_LABEL = cluster_event(EventResource.TARGET_POD, ActionType.UPDATE_POD_LABEL)
TARGET_POD_SCALE_DOWN = cluster_event(EventResource.TARGET_POD, ActionType.UPDATE_POD_SCALE_DOWN)
TARGET_POD_GATES = cluster_event(EventResource.TARGET_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
TARGET_POD_CLAIMS = cluster_event(EventResource.TARGET_POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
TARGET_POD_TOLERATION = cluster_event(EventResource.TARGET_POD, ActionType.UPDATE_POD_TOLERATION)
CLAIM_ADD = cluster_event(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
CLAIM_ADD_OR_UPDATE = cluster_event(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD | ActionType.UPDATE)
VOLUME_ADD_OR_UPDATE = cluster_event(EventResource.PERSISTENT_VOLUME, ActionType.ADD | ActionType.UPDATE)
VOLUME_ATTACHMENT_DELETE = cluster_event(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE)
STORAGE_CLASS_ADD = cluster_event(EventResource.STORAGE_CLASS, ActionType.ADD)
STORAGE_CLASS_ADD_OR_UPDATE = cluster_event(EventResource.STORAGE_CLASS, ActionType.ADD | ActionType.UPDATE)
STORAGE_CAPACITY_ADD_OR_UPDATE = cluster_event(EventResource.CSI_STORAGE_CAPACITY, ActionType.ADD | ActionType.UPDATE)
CSI_NODE_ADD = cluster_event(EventResource.CSI_NODE, ActionType.ADD)
CSI_NODE_UPDATE = cluster_event(EventResource.CSI_NODE, ActionType.UPDATE)
CSI_NODE_ADD_OR_UPDATE = cluster_event(EventResource.CSI_NODE, ActionType.ADD | ActionType.UPDATE)
CSI_DRIVER_UPDATE = cluster_event(EventResource.CSI_DRIVER, ActionType.UPDATE)
RESOURCE_CLAIM_ANY = cluster_event(EventResource.RESOURCE_CLAIM, ActionType.ADD | ActionType.UPDATE | ActionType.DELETE)
RESOURCE_SLICE_ADD_OR_UPDATE = cluster_event(EventResource.RESOURCE_SLICE, ActionType.ADD | ActionType.UPDATE)
DEVICE_CLASS_ADD_OR_UPDATE = cluster_event(EventResource.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE)
DEVICE_TAINT_RULE_ANY = cluster_event(
    EventResource.DEVICE_TAINT_RULE, ActionType.ADD | ActionType.UPDATE | ActionType.DELETE
)
WILDCARD = ClusterEvent(EventResource.WILDCARD, ActionType.ADD | ActionType.UPDATE | ActionType.DELETE, "*")
"""For registrations: whatever happens."""


def node_changes(old: Node, new: Node) -> list[ClusterEvent]:
    """The kinds of change between two versions of a node (upstream: eventhandlers.go, framework/events.go)."""
    changes = []
    if old.status.allocatable != new.status.allocatable:
        changes.append(NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        changes.append(NODE_LABEL)
    if old.spec.taints != new.spec.taints or (old.spec.unschedulable and not new.spec.unschedulable):
        changes.append(NODE_TAINT)
    before = {(c.type, c.status) for c in old.status.conditions or ()}
    if before != {(c.type, c.status) for c in new.status.conditions or ()}:
        changes.append(NODE_CONDITION)
    if (old.status.declared_features or []) != (new.status.declared_features or []):
        changes.append(NODE_DECLARED_FEATURE)
    return changes
