"""Configurations that break a rule for plugins' arguments, and the error of each."""

# ruff: noqa: E501 - error texts stand whole, so that they can be searched for

from tests.config.broken_documents import (
    ARGS,
    CONSTRAINT,
    NAME_RULE,
    PREFERRED,
    REQUIRED,
    SHAPE,
    STRATEGIES,
    ZONE,
    affinity,
    constraint,
    ratio,
    spread,
    strategy,
)
from tests.config.configurations import fit, profile_with_args

FIT = [
    (fit(ignoredResources=["-"]), f'{ARGS}.ignoredResources[0]: Invalid value: "-": {NAME_RULE}'),
    (
        fit(ignoredResources=["x" * 64]),
        f'{ARGS}.ignoredResources[0]: Invalid value: "{"x" * 64}": name part must be no more than 63 bytes',
    ),
    (
        fit(ignoredResourceGroups=["a/b"]),
        f"{ARGS}.ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'",
    ),
    (fit(ignoredResourceGroups=["-"]), f'{ARGS}.ignoredResourceGroups[0]: Invalid value: "-": {NAME_RULE}'),
    (strategy(), f'{ARGS}.scoringStrategy.type: Unsupported value: "": supported values: {STRATEGIES}'),
    (strategy(type="Best"), f'{ARGS}.scoringStrategy.type: Unsupported value: "Best": supported values: {STRATEGIES}'),
    (
        strategy(type="MostAllocated", resources=[{"name": "cpu", "weight": 101}]),
        f"{ARGS}.scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
    ),
    (
        strategy(type="MostAllocated", resources=[{"name": "cpu"}, {"name": "b", "weight": -1}]),
        f"{ARGS}.scoringStrategy.resources[1].weight: Invalid value: -1: resource weight of b not in valid range (0, 100]",
    ),
    (
        strategy(type="RequestedToCapacityRatio"),
        f"{ARGS}.scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio",
    ),
    (
        strategy(type="MostAllocated", requestedToCapacityRatio={"shape": [{"utilization": 0, "score": 0}]}),
        f"{ARGS}.scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio",
    ),
    (ratio(), f"{SHAPE}: Required value: at least one point must be specified"),
    (
        ratio((0, 0), (50, 1), (50, 2), (40, 3)),
        (f"{SHAPE}[2].utilization: Invalid value: 50: values must be sorted in increasing order"),
    ),
    (ratio((-1, 0)), f"{SHAPE}[0].utilization: Invalid value: -1: not in valid range [0, 100]"),
    (ratio((101, 0)), f"{SHAPE}[0].utilization: Invalid value: 101: not in valid range [0, 100]"),
    (ratio((0, 11)), f"{SHAPE}[0].score: Invalid value: 11: not in valid range [0, 10]"),
    (ratio((0, -1)), f"{SHAPE}[0].score: Invalid value: -1: not in valid range [0, 10]"),
]
OTHER_ARGS = [
    (
        profile_with_args("InterPodAffinity", {"hardPodAffinityWeight": 101}),
        f"{ARGS}.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
    ),
    (
        profile_with_args("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 2}]}),
        f"{ARGS}.resources[0].weight: Invalid value: 2: must be 1",
    ),
    (
        profile_with_args("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu"}, {"name": "cpu"}]}),
        f'{ARGS}.resources[1].name: Duplicate value: "cpu"',
    ),
    (
        profile_with_args("DefaultPreemption", {"minCandidateNodesPercentage": 101}),
        f"{ARGS}.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
    ),
    (
        profile_with_args("DefaultPreemption", {"minCandidateNodesAbsolute": -1}),
        f"{ARGS}.minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
    ),
    (
        profile_with_args("VolumeBinding", {"bindTimeoutSeconds": -1}),
        f"{ARGS}.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value",
    ),
    (
        profile_with_args("VolumeBinding", {"shape": []}),
        f"{ARGS}.shape: Invalid value: list: unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring",
    ),
    (
        profile_with_args("DynamicResources", {"filterTimeout": "-1s"}),
        f'{ARGS}.filterTimeout: Invalid value: "-1s": must be zero or positive',
    ),
    (
        profile_with_args("DynamicResources", {"bindingTimeout": "999ms"}),
        f'{ARGS}.bindingTimeout: Invalid value: "999ms": must be at least 1 second',
    ),
    (
        spread(defaultingType="Best"),
        f'{ARGS}.defaultingType: Unsupported value: "Best": supported values: "System", "List"',
    ),
    (spread(ZONE), f'{ARGS}.defaultingType: Invalid value: "System": when .defaultConstraints are not empty'),
    (constraint({"maxSkew": 0}), f"{CONSTRAINT}.maxSkew: Invalid value: 0: not in valid range (0, inf)"),
    (constraint({"topologyKey": ""}), f"{CONSTRAINT}.topologyKey: Required value: can not be empty"),
    (constraint({"topologyKey": "-"}), f'{CONSTRAINT}.topologyKey: Invalid value: "-": {NAME_RULE}'),
    (constraint({"whenUnsatisfiable": None}), f"{CONSTRAINT}.whenUnsatisfiable: Required value: can not be empty"),
    (
        constraint({"whenUnsatisfiable": "X"}),
        f'{CONSTRAINT}.whenUnsatisfiable: Unsupported value: "X": supported values: "DoNotSchedule", "ScheduleAnyway"',
    ),
    (
        constraint({"labelSelector": {"matchLabels": {"a": "b"}}}),
        f"{CONSTRAINT}.labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod",
    ),
    (
        spread(ZONE, ZONE | {"maxSkew": 2}, defaultingType="List"),
        f'{ARGS}.defaultConstraints[1]: Duplicate value: "{{zone, DoNotSchedule}}"',
    ),
]
AFFINITY = [
    (
        affinity([{"key": "a", "operator": "Is"}]),
        (
            f'{REQUIRED}.matchExpressions[0].operator: Unsupported value: "Is": supported values: "In", "NotIn", "Exists", '
            '"DoesNotExist", "Gt", "Lt"'
        ),
    ),
    (
        affinity([{"key": "a", "operator": "In"}]),
        f"{REQUIRED}.matchExpressions[0].values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
    ),
    (
        affinity([{"key": "a", "operator": "Exists", "values": ["b"]}]),
        f"{REQUIRED}.matchExpressions[0].values: Invalid value: list: values set must be empty for exists and does not exist",
    ),
    (
        affinity([{"key": "a", "operator": "Gt", "values": ["1", "2"]}]),
        f"{REQUIRED}.matchExpressions[0].values: Invalid value: list: for 'Gt', 'Lt' operators, exactly one value is required",
    ),
    (
        affinity([{"key": "a", "operator": "Lt", "values": ["1.5"]}]),
        f"{REQUIRED}.matchExpressions[0].values[0]: Invalid value: \"1.5\": for 'Gt', 'Lt' operators, the value must be an integer",
    ),
    (
        affinity([{"key": "-", "operator": "Exists"}]),
        f'{REQUIRED}.matchExpressions[0].key: Invalid value: "-": {NAME_RULE}',
    ),
    (
        affinity([{"key": "a", "operator": "In", "values": ["x" * 64]}]),
        f'{REQUIRED}.matchExpressions[0].values[0][a]: Invalid value: "{"x" * 64}": must be no more than 63 bytes',
    ),
    (
        affinity(
            preferred=[{"weight": 1, "preference": {"matchFields": [{"key": "metadata.name", "operator": "Gt"}]}}]
        ),
        f'{PREFERRED}.preference.matchFields[0].operator: Unsupported value: "Gt": supported values: "In", "NotIn"',
    ),
    (
        affinity(
            preferred=[{"weight": 1, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In"}]}}]
        ),
        f"{PREFERRED}.preference.matchFields[0].values: Invalid value: null: must have one element",
    ),
]
