"""What became of every predicate, priority and argument that a scheduling Policy of Kubernetes 1.16 may name.

Pure data, and the same as the tables of docs/configuration.md. Sources: pkg/scheduler/algorithmprovider/defaults and
pkg/scheduler/factory/plugins.go of release 1.16 for the names; pkg/scheduler/framework/plugins/legacy_registry.go of
release 1.18 for the plugins that took over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bayplan.config.types import ScoringStrategy, ScoringStrategyType, UtilizationShapePoint


@dataclass(frozen=True, slots=True)
class Successor:
    """What does the work of an old name today."""

    plugins: tuple[str, ...] = ()
    """Plugins that filter, for a predicate, or score, for a priority."""
    note: str = ""
    """What is different from 1.16; empty where nothing is that a user has to know."""
    refused: str = ""
    """Why the name cannot be used; empty where it can."""


PREDICATES: Final[Mapping[str, Successor]] = {
    "GeneralPredicates": Successor(("NodeName", "NodeAffinity", "NodePorts", "NodeResourcesFit")),
    "HostName": Successor(("NodeName",)),
    "PodFitsHostPorts": Successor(("NodePorts",)),
    "PodFitsPorts": Successor(("NodePorts",)),
    "PodFitsResources": Successor(("NodeResourcesFit",)),
    "MatchNodeSelector": Successor(("NodeAffinity",)),
    "PodToleratesNodeTaints": Successor(("TaintToleration",)),
    "PodToleratesNodeNoExecuteTaints": Successor(("TaintToleration",)),
    "CheckNodeUnschedulable": Successor(("NodeUnschedulable",)),
    # Node conditions became taints in 1.12, and these predicates were dropped in favour of them.
    "CheckNodeCondition": Successor(("NodeUnschedulable", "TaintToleration")),
    "CheckNodeMemoryPressure": Successor(("TaintToleration",)),
    "CheckNodeDiskPressure": Successor(("TaintToleration",)),
    "CheckNodePIDPressure": Successor(("TaintToleration",)),
    "NoDiskConflict": Successor(("VolumeRestrictions",)),
    "NoVolumeZoneConflict": Successor(("VolumeZone",)),
    "CheckVolumeBinding": Successor(("VolumeBinding",)),
    "MaxCSIVolumeCountPred": Successor(("NodeVolumeLimits",)),
    "MaxEBSVolumeCount": Successor(("NodeVolumeLimits",)),
    "MaxGCEPDVolumeCount": Successor(("NodeVolumeLimits",)),
    "MaxAzureDiskVolumeCount": Successor(("NodeVolumeLimits",)),
    "MaxCinderVolumeCount": Successor(("NodeVolumeLimits",)),
    "MatchInterPodAffinity": Successor(("InterPodAffinity",)),
    "EvenPodsSpread": Successor(("PodTopologySpread",)),
    "CheckNodeLabelPresence": Successor(refused="needs the argument labelsPresence"),
    "CheckServiceAffinity": Successor(refused="needs the argument serviceAffinity, which has no successor"),
}
"""Predicates by name."""

DEFAULT_PREDICATES: Final = (
    "NoVolumeZoneConflict",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "PodToleratesNodeTaints",
    "CheckVolumeBinding",
    "CheckNodeUnschedulable",
    # Behind a gate in 1.16, on by default later: what pods demand of their spread must hold.
    "EvenPodsSpread",
)
"""What filters when a policy has no `predicates`."""

MANDATORY_PREDICATES: Final = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
"""What a policy cannot switch off."""

_OTHER_SPREAD: Final = "PodTopologySpread's system defaults spread over nodes and zones by a formula of their own"

PRIORITIES: Final[Mapping[str, Successor]] = {
    # It scores all nodes alike, which decides nothing.
    "EqualPriority": Successor(),
    "LeastRequestedPriority": Successor(("NodeResourcesFit",)),
    "MostRequestedPriority": Successor(("NodeResourcesFit",)),
    "RequestedToCapacityRatioPriority": Successor(("NodeResourcesFit",)),
    "BalancedResourceAllocation": Successor(
        ("NodeResourcesBalancedAllocation",),
        note="keeps the measure of 1.16 as bayplan.io.measure, which kube-scheduler does not have",
    ),
    "NodeAffinityPriority": Successor(("NodeAffinity",)),
    "TaintTolerationPriority": Successor(("TaintToleration",)),
    "ImageLocalityPriority": Successor(("ImageLocality",)),
    "InterPodAffinityPriority": Successor(("InterPodAffinity",)),
    "EvenPodsSpreadPriority": Successor(("PodTopologySpread",)),
    "SelectorSpreadPriority": Successor(("PodTopologySpread",), note=_OTHER_SPREAD),
    "ServiceSpreadingPriority": Successor(("PodTopologySpread",), note=_OTHER_SPREAD),
    "NodePreferAvoidPodsPriority": Successor(
        note="is dropped: the annotation it read is gone from Kubernetes; taint the node with PreferNoSchedule"
    ),
    "ResourceLimitsPriority": Successor(
        note="is dropped: kube-scheduler has it no longer, and limits do not choose a node"
    ),
}
"""Priorities by name."""

DEFAULT_PRIORITIES: Final = (
    "SelectorSpreadPriority",
    "InterPodAffinityPriority",
    "LeastRequestedPriority",
    "BalancedResourceAllocation",
    "NodePreferAvoidPodsPriority",
    "NodeAffinityPriority",
    "TaintTolerationPriority",
    "ImageLocalityPriority",
)
"""What scores, each with weight 1, when a policy has no `priorities`; the one without a plugin had 10,000."""

SPREADS: Final = frozenset(("SelectorSpreadPriority", "ServiceSpreadingPriority"))
"""Priorities that PodTopologySpread's system defaults take the place of."""

STRATEGIES: Final[Mapping[str, ScoringStrategy]] = {
    "LeastRequestedPriority": ScoringStrategy(ScoringStrategyType.LEAST_ALLOCATED),
    "MostRequestedPriority": ScoringStrategy(ScoringStrategyType.MOST_ALLOCATED),
    # Without arguments: the emptier the better.
    "RequestedToCapacityRatioPriority": ScoringStrategy(
        ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO,
        shape=(UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0)),
    ),
}
"""Priorities that are scoring strategies of NodeResourcesFit."""

RATIO: Final = "requestedToCapacityRatioArguments"
SERVICE_ANTI_AFFINITY: Final = "serviceAntiAffinity"
LABEL_PREFERENCE: Final = "labelPreference"
LABELS_PRESENCE: Final = "labelsPresence"
SERVICE_AFFINITY: Final = "serviceAffinity"

PREDICATE_ARGUMENTS: Final[Mapping[str, Successor]] = {
    LABELS_PRESENCE: Successor(
        ("NodeAffinity",), note="becomes NodeAffinity's addedAffinity; nodeSelector and affinity of pods hold as well"
    ),
    SERVICE_AFFINITY: Successor(
        refused="has no successor; give the pods a podAffinity with these labels as topologyKey"
    ),
}
"""What `argument` of a predicate may hold; the predicate may then have any name."""

PRIORITY_ARGUMENTS: Final[Mapping[str, Successor]] = {
    RATIO: Successor(("NodeResourcesFit",)),
    LABEL_PREFERENCE: Successor(
        ("NodeAffinity",), note="becomes NodeAffinity's addedAffinity; what pods prefer themselves scores as well"
    ),
    SERVICE_ANTI_AFFINITY: Successor(
        ("PodTopologySpread",),
        note="becomes a default constraint of PodTopologySpread, which spreads by a formula of its own",
    ),
}
"""What `argument` of a priority may hold; the priority may then have any name."""

RESOURCE_NAMES: Final[Mapping[str, str]] = {"CPU": "cpu", "Memory": "memory"}
"""Spellings of the 1.16 documentation."""
