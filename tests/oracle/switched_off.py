"""Configurations in which a plugin is switched off at a single extension point, or a whole extension point is."""

from tests.oracle.case import Object
from tests.oracle.profiles import document, profile, without

_FILTERS_WITH_STATE = (
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
)
_SCORES_WITH_STATE = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
)
SWITCHED_OFF: dict[str, tuple[str, ...]] = {
    "preFilter": _FILTERS_WITH_STATE,
    "filter": ("NodeUnschedulable", "NodeName", "TaintToleration", *_FILTERS_WITH_STATE),
    "postFilter": ("DynamicResources", "DefaultPreemption", "*"),
    "preScore": _SCORES_WITH_STATE,
    "score": (*_SCORES_WITH_STATE, "DynamicResources", "ImageLocality"),
}
"""The plugins that are switched off by extension point, each in a profile of its own."""


def profile_without(plugin: str) -> str:
    """The name of the profile that lacks this plugin, or all of them for "*"."""
    return f"no-{'plugins' if plugin == '*' else plugin.lower()}"


def configuration_without(point: str) -> str:
    """The name of the configuration whose profiles each lack something at this extension point."""
    return f"without-{point.lower()}"


CONFIGURATIONS: dict[str, Object] = {
    configuration_without(point): document(
        *(profile(profile_without(plugin), without(point, plugin)) for plugin in plugins)
    )
    for point, plugins in SWITCHED_OFF.items()
}
"""Documents by name."""
