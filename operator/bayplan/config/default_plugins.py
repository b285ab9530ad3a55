"""kube-scheduler's plugins and its default plugin set (pkg/scheduler/apis/config/v1/default_plugins.go).

A plugin joins bayplan by its name in `IMPLEMENTED_PLUGINS`: it is then part of the default set and can be configured.
"""

from functools import cache
from typing import Final

from bayplan.config.types import PluginEntry, Plugins, PluginSet

UPSTREAM_DEFAULT_PLUGINS: Final = (
    PluginEntry("SchedulingGates"),
    PluginEntry("PrioritySort"),
    PluginEntry("NodeUnschedulable"),
    PluginEntry("NodeName"),
    PluginEntry("TaintToleration", 3),
    PluginEntry("NodeAffinity", 2),
    PluginEntry("NodePorts"),
    PluginEntry("NodeResourcesFit", 1),
    PluginEntry("VolumeRestrictions"),
    PluginEntry("NodeVolumeLimits"),
    PluginEntry("VolumeBinding"),
    PluginEntry("VolumeZone"),
    PluginEntry("PodTopologySpread", 2),
    PluginEntry("InterPodAffinity", 2),
    PluginEntry("DynamicResources", 2),
    PluginEntry("DefaultPreemption"),
    PluginEntry("NodeResourcesBalancedAllocation", 1),
    PluginEntry("ImageLocality", 1),
    PluginEntry("DefaultBinder"),
    PluginEntry("NodeDeclaredFeatures"),
)
"""What kube-scheduler 1.36 enables at `multiPoint`, in its order, with its weights."""

UPSTREAM_PLUGINS: Final = frozenset(entry.name for entry in UPSTREAM_DEFAULT_PLUGINS) | {
    "GangScheduling",
    "PodGroupPodsCount",
    "TopologyPlacementGenerator",
}
"""Every plugin of kube-scheduler 1.36."""

REMOVED_PLUGINS: Final = frozenset(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"))
"""Plugins kube-scheduler once had, with an error text of their own."""

IMPLEMENTED_PLUGINS: Final = frozenset(
    (
        "SchedulingGates",
        "PrioritySort",
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DefaultPreemption",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
        "DefaultBinder",
        "NodeDeclaredFeatures",
    )
)
"""The plugins bayplan has."""


@cache
def default_plugins(known_plugins: frozenset[str]) -> Plugins:
    """The default set, cut to what is known."""
    enabled = tuple(entry for entry in UPSTREAM_DEFAULT_PLUGINS if entry.name in known_plugins)
    return Plugins(multi_point=PluginSet(enabled=enabled))
