"""What the decoders demand of fields beyond their types, as JSON Schema says it.

The decoders have these rules as code, with kube-scheduler's texts. A test compares the two.
"""

from collections.abc import Mapping
from typing import Any, Final

_DURATION: Final = r"(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
ANY_DURATION: Final = f"^[-+]?{_DURATION}"
"""How durations are written."""
_NOT_NEGATIVE: Final = f"^(?!-.*[1-9])[-+]?{_DURATION}"
BASE64: Final = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
"""How key material is written."""
_LABEL_NAME: Final = "^([^/]+/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
_PERCENTAGE: Final = {"minimum": 0, "maximum": 100}
RULES: Final[Mapping[str, Mapping[str, Any]]] = {
    "SchedulerConfiguration.parallelism": {"minimum": 1},
    "SchedulerConfiguration.percentageOfNodesToScore": _PERCENTAGE,
    "SchedulerConfiguration.podInitialBackoffSeconds": {"minimum": 1},
    "SchedulerConfiguration.podMaxBackoffSeconds": {"minimum": 1},
    "Profile.percentageOfNodesToScore": _PERCENTAGE,
    "Profile.schedulerName": {"minLength": 1},
    "ClientConnection.burst": {"minimum": 0},
    "ClientConnection.qps": {"minimum": -1e38, "maximum": 1e38},
    "ExtenderManagedResource.name": {"pattern": "^([^/]+/.+)?$"},
    "ResourceSpec.weight": _PERCENTAGE,
    "UtilizationShapePoint.utilization": _PERCENTAGE,
    "UtilizationShapePoint.score": {"minimum": 0, "maximum": 10},
    "WeightedStrategy.weight": {"minimum": 1},
    "NodeResourcesFitArgs.ignoredResources": {"items": {"type": "string", "pattern": _LABEL_NAME}},
    "NodeResourcesFitArgs.ignoredResourceGroups": {
        "items": {"type": "string", "pattern": _LABEL_NAME.replace("([^/]+/)?", "")}
    },
    "InterPodAffinityArgs.hardPodAffinityWeight": _PERCENTAGE,
    "DefaultPreemptionArgs.minCandidateNodesPercentage": _PERCENTAGE,
    "DefaultPreemptionArgs.minCandidateNodesAbsolute": {"minimum": 0},
    "DefaultPreemptionArgs.minimumRuntimeSeconds": {"minimum": 0},
    "DefaultPreemptionArgs.preemptionDelaySeconds": {"minimum": 0},
    "ResourceHeadroom.amount": {"type": ["string", "number"]},
    "ResourceHeadroom.name": {"minLength": 1},
    "ResourceHeadroom.percentage": _PERCENTAGE,
    "VolumeBindingArgs.bindTimeoutSeconds": {"minimum": 0},
    "DynamicResourcesArgs.filterTimeout": {"pattern": _NOT_NEGATIVE},
    "DynamicResourcesArgs.bindingTimeout": {"pattern": _NOT_NEGATIVE},
    "TopologySpreadConstraint.maxSkew": {"minimum": 1},
    "TopologySpreadConstraint.topologyKey": {"pattern": _LABEL_NAME},
    "TopologySpreadConstraint.whenUnsatisfiable": {"enum": ["DoNotSchedule", "ScheduleAnyway"]},
    "NodeSelectorRequirement.operator": {"enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]},
}
"""What a field may be beyond its type, by the type's name and the key in the file."""
REQUIRED: Final[Mapping[str, list[str]]] = {
    "ResourceHeadroom": ["name"],
    "ExtenderManagedResource": ["name"],
    "ScoringStrategy": ["type"],
    "WeightedStrategy": ["type"],
    "TopologySpreadConstraint": ["maxSkew", "topologyKey", "whenUnsatisfiable"],
    "NodeSelectorRequirement": ["operator"],
}
"""The fields that an object of a type must have, by the type's name."""
ELECTION_RULES: Final = {
    "if": {"properties": {"leaderElect": {"const": False}}, "required": ["leaderElect"]},
    "else": {
        "properties": {
            **{
                name: {"anyOf": [{"type": "null"}, {"type": "string", "pattern": _NOT_NEGATIVE}]}
                for name in ("leaseDuration", "renewDeadline", "retryPeriod")
            },
            "resourceLock": {"enum": ["leases", "", None]},
        }
    },
}
"""Of LeaderElection: nothing is checked where nobody is elected."""
RATIO_RULES: Final = {
    "if": {"properties": {"type": {"const": "RequestedToCapacityRatio"}}},
    "then": {"properties": {"requestedToCapacityRatio": {"type": "object"}}, "required": ["requestedToCapacityRatio"]},
    "else": {"properties": {"requestedToCapacityRatio": {"type": "null"}}},
}
"""Of a scoring strategy: only one type has a function, and that one must."""
