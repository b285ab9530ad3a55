"""The configurations kube-scheduler records under; bayplan loads the same documents."""

from typing import Any

from tests.oracle.case import Object

SCHEDULER = "oracle"
OTHER_SCHEDULER = "oracle-other"

GPU = "example.com/gpu"
FPGA = "vendor.io/fpga"

# Claims of devices are no part of these scenes, and preemption would change the cluster in the middle of most.
_WITHOUT_DEVICES = ("DynamicResources",)
_WITHOUT_PREEMPTION = ("DefaultPreemption", "DynamicResources")


def _document(*profiles: Object) -> Object:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 1,
        "percentageOfNodesToScore": 100,
        "profiles": list(profiles),
    }


def _profile(
    name: str = SCHEDULER,
    plugins: Object | None = None,
    *,
    left_out: tuple[str, ...] = _WITHOUT_PREEMPTION,
    **args: Object,
) -> Object:
    plugins = dict(plugins or {})
    multi_point = dict(plugins.get("multiPoint", {}))
    disabled = multi_point.get("disabled", [])
    if {"name": "*"} not in disabled:
        multi_point["disabled"] = [*disabled, *({"name": plugin} for plugin in left_out)]
    plugins["multiPoint"] = multi_point
    return {
        "schedulerName": name,
        "plugins": plugins,
        "pluginConfig": [{"name": plugin, "args": given} for plugin, given in args.items()],
    }


def _preempting(**args: int) -> Object:
    return _document(_profile(left_out=_WITHOUT_DEVICES, DefaultPreemption=args))


def _strategy(kind: str, shape: list[tuple[int, int]] | None = None, **weights: int) -> Object:
    names = {"gpu": GPU, "fpga": FPGA, "storage": "ephemeral-storage", "huge": "hugepages-2Mi"}
    strategy: Object = {
        "type": kind,
        "resources": [{"name": names.get(name, name), "weight": weight} for name, weight in weights.items()],
    }
    if shape is not None:
        points = [{"utilization": utilization, "score": score} for utilization, score in shape]
        strategy["requestedToCapacityRatio"] = {"shape": points}
    return {"scoringStrategy": strategy}


def _enabled(*entries: str | tuple[str, int]) -> list[dict[str, Any]]:
    return [{"name": each} if isinstance(each, str) else {"name": each[0], "weight": each[1]} for each in entries]


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
        "enabled": _enabled(
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

CONFIGURATIONS: dict[str, Object] = {
    "default": _document(_profile()),
    "most-allocated": _document(_profile(NodeResourcesFit=_strategy("MostAllocated", cpu=1, memory=1))),
    "most-weighted": _document(
        _profile(NodeResourcesFit=_strategy("MostAllocated", cpu=3, memory=1, gpu=20, storage=2, huge=1))
    ),
    "least-weighted": _document(
        _profile(NodeResourcesFit=_strategy("LeastAllocated", cpu=1, memory=4, gpu=7, fpga=2, storage=1))
    ),
    "ratio-packing": _document(
        _profile(NodeResourcesFit=_strategy(_RTCR, [(0, 0), (100, 10)], cpu=1, memory=1, gpu=3))
    ),
    "ratio-falling": _document(
        _profile(NodeResourcesFit=_strategy(_RTCR, [(0, 10), (33, 7), (71, 8), (100, 0)], cpu=2, memory=1, gpu=5))
    ),
    "ratio-step": _document(
        _profile(
            NodeResourcesFit=_strategy(_RTCR, [(10, 1), (50, 1), (51, 9), (90, 10)], gpu=10, fpga=3, storage=1, cpu=1)
        )
    ),
    "balanced-many": _document(
        _profile(
            plugins={"score": {"enabled": _enabled(("NodeResourcesBalancedAllocation", 13))}},
            NodeResourcesBalancedAllocation={
                "resources": [
                    {"name": name, "weight": 1} for name in ("cpu", "memory", GPU, "ephemeral-storage", "hugepages-2Mi")
                ]
            },
        )
    ),
    "balanced-one": _document(
        _profile(NodeResourcesBalancedAllocation={"resources": [{"name": GPU, "weight": 1}, {"name": "cpu"}]})
    ),
    "ignored-resources": _document(
        _profile(
            NodeResourcesFit={
                **_strategy("LeastAllocated", cpu=1, gpu=2, fpga=2),
                "ignoredResources": [GPU],
                "ignoredResourceGroups": ["vendor.io"],
            }
        )
    ),
    "added-affinity": _document(_profile(NodeAffinity=_ADDED_AFFINITY)),
    "weights": _document(
        _profile(
            plugins={
                "score": {
                    "enabled": _enabled(
                        ("ImageLocality", 40), ("TaintToleration", 1), ("NodeAffinity", 17), ("NodeResourcesFit", 6)
                    )
                },
            }
        )
    ),
    "pod-weights": _document(
        _profile(
            plugins={
                "multiPoint": {"enabled": _enabled(("PodTopologySpread", 11))},
                "score": {"enabled": _enabled(("InterPodAffinity", 5))},
            }
        )
    ),
    "without-some": _document(
        _profile(
            plugins={
                "filter": {"disabled": [{"name": "TaintToleration"}, {"name": "NodePorts"}]},
                "preFilter": {"disabled": [{"name": "NodePorts"}]},
                "score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}, {"name": "ImageLocality"}]},
                "preScore": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]},
            }
        )
    ),
    "one-score": _document(
        _profile(
            plugins={
                "score": {"disabled": [{"name": "*"}], "enabled": _enabled(("NodeResourcesFit", 2))},
                "preScore": {"disabled": [{"name": "*"}], "enabled": _enabled("NodeResourcesFit")},
            }
        )
    ),
    "own-plugins": _document(_profile(plugins=_OWN_PLUGINS)),
    "filters-reordered": _document(
        _profile(plugins={"filter": {"enabled": _enabled("NodeResourcesFit", "NodePorts", "NodeAffinity")}})
    ),
    "two-profiles": _document(
        _profile(NodeResourcesFit=_strategy("MostAllocated", cpu=1, memory=1)),
        _profile(
            OTHER_SCHEDULER,
            plugins={"filter": {"disabled": [{"name": "TaintToleration"}]}},
            NodeResourcesFit=_strategy(_RTCR, [(0, 10), (100, 0)], cpu=1, gpu=1),
        ),
    ),
    "hard-weight-none": _document(_profile(InterPodAffinity={"hardPodAffinityWeight": 0})),
    "hard-weight-most": _document(
        _profile(InterPodAffinity={"hardPodAffinityWeight": 100, "ignorePreferredTermsOfExistingPods": True})
    ),
    "spread-list": _document(_profile(PodTopologySpread=_SPREAD_LIST)),
    "spread-list-empty": _document(_profile(PodTopologySpread={"defaultingType": "List"})),
    "no-pod-rules": _document(
        _profile(plugins={"multiPoint": {"disabled": [{"name": "PodTopologySpread"}, {"name": "InterPodAffinity"}]}})
    ),
    # The last two stop at a few candidates for preemption, from a random node on.
    "all-nodes": _preempting(minCandidateNodesPercentage=100),
    "defaults": _preempting(),
    "few-nodes": _preempting(minCandidateNodesPercentage=10, minCandidateNodesAbsolute=2),
    "a-third": _preempting(minCandidateNodesPercentage=34, minCandidateNodesAbsolute=1),
}
"""Documents by the name that cases give."""
