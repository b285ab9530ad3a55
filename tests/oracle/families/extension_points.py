"""Profiles that lack a plugin at one extension point, with pods that the plugin would have something to say about."""

from collections.abc import Callable

from tests.oracle.case import Scene
from tests.oracle.dice import Dice
from tests.oracle.families import features, placement, pod_affinity, preemption, resources, spread, volumes
from tests.oracle.switched_off import SWITCHED_OFF, profile_without

_SCENES: dict[str, Callable[[Dice], Scene]] = {
    "NodeUnschedulable": placement.generate_taints,
    "NodeName": placement.generate_node_affinity,
    "TaintToleration": placement.generate_taints,
    "NodeAffinity": placement.generate_node_affinity,
    "NodePorts": placement.generate_ports_and_images,
    "ImageLocality": placement.generate_ports_and_images,
    "NodeResourcesFit": resources.generate,
    "NodeResourcesBalancedAllocation": resources.generate,
    "VolumeRestrictions": volumes.generate_limits,
    "NodeVolumeLimits": volumes.generate_limits,
    "VolumeBinding": volumes.generate_binding,
    "VolumeZone": volumes.generate_binding,
    "PodTopologySpread": spread.generate,
    "InterPodAffinity": pod_affinity.generate,
    "DynamicResources": resources.generate,
    "NodeDeclaredFeatures": features.generate,
    "DefaultPreemption": preemption.generate,
    "*": preemption.generate,
}


def cases(point: str) -> int:
    """How many cases are enough: two of every plugin, four where there are few."""
    return len(SWITCHED_OFF[point]) * (2 if len(SWITCHED_OFF[point]) > 3 else 4)


def generate(point: str, dice: Dice) -> Scene:
    """The plugins take turns, each with a scene of its own subject."""
    plugins = SWITCHED_OFF[point]
    plugin = plugins[dice.case % len(plugins)]
    scene = _SCENES[plugin](dice)
    for each in scene.incoming:
        each["spec"]["schedulerName"] = profile_without(plugin)
    return scene
