"""The configurations kube-scheduler records under; bayplan loads the same documents."""

from tests.oracle import extenders, switched_off
from tests.oracle.case import Object
from tests.oracle.profiles import (
    GPU,
    OTHER_SCHEDULER,
    document,
    enabled,
    profile,
    strategy,
    without,
)


def _preempting(**args: int) -> Object:
    return document(profile(DefaultPreemption=args))


def _term(key: str, operator: str, *values: str) -> Object:
    expression: Object = {"key": key, "operator": operator}
    if values:
        expression["values"] = list(values)
    return {"matchExpressions": [expression]}


_RTCR = "RequestedToCapacityRatio"

_ADDED_AFFINITY = {
    "addedAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [_term("disk", "Exists"), _term("tier", "NotIn", "dev")]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 7, "preference": _term("disk", "In", "ssd", "nvme")},
            {"weight": 30, "preference": _term("cores", "Gt", "4")},
        ],
    }
}

_SPREAD_LIST = {
    "defaultingType": "List",
    "defaultConstraints": [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"},
        {"maxSkew": 2, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"},
    ],
}

_OWN_PLUGINS = {
    "multiPoint": {
        "disabled": [{"name": "*"}],
        "enabled": enabled(
            "PrioritySort",
            "DefaultBinder",
            ("NodeResourcesFit", 5),
            "NodeName",
            ("NodeAffinity", 1),
            "NodeUnschedulable",
            ("TaintToleration", 2),
            "NodePorts",
            ("ImageLocality", 9),
        ),
    }
}

_NO_SCORES = {**without("preScore", "*"), **without("score", "*")}

CONFIGURATIONS: dict[str, Object] = {
    "default": document(profile()),
    "most-allocated": document(profile(NodeResourcesFit=strategy("MostAllocated", cpu=1, memory=1))),
    "most-weighted": document(
        profile(NodeResourcesFit=strategy("MostAllocated", cpu=3, memory=1, gpu=20, storage=2, huge=1))
    ),
    "least-weighted": document(
        profile(NodeResourcesFit=strategy("LeastAllocated", cpu=1, memory=4, gpu=7, fpga=2, storage=1))
    ),
    "ratio-packing": document(profile(NodeResourcesFit=strategy(_RTCR, [(0, 0), (100, 10)], cpu=1, memory=1, gpu=3))),
    "ratio-falling": document(
        profile(NodeResourcesFit=strategy(_RTCR, [(0, 10), (33, 7), (71, 8), (100, 0)], cpu=2, memory=1, gpu=5))
    ),
    "ratio-step": document(
        profile(
            NodeResourcesFit=strategy(_RTCR, [(10, 1), (50, 1), (51, 9), (90, 10)], gpu=10, fpga=3, storage=1, cpu=1)
        )
    ),
    "balanced-many": document(
        profile(
            plugins={"score": {"enabled": enabled(("NodeResourcesBalancedAllocation", 13))}},
            NodeResourcesBalancedAllocation={
                "resources": [
                    {"name": name, "weight": 1} for name in ("cpu", "memory", GPU, "ephemeral-storage", "hugepages-2Mi")
                ]
            },
        )
    ),
    "balanced-one": document(
        profile(NodeResourcesBalancedAllocation={"resources": [{"name": GPU, "weight": 1}, {"name": "cpu"}]})
    ),
    "ignored-resources": document(
        profile(
            NodeResourcesFit={
                **strategy("LeastAllocated", cpu=1, gpu=2, fpga=2),
                "ignoredResources": [GPU],
                "ignoredResourceGroups": ["vendor.io"],
            }
        )
    ),
    "added-affinity": document(profile(NodeAffinity=_ADDED_AFFINITY)),
    "weights": document(
        profile(
            plugins={
                "score": {
                    "enabled": enabled(
                        ("ImageLocality", 40), ("TaintToleration", 1), ("NodeAffinity", 17), ("NodeResourcesFit", 6)
                    )
                },
            }
        )
    ),
    "pod-weights": document(
        profile(
            plugins={
                "multiPoint": {"enabled": enabled(("PodTopologySpread", 11))},
                "score": {"enabled": enabled(("InterPodAffinity", 5))},
            }
        )
    ),
    "without-some": document(
        profile(
            plugins={
                **without("filter", "TaintToleration", "NodePorts"),
                **without("preFilter", "NodePorts"),
                **without("score", "NodeResourcesBalancedAllocation", "ImageLocality"),
                **without("preScore", "NodeResourcesBalancedAllocation"),
            }
        )
    ),
    "one-score": document(
        profile(
            plugins={
                "score": {"disabled": [{"name": "*"}], "enabled": enabled(("NodeResourcesFit", 2))},
                "preScore": {"disabled": [{"name": "*"}], "enabled": enabled("NodeResourcesFit")},
            }
        )
    ),
    "own-plugins": document(profile(plugins=_OWN_PLUGINS)),
    "filters-reordered": document(
        profile(plugins={"filter": {"enabled": enabled("NodeResourcesFit", "NodePorts", "NodeAffinity")}})
    ),
    "two-profiles": document(
        profile(NodeResourcesFit=strategy("MostAllocated", cpu=1, memory=1)),
        profile(
            OTHER_SCHEDULER,
            plugins=without("filter", "TaintToleration"),
            NodeResourcesFit=strategy(_RTCR, [(0, 10), (100, 0)], cpu=1, gpu=1),
        ),
    ),
    "hard-weight-none": document(profile(InterPodAffinity={"hardPodAffinityWeight": 0})),
    "hard-weight-most": document(
        profile(InterPodAffinity={"hardPodAffinityWeight": 100, "ignorePreferredTermsOfExistingPods": True})
    ),
    "spread-list": document(profile(PodTopologySpread=_SPREAD_LIST)),
    "spread-list-empty": document(profile(PodTopologySpread={"defaultingType": "List"})),
    "no-pod-rules": document(profile(plugins=without("multiPoint", "PodTopologySpread", "InterPodAffinity"))),
    # The last two stop at a few candidates for preemption, from a random node on.
    "all-nodes": _preempting(minCandidateNodesPercentage=100),
    "defaults": _preempting(),
    "few-nodes": _preempting(minCandidateNodesPercentage=10, minCandidateNodesAbsolute=2),
    "a-third": _preempting(minCandidateNodesPercentage=34, minCandidateNodesAbsolute=1),
    "percentage": document(profile(), percentageOfNodesToScore=80),
    "percentage-adaptive": document(profile(), percentageOfNodesToScore=0),
    "percentage-of-profiles": document(
        profile(percentage=72),
        profile(OTHER_SCHEDULER, percentage=91, NodeResourcesFit=strategy("MostAllocated", cpu=1, memory=1)),
        percentageOfNodesToScore=5,
    ),
    "percentage-of-one-profile": document(
        profile(percentage=85),
        profile(OTHER_SCHEDULER, without("multiPoint", "PodTopologySpread")),
        percentageOfNodesToScore=76,
    ),
    "no-scores": document(profile(plugins=_NO_SCORES)),
    "no-scores-but-filters": document(profile(plugins=_NO_SCORES), profile(OTHER_SCHEDULER)),
    "default-and-other": document(profile(), profile(OTHER_SCHEDULER)),
    "no-post-filter": document(
        profile(plugins=without("postFilter", "*")), profile(OTHER_SCHEDULER, without("postFilter", "*"))
    ),
    **switched_off.CONFIGURATIONS,
    **extenders.CONFIGURATIONS,
}
"""Documents by the name that cases give."""
