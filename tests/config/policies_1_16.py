"""Policies as people had them in the time of Kubernetes 1.16: names and weights of its samples and of its documents."""

from typing import Any

from tests.config.configurations import POLICY


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def weighted(**weights: int) -> list[dict[str, Any]]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


EXTENDER = {
    "urlPrefix": "http://127.0.0.1:12346/scheduler",
    "filterVerb": "filter",
    "bindVerb": "bind",
    "prioritizeVerb": "prioritize",
    "weight": 5,
    "enableHttps": False,
    "nodeCacheCapable": False,
}

_SMALL = {
    "predicates": named("PodFitsHostPorts", "PodFitsResources", "NoDiskConflict", "MatchNodeSelector", "HostName"),
    "priorities": weighted(
        LeastRequestedPriority=1, BalancedResourceAllocation=1, ServiceSpreadingPriority=1, EqualPriority=1
    ),
    "hardPodAffinitySymmetricWeight": 10,
    "alwaysCheckAllPredicates": False,
}
SAMPLE = POLICY | _SMALL | {"predicates": [*_SMALL["predicates"], {"name": "NoVolumeZoneConflict"}]}
"""examples/scheduler-policy-config.json."""
SAMPLE_WITH_EXTENDER = POLICY | _SMALL | {"extenders": [EXTENDER | {"apiVersion": "v1beta1"}]}
"""examples/scheduler-policy-config-with-extender.json."""
LATER_SAMPLE = POLICY | {
    "predicates": named(
        "CheckNodeUnschedulable",
        "CheckVolumeBinding",
        "GeneralPredicates",
        "MatchInterPodAffinity",
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "MaxAzureDiskVolumeCount",
        "MaxCSIVolumeCountPred",
        "NoDiskConflict",
        "NoVolumeZoneConflict",
        "PodToleratesNodeTaints",
    ),
    "priorities": weighted(
        ServiceSpreadingPriority=1,
        EqualPriority=1,
        ImageLocalityPriority=1,
        MostRequestedPriority=1,
        SelectorSpreadPriority=1,
        InterPodAffinityPriority=1,
        LeastRequestedPriority=1,
        BalancedResourceAllocation=1,
        NodePreferAvoidPodsPriority=10000,
        NodeAffinityPriority=1,
        TaintTolerationPriority=1,
    ),
    "extenders": [EXTENDER],
    "hardPodAffinitySymmetricWeight": 10,
    "alwaysCheckAllPredicates": False,
}
"""scheduler-policy-config.json of the examples repository, without a priority that Kubernetes never had."""

DEFAULT_PRIORITIES = weighted(
    SelectorSpreadPriority=1,
    InterPodAffinityPriority=1,
    LeastRequestedPriority=1,
    BalancedResourceAllocation=1,
    NodePreferAvoidPodsPriority=10000,
    NodeAffinityPriority=1,
    TaintTolerationPriority=1,
    ImageLocalityPriority=1,
)
"""What DefaultProvider scored by."""

FOO, BAR = "intel.com/foo", "intel.com/bar"
SHAPE, RESOURCES = ((0, 0), (100, 10)), {FOO: 3, BAR: 5}
RATIO = {
    "name": "RequestedToCapacityRatioPriority",
    "weight": 2,
    "argument": {
        "requestedToCapacityRatioArguments": {
            "shape": [{"utilization": utilization, "score": score} for utilization, score in SHAPE],
            "resources": [{"name": name, "weight": weight} for name, weight in RESOURCES.items()],
        }
    },
}
DOCUMENTED = POLICY | {"priorities": [*DEFAULT_PRIORITIES, RATIO]}
"""The documents' Policy: the ratio, with the default priorities where it has an ellipsis."""
