"""The pods and nodes of a sequence of faults, as the API server stores them."""

from dataclasses import replace

from tests.faults.api_server import Object

from bayplan.config.load import default_configuration
from bayplan.config.types import NodeResourcesFitArgs, SchedulerConfiguration


def pod_object(
    name: str,
    *,
    cpu: int,
    priority: int = 0,
    scheduler: str = "bayplan",
    zone: str = "",
    tolerates: bool = False,
    gated: bool = False,
    never: bool = False,
    grace: int = 2,
    node: str = "",
    nominated: str = "",
    claim: str = "",
) -> Object:
    """A pod that asks for `cpu` milli-CPU."""
    spec: Object = {
        "schedulerName": scheduler,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": f"{cpu}m"}}}],
        "priority": priority,
        "preemptionPolicy": "Never" if never else "PreemptLowerPriority",
        "terminationGracePeriodSeconds": grace,
    }
    spec |= {"nodeSelector": {"zone": zone}} if zone else {}
    spec |= {"tolerations": [{"operator": "Exists"}]} if tolerates else {}
    spec |= {"schedulingGates": [{"name": "gate"}]} if gated else {}
    spec |= {"nodeName": node} if node else {}
    spec |= {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]} if claim else {}
    status: Object = {"phase": "Pending"} | ({"nominatedNodeName": nominated} if nominated else {})
    metadata = {"name": name, "namespace": "default", "labels": {"app": "a"}}
    return {"metadata": metadata, "spec": spec, "status": status}


def node_object(
    name: str, *, cpu: int, zone: str, pods: int = 110, tainted: bool = False, cordoned: bool = False
) -> Object:
    """A node of `cpu` cores."""
    spec: Object = {"unschedulable": True} if cordoned else {}
    if tainted:
        spec["taints"] = [{"key": "t", "effect": "NoSchedule"}]
    allocatable = {"cpu": str(cpu), "memory": "64Gi", "pods": str(pods)}
    return {"metadata": {"name": name, "labels": {"zone": zone}}, "spec": spec, "status": {"allocatable": allocatable}}


def spreading() -> SchedulerConfiguration:
    """The default configuration with pods spread instead of packed."""
    packing = default_configuration()
    (profile,) = packing.profiles
    config = {**profile.plugin_config, "NodeResourcesFit": NodeResourcesFitArgs()}
    return replace(packing, profiles=(replace(profile, plugin_config=config),))
