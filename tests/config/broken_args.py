"""Configurations that break a rule for plugins' arguments, and the error of each."""

from tests.config.configurations import (
    ARGS,
    NAME_RULE,
    PREFERRED,
    REQUIRED,
    SHAPE,
    STRATEGIES,
    ZONE,
    affinity,
    nested,
    profile_with_args,
    ratio,
    spread,
    strategy,
)

# ruff: noqa: E501 - error texts stand whole, so that they can be searched for

# Where in a plugin's arguments a value stands, the value, and how the error goes on after that path.
_BY_PATH = {
    "NodeResourcesFit": [
        ("ignoredResources[0]", [], ": Invalid value: list: must be a string"),
        ("ignoredResources[0]", "-", f': Invalid value: "-": {NAME_RULE}'),
        ("ignoredResources[0]", "x" * 64, f': Invalid value: "{"x" * 64}": name part must be no more than 63 bytes'),
        ("ignoredResourceGroups[0]", "a/b", ": Invalid value: \"a/b\": resource group name can't contain '/'"),
        ("ignoredResourceGroups[0]", "-", f': Invalid value: "-": {NAME_RULE}'),
        ("scoringStrategy", {}, f'.type: Unsupported value: "": supported values: {STRATEGIES}'),
        ("scoringStrategy.type", "Best", f': Unsupported value: "Best": supported values: {STRATEGIES}'),
        ("scoringStrategy.type", 5, ": Invalid value: 5: must be a string; put it in quotes"),
    ],
    "NodeResourcesBalancedAllocation": [
        ("resources[0]", {"name": "cpu", "weight": 2}, ".weight: Invalid value: 2: must be 1"),
        ("resources", [{"name": "cpu"}, {"name": "cpu"}], '[1].name: Duplicate value: "cpu"'),
    ],
    "InterPodAffinity": [("hardPodAffinityWeight", 101, ": Invalid value: 101: not in valid range [0, 100]")],
    "DefaultPreemption": [
        ("minCandidateNodesPercentage", 101, ": Invalid value: 101: not in valid range [0, 100]"),
        ("minCandidateNodesAbsolute", -1, ": Invalid value: -1: not in valid range [0, inf)"),
    ],
    "VolumeBinding": [
        (
            "bindTimeoutSeconds",
            -1,
            ": Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value",
        ),
        ("shape", [{"utilization": 101}], "[0].utilization: Invalid value: 101: not in valid range [0, 100]"),
        ("shape", [{"score": 11}], "[0].score: Invalid value: 11: not in valid range [0, 10]"),
        (
            "shape",
            [{"utilization": 5}, {"utilization": 5}],
            "[1].utilization: Invalid value: 5: values must be sorted in increasing order",
        ),
    ],
    "DynamicResources": [
        ("filterTimeout", "-1s", ': Invalid value: "-1s": must be zero or positive'),
        ("bindingTimeout", "999ms", ': Invalid value: "999ms": must be at least 1 second'),
    ],
}
_STRATEGIES = [
    (
        {"resources": [{"name": "cpu", "weight": 101}]},
        ".resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
    ),
    (
        {"resources": [{"name": "cpu"}, {"name": "b", "weight": -1}]},
        ".resources[1].weight: Invalid value: -1: resource weight of b not in valid range (0, 100]",
    ),
    ({"resources": [{"name": "cpu", "wait": 1}]}, '.resources[0].wait: unknown field, did you mean "weight"?'),
    ({"resources": [{"weight": "1"}]}, '.resources[0].weight: Invalid value: "1": must be an integer'),
    (
        {"type": "RequestedToCapacityRatio"},
        ".requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio",
    ),
    (
        {"requestedToCapacityRatio": {"shape": [{}]}},
        ".requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio",
    ),
]
# A plugin, its arguments under bayplan.io, and how the error goes on after their path.
_OWN = [
    (
        "DynamicResources",
        {"deviceChoice": "x"},
        '.deviceChoice: Unsupported value: "x": supported values: "FirstFit", "LeastLeftOver"',
    ),
    ("DynamicResources", {"shape": [{"score": 11}]}, ".shape[0].score: Invalid value: 11: not in valid range [0, 10]"),
    (
        "NodeResourcesBalancedAllocation",
        {"measure": "x"},
        '.measure: Unsupported value: "x": supported values: "Improvement", "Result"',
    ),
    ("NodeResourcesBalancedAllocation", {"measures": "x"}, '.measures: unknown field, did you mean "measure"?'),
    (
        "NodeResourcesFit",
        {"scoringStrategies": [{"type": "MostAllocated"}, {"type": "MostAllocated", "weight": 0}]},
        ".scoringStrategies[1].weight: Invalid value: 0: must be greater than 0",
    ),
    ("TopologyPlacementGenerator", {"topologyKey": "-"}, f'.topologyKey: Invalid value: "-": {NAME_RULE}'),
    (
        "TopologyPlacementGenerator",
        {"choice": "x"},
        '.choice: Unsupported value: "x": supported values: "FewestNodes", "Scored"',
    ),
    (
        "NodeResourcesFit",
        {"scoringStrategies": [{"type": "RequestedToCapacityRatio"}]},
        (
            ".scoringStrategies[0].requestedToCapacityRatio: Required value: "
            "must be specified when type is RequestedToCapacityRatio"
        ),
    ),
]
_SHAPES = [
    ([], ": Required value: at least one point must be specified"),
    (
        [(0, 0), (50, 1), (50, 2), (40, 3)],
        "[2].utilization: Invalid value: 50: values must be sorted in increasing order",
    ),
    ([(-1, 0)], "[0].utilization: Invalid value: -1: not in valid range [0, 100]"),
    ([(101, 0)], "[0].utilization: Invalid value: 101: not in valid range [0, 100]"),
    ([(0, 11)], "[0].score: Invalid value: 11: not in valid range [0, 10]"),
    ([(0, -1)], "[0].score: Invalid value: -1: not in valid range [0, 10]"),
]
_CONSTRAINTS = [
    ("maxSkew", 0, ": Invalid value: 0: not in valid range (0, inf)"),
    ("topologyKey", "", ": Required value: can not be empty"),
    ("topologyKey", "-", f': Invalid value: "-": {NAME_RULE}'),
    ("whenUnsatisfiable", None, ": Required value: can not be empty"),
    ("whenUnsatisfiable", "X", ': Unsupported value: "X": supported values: "DoNotSchedule", "ScheduleAnyway"'),
    ("labelSelector", {}, ": Forbidden: constraint must not define a selector, as they deduced for each pod"),
]
FIT_AND_OTHERS = [
    (profile_with_args("NodeResourcesFit", 5), f"{ARGS}: Invalid value: 5: must be an object"),
    *(
        (profile_with_args(plugin, nested(path, value)), f"{ARGS}.{path}{error}")
        for plugin, rows in _BY_PATH.items()
        for path, value, error in rows
    ),
    *((strategy(**{"type": "MostAllocated", **each}), f"{ARGS}.scoringStrategy{error}") for each, error in _STRATEGIES),
    *((ratio(*points), f"{SHAPE}{error}") for points, error in _SHAPES),
    *((profile_with_args(name, {"bayplan.io": own}), f'{ARGS}["bayplan.io"]{error}') for name, own, error in _OWN),
    (
        profile_with_args(
            "NodeResourcesFit",
            {
                "scoringStrategy": {"type": "MostAllocated"},
                "bayplan.io": {"scoringStrategies": [{"type": "MostAllocated"}]},
            },
        ),
        f'{ARGS}["bayplan.io"].scoringStrategies: Forbidden: may not be given together with scoringStrategy',
    ),
    *(
        (spread(ZONE | {key: value}, defaultingType="List"), f"{ARGS}.defaultConstraints[0].{key}{error}")
        for key, value, error in _CONSTRAINTS
    ),
    (
        spread(defaultingType="Best"),
        f'{ARGS}.defaultingType: Unsupported value: "Best": supported values: "System", "List"',
    ),
    (spread(ZONE), f'{ARGS}.defaultingType: Invalid value: "System": when .defaultConstraints are not empty'),
    (
        spread(ZONE, ZONE | {"maxSkew": 2}, defaultingType="List"),
        f'{ARGS}.defaultConstraints[1]: Duplicate value: "{{zone, DoNotSchedule}}"',
    ),
]
# An expression's operator and values, and how the error goes on after the expression's path.
_EXPRESSIONS = [
    (
        "Is",
        [],
        '.operator: Unsupported value: "Is": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
    ),
    ("In", None, ".values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"),
    ("In", [], ".values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
    ("Exists", ["b"], '.values: Invalid value: ["b"]: values set must be empty for exists and does not exist'),
    (
        "Gt",
        ["1", "2"],
        ".values: Invalid value: [\"1\",\"2\"]: for 'Gt', 'Lt' operators, exactly one value is required",
    ),
    ("Lt", ["1.5"], ".values[0]: Invalid value: \"1.5\": for 'Gt', 'Lt' operators, the value must be an integer"),
    ("In", ["x" * 64], f'.values[0][a]: Invalid value: "{"x" * 64}": must be no more than 63 bytes'),
]
_FIELDS = [
    ("Gt", None, '.operator: Unsupported value: "Gt": supported values: "In", "NotIn"'),
    ("In", None, ".values: Invalid value: null: must have one element"),
    ("NotIn", ["a", "b"], '.values: Invalid value: ["a","b"]: must have one element'),
]


def preferred(kind, expression):
    return affinity(preferred=[{"weight": 1} | nested(f"preference.{kind}[0]", expression)])


AFFINITY = [
    *(
        (affinity([{"key": "a", "operator": operator, "values": values}]), f"{REQUIRED}.matchExpressions[0]{error}")
        for operator, values, error in _EXPRESSIONS
    ),
    (
        affinity([{"key": "-", "operator": "Exists"}]),
        f'{REQUIRED}.matchExpressions[0].key: Invalid value: "-": {NAME_RULE}',
    ),
    *(
        (
            preferred("matchFields", {"key": "metadata.name", "operator": operator, "values": values}),
            # As in kube-scheduler, without `preference`.
            f"{PREFERRED}.matchFields[0]{error}",
        )
        for operator, values, error in _FIELDS
    ),
    (
        preferred("matchExpressions", {"key": "a", "operator": "In"}),
        f"{PREFERRED}.matchExpressions[0].values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
    ),
    (
        preferred("matchExpressions", {"key": "a", "operator": "Exists", "value": "b"}),
        f'{PREFERRED}.preference.matchExpressions[0].value: unknown field, did you mean "values"?',
    ),
]
