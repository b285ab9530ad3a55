"""What happens in a cluster that may make a rejected pod schedulable, and who wants to know."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Any


class ActionType(IntFlag):
    """What happened to an object; a registration may name several (upstream: staging kube-scheduler/framework/events.go)."""

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
    UPDATE = 2048 | 4 | 8 | 16 | 32 | 64 | 128 | 256 | 512 | 1024


class EventResource(str, Enum):
    """The kind of object an event is about; a pod is told apart by whether a node has it."""

    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One kind of event; `label` is its name in metrics and logs (kube-scheduler's: NodeAdd, AssignedPodDelete, ...)."""

    resource: EventResource
    action: ActionType
    label: str

    def matches(self, registered: "ClusterEvent") -> bool:
        """Whether a plugin that registered `registered` wants to hear of this event."""
        if registered.resource is EventResource.WILDCARD or self.resource is EventResource.WILDCARD:
            return True
        return registered.resource is self.resource and bool(registered.action & self.action)


class QueueingHint(Enum):
    """Whether an event may make the pod schedulable."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


QueueingHintFn = Callable[[Any, Any, Any], QueueingHint]
"""`(pod: PodInfo, old: object | None, new: object | None)`: the rejected pod, and the object before and after the event."""


@dataclass(frozen=True, slots=True)
class EventRegistration:
    """A plugin's wish to hear of an event; without a hint every such event wakes the pods it rejected."""

    event: ClusterEvent
    hint: QueueingHintFn | None = None


NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD, "NodeAdd")
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE, "NodeDelete")
NODE_ALLOCATABLE = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE, "NodeUpdateNodeAllocatable")
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL, "NodeUpdateNodeLabel")
NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT, "NodeUpdateNodeTaint")
NODE_CONDITION = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_CONDITION, "NodeUpdateNodeCondition")
ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD, "AssignedPodAdd")
ASSIGNED_POD_UPDATE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL, "AssignedPodUpdatePodLabel")
ASSIGNED_POD_SCALE_DOWN = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN, "AssignedPodUpdatePodScaleDown")
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, "AssignedPodDelete")
UNSCHEDULABLE_POD_ADD = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.ADD, "UnschedulablePodAdd")
UNSCHEDULABLE_POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE, "UnschedulablePodUpdate")
UNSCHEDULABLE_POD_GATES = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, "UnschedulablePodUpdatePodSchedulingGatesEliminated")
UNSCHEDULABLE_POD_TOLERATION = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_TOLERATION, "UnschedulablePodUpdatePodToleration")
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, ActionType.UPDATE | ActionType.ADD | ActionType.DELETE, "UnschedulableTimeout")
WILDCARD = ClusterEvent(EventResource.WILDCARD, ActionType.UPDATE | ActionType.ADD | ActionType.DELETE, "ForceActivate")
