"""What the predicates and priorities of kube-scheduler 1.16 are called today (pkg/scheduler/algorithm, release 1.16).

A name maps to the plugins that do its work; an empty tuple has no successor here. Whether a plugin exists in bayplan is
decided where the policy is read.
"""

from collections.abc import Mapping
from typing import Final

from bayplan.config.types import ScoringStrategyType, UtilizationShapePoint

NO_SUCCESSOR: Final = ("",)
"""Known names that nothing does the work of."""

PREDICATES: Final[Mapping[str, tuple[str, ...]]] = {
    "GeneralPredicates": ("NodeName", "NodeAffinity", "NodePorts", "NodeResourcesFit"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "PodFitsResources": ("NodeResourcesFit",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "PodToleratesNodeNoExecuteTaints": NO_SUCCESSOR,
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    # Node conditions became taints in 1.12 and these predicates were dropped in favour of them.
    "CheckNodeCondition": ("NodeUnschedulable", "TaintToleration"),
    "CheckNodeMemoryPressure": ("TaintToleration",),
    "CheckNodeDiskPressure": ("TaintToleration",),
    "CheckNodePIDPressure": ("TaintToleration",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "CheckNodeLabelPresence": NO_SUCCESSOR,
    "CheckServiceAffinity": NO_SUCCESSOR,
}
"""Predicates to the filter plugins that replace them."""

MANDATORY_FILTERS: Final = ("NodeUnschedulable", "TaintToleration")
"""Filters a policy cannot switch off: 1.16 runs CheckNodeUnschedulable and PodToleratesNodeTaints whatever it lists."""

PRIORITIES: Final[Mapping[str, tuple[str, ...]]] = {
    "EqualPriority": (),
    "LeastRequestedPriority": ("NodeResourcesFit",),
    "MostRequestedPriority": ("NodeResourcesFit",),
    "RequestedToCapacityRatioPriority": ("NodeResourcesFit",),
    "BalancedResourceAllocation": ("NodeResourcesBalancedAllocation",),
    "NodeAffinityPriority": ("NodeAffinity",),
    "TaintTolerationPriority": ("TaintToleration",),
    "ImageLocalityPriority": ("ImageLocality",),
    "InterPodAffinityPriority": ("InterPodAffinity",),
    "EvenPodsSpreadPriority": ("PodTopologySpread",),
    "SelectorSpreadPriority": NO_SUCCESSOR,
    "ServiceSpreadingPriority": NO_SUCCESSOR,
    "NodePreferAvoidPodsPriority": NO_SUCCESSOR,
    "ResourceLimitsPriority": NO_SUCCESSOR,
}
"""Priorities to the score plugins that replace them; EqualPriority scores all nodes alike and needs none."""

DEFAULT_PRIORITIES: Final = (
    "LeastRequestedPriority",
    "BalancedResourceAllocation",
    "NodeAffinityPriority",
    "TaintTolerationPriority",
    "ImageLocalityPriority",
    "InterPodAffinityPriority",
)
"""What 1.16 scores by, each with weight 1, when a policy has no `priorities`; those without a plugin are left out."""

STRATEGIES: Final[Mapping[str, ScoringStrategyType]] = {
    "LeastRequestedPriority": ScoringStrategyType.LEAST_ALLOCATED,
    "MostRequestedPriority": ScoringStrategyType.MOST_ALLOCATED,
    "RequestedToCapacityRatioPriority": ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO,
}
"""Priorities that are scoring strategies of NodeResourcesFit."""

DEFAULT_SHAPE: Final = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
"""The shape of a RequestedToCapacityRatioPriority without arguments: the emptier the better."""

RESOURCE_NAMES: Final[Mapping[str, str]] = {"CPU": "cpu", "Memory": "memory"}
"""Spellings of the 1.16 documentation."""
