"""Which events bring back the pods that a plugin rejected, as in the EventsToRegister of kube-scheduler 1.37.1.

Left out is DefaultPreemption, for which no pod waits here: a preemptor stays in flight until its calls are made.
"""

from bayplan.cache.cache import Cache
from bayplan.config.load import default_configuration
from bayplan.framework.cluster_event import ActionType
from bayplan.plugins.registry import build_frameworks

EXPECTED = {
    "InterPodAffinity": {
        "AssignedPod ADD",
        "AssignedPod UPDATE_POD_LABEL",
        "AssignedPod DELETE",
        "TargetPod UPDATE_POD_LABEL",
        "Node ADD",
        "Node UPDATE_NODE_LABEL",
    },
    "NodeAffinity": {"Node ADD", "Node UPDATE_NODE_LABEL"},
    "NodeDeclaredFeatures": {"Node ADD", "Node UPDATE_NODE_DECLARED_FEATURE", "TargetPod UPDATE"},
    "NodeName": {"Node ADD"},
    "NodePorts": {"AssignedPod DELETE", "Node ADD"},
    "NodeResourcesFit": {
        "AssignedPod DELETE",
        "Node ADD",
        "Node UPDATE_NODE_ALLOCATABLE",
        "AssignedPod UPDATE_POD_SCALE_DOWN",
        "TargetPod UPDATE_POD_SCALE_DOWN",
        *("DeviceClass ADD", "DeviceClass UPDATE"),
    },
    "NodeUnschedulable": {"Node ADD", "Node UPDATE_NODE_TAINT", "TargetPod UPDATE_POD_TOLERATION"},
    "NodeVolumeLimits": {
        "CSINode ADD",
        "CSINode UPDATE",
        "AssignedPod DELETE",
        "PersistentVolumeClaim ADD",
        "VolumeAttachment DELETE",
    },
    "PodTopologySpread": {
        "AssignedPod ADD",
        "AssignedPod UPDATE_POD_LABEL",
        "AssignedPod DELETE",
        "TargetPod UPDATE_POD_TOLERATION",
        "TargetPod UPDATE_POD_LABEL",
        "Node ADD",
        "Node DELETE",
        "Node UPDATE_NODE_LABEL",
        "Node UPDATE_NODE_TAINT",
    },
    "SchedulingGates": {"TargetPod UPDATE_POD_SCHEDULING_GATES_ELIMINATED"},
    "TaintToleration": {"Node ADD", "Node UPDATE_NODE_TAINT", "TargetPod UPDATE_POD_TOLERATION"},
    "VolumeBinding": {
        "StorageClass ADD",
        "StorageClass UPDATE",
        "PersistentVolumeClaim ADD",
        "PersistentVolumeClaim UPDATE",
        "PersistentVolume ADD",
        "PersistentVolume UPDATE",
        "Node ADD",
        "Node UPDATE_NODE_LABEL",
        "CSINode ADD",
        "CSINode UPDATE",
        "CSIDriver UPDATE",
        "CSIStorageCapacity ADD",
        "CSIStorageCapacity UPDATE",
    },
    "DynamicResources": {
        *("Node ADD", "Node UPDATE_NODE_LABEL", "Node UPDATE_NODE_ALLOCATABLE"),
        *("ResourceClaim ADD", "ResourceClaim UPDATE", "ResourceClaim DELETE"),
        "TargetPod UPDATE_POD_GENERATED_RESOURCE_CLAIM",
        # kube-scheduler tells nobody of devices that a pod gives back before they are written.
        "AssignedPod DELETE",
        *("DeviceClass ADD", "DeviceClass UPDATE", "ResourceSlice ADD", "ResourceSlice UPDATE"),
        # As kube-scheduler, to which a rule that changes is a change of the slices that it taints.
        *("DeviceTaintRule ADD", "DeviceTaintRule UPDATE", "DeviceTaintRule DELETE"),
    },
    "VolumeRestrictions": {"AssignedPod DELETE", "Node ADD", "PersistentVolumeClaim ADD"},
    "VolumeZone": {
        "StorageClass ADD",
        "Node ADD",
        "Node UPDATE_NODE_LABEL",
        "PersistentVolumeClaim ADD",
        "PersistentVolumeClaim UPDATE",
        "PersistentVolume ADD",
        "PersistentVolume UPDATE",
    },
}


def named(event):
    """The event as its resource and the actions it joins; UPDATE is all updates at once."""
    whole = [each for each in (ActionType.ADD, ActionType.UPDATE, ActionType.DELETE) if event.action & each == each]
    actions = whole or [event.action]
    return {f"{event.resource} {action.name}" for action in actions}


def test_every_plugin_registers_for_the_events_of_kube_scheduler():
    (framework,) = build_frameworks(default_configuration(), Cache().nodes).values()
    registered = {
        plugin: {name for each in registrations for name in named(each.event)}
        for plugin, registrations in framework.registrations().items()
    }
    assert registered == EXPECTED
