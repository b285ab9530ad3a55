"""Every rule kube-scheduler has for a configuration, with the path and the text of its error."""

# ruff: noqa: E501 - error texts stand whole, so that they can be searched for

import pytest
from tests.config.configurations import ALL_PLUGINS, V1, complaints, fit, load, profile_with_args

ARGS = "profiles[0].pluginConfig[0].args"
STRATEGIES = '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def strategy(**fields):
    return fit(scoringStrategy=fields)


def ratio(*points):
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return strategy(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})


def election(**fields):
    return V1 | {"leaderElection": fields}


def plugins(**sets):
    return V1 | {"profiles": [{"plugins": sets}]}


def extenders(*listed):
    return V1 | {"extenders": [{"urlPrefix": "x"} | each for each in listed]}


def affinity(required=None, preferred=None):
    terms = {"nodeSelectorTerms": [{"matchExpressions": [each]} for each in required or ()]}
    block = {"requiredDuringSchedulingIgnoredDuringExecution": terms} if required else {}
    if preferred:
        block["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return profile_with_args("NodeAffinity", {"addedAffinity": block})


def spread(*constraints, **fields):
    return profile_with_args("PodTopologySpread", {"defaultConstraints": list(constraints), **fields})


ZONE = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
REQUIRED = f"{ARGS}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
PREFERRED = f"{ARGS}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
TOP_LEVEL = [
    (V1 | {"parallelism": 0}, "parallelism: Invalid value: 0: should be an integer value greater than zero"),
    (V1 | {"parallelism": -1}, "parallelism: Invalid value: -1: should be an integer value greater than zero"),
    (
        election(leaseDuration="-1s", renewDeadline="-2s"),
        'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
    ),
    (election(renewDeadline="-1s"), 'leaderElection.renewDeadline: Invalid value: "-1s": must be greater than zero'),
    (election(retryPeriod="-1s"), 'leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero'),
    (
        election(leaseDuration="10s"),
        'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
    ),
    (
        election(resourceLock="endpoints"),
        'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
    ),
    (V1 | {"clientConnection": {"burst": -1}}, "clientConnection.burst: Invalid value: -1: must be non-negative"),
    (
        V1 | {"percentageOfNodesToScore": 101},
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
    ),
    (V1 | {"percentageOfNodesToScore": -1}, "percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"),
    (V1 | {"podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"),
    (
        V1 | {"podInitialBackoffSeconds": 11},
        "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
    ),
]
PROFILES = [
    (V1 | {"profiles": [{"schedulerName": ""}]}, "profiles[0].schedulerName: Required value"),
    (V1 | {"profiles": [{"schedulerName": "a"}, {}]}, "profiles[1].schedulerName: Required value"),
    (
        V1 | {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
        'profiles[1].schedulerName: Duplicate value: "a"',
    ),
    (
        V1 | {"profiles": [{"percentageOfNodesToScore": 101}]},
        "profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
    ),
    (
        plugins(queueSort={"enabled": [{"name": "PrioritySort"}, {"name": "NodeName"}]}),
        "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
    ),
    (
        V1
        | {
            "profiles": [
                {"schedulerName": "a"},
                {"schedulerName": "b", "plugins": {"queueSort": {"enabled": [{"name": "PrioritySort"}]}}},
            ]
        },
        'profiles[1].plugins.queueSort: Invalid value: "PrioritySort": must be the same for all profiles',
    ),
    (
        V1 | {"profiles": [{"pluginConfig": [{"name": "NodeAffinity"}, {"name": "NodeAffinity"}]}]},
        'profiles[0].pluginConfig[1]: Duplicate value: "NodeAffinity"',
    ),
    (
        profile_with_args("EBSLimits", None),
        (
            'profiles[0].pluginConfig[0]: Invalid value: "EBSLimits": was invalid in version "v1" '
            '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
        ),
    ),
    (
        plugins(filter={"enabled": [{"name": "GCEPDLimits"}]}),
        (
            'profiles[0].plugins.filter.enabled[0]: Invalid value: "GCEPDLimits": was invalid in version "v1" '
            '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
        ),
    ),
    (
        plugins(score={"enabled": [{"name": "Foo"}]}),
        'profiles[0].plugins.score.enabled[0]: Invalid value: "Foo": does not exist',
    ),
    (
        plugins(score={"disabled": [{"name": "Foo"}]}),
        'profiles[0].plugins.score.disabled[0]: Invalid value: "Foo": does not exist',
    ),
    (profile_with_args("Foo", {"x": 1}), 'profiles[0].pluginConfig[0]: Invalid value: "Foo": does not exist'),
    (
        plugins(multiPoint={"enabled": [{"name": "NodeName"}, {"name": "NodeName"}]}),
        'profiles[0].plugins.multiPoint.enabled[1]: Duplicate value: "NodeName"',
    ),
    (plugins(score={"enabled": [{"weight": 1}]}), "profiles[0].plugins.score.enabled[0].name: Required value"),
    (V1 | {"profiles": [{"pluginConfig": [{}]}]}, "profiles[0].pluginConfig[0].name: Required value"),
    (profile_with_args("NodeName", {"x": 1}), f"{ARGS}: Forbidden: NodeName takes no arguments"),
    (
        fit(kind="NodeAffinityArgs"),
        (
            f'{ARGS}.kind: Invalid value: "NodeAffinityArgs": args for plugin NodeResourcesFit were not of type '
            "NodeResourcesFitArgs.kubescheduler.config.k8s.io, got NodeAffinityArgs"
        ),
    ),
    (
        fit(apiVersion="v1"),
        f'{ARGS}.apiVersion: Invalid value: "v1": no kind "NodeResourcesFitArgs" is registered for this version',
    ),
    (
        plugins(placementScore={"enabled": [{"name": "NodeName"}]}),
        "profiles[0].plugins.placementScore: Forbidden: is not implemented in this version of bayplan",
    ),
]
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
    (
        ratio(),
        f"{ARGS}.scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified",
    ),
    (
        ratio((0, 0), (50, 1), (50, 2), (40, 3)),
        (
            f"{ARGS}.scoringStrategy.requestedToCapacityRatio.shape[2].utilization: Invalid value: 50: "
            "values must be sorted in increasing order"
        ),
    ),
    (
        ratio((-1, 0)),
        f"{ARGS}.scoringStrategy.requestedToCapacityRatio.shape[0].utilization: Invalid value: -1: not in valid range [0, 100]",
    ),
    (
        ratio((101, 0)),
        f"{ARGS}.scoringStrategy.requestedToCapacityRatio.shape[0].utilization: Invalid value: 101: not in valid range [0, 100]",
    ),
    (
        ratio((0, 11)),
        f"{ARGS}.scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]",
    ),
    (
        ratio((0, -1)),
        f"{ARGS}.scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: -1: not in valid range [0, 10]",
    ),
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
    (
        spread(ZONE | {"maxSkew": 0}, defaultingType="List"),
        f"{ARGS}.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
    ),
    (
        spread(ZONE | {"topologyKey": ""}, defaultingType="List"),
        f"{ARGS}.defaultConstraints[0].topologyKey: Required value: can not be empty",
    ),
    (
        spread(ZONE | {"topologyKey": "-"}, defaultingType="List"),
        f'{ARGS}.defaultConstraints[0].topologyKey: Invalid value: "-": {NAME_RULE}',
    ),
    (
        spread(ZONE | {"whenUnsatisfiable": None}, defaultingType="List"),
        f"{ARGS}.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
    ),
    (
        spread(ZONE | {"whenUnsatisfiable": "X"}, defaultingType="List"),
        f'{ARGS}.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "X": supported values: "DoNotSchedule", "ScheduleAnyway"',
    ),
    (
        spread(ZONE | {"labelSelector": {"matchLabels": {"a": "b"}}}, defaultingType="List"),
        f"{ARGS}.defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod",
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
EXTENDERS = [
    (
        extenders({"prioritizeVerb": "p"}),
        "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
    ),
    (
        extenders({"bindVerb": "a"}, {"bindVerb": "b"}),
        'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
    ),
    (
        extenders({"managedResources": [{"name": "-"}]}),
        f'extenders[0].managedResources[0].name: Invalid value: "-": {NAME_RULE}',
    ),
    (
        extenders({"managedResources": [{"name": "cpu"}]}),
        'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
    ),
    (
        extenders({"managedResources": [{"name": "a/b"}]}, {"managedResources": [{"name": "a/b"}]}),
        'extenders[1].managedResources[0].name: Invalid value: "a/b": duplicate extender managed resource name',
    ),
    (extenders({"managedResources": [{}]}), "extenders[0].managedResources[0].name: Required value"),
    (extenders({"tlsConfig": {"keyData": "secret!"}}), "extenders[0].tlsConfig.keyData: Invalid value: must be base64"),
]
DECODING = [
    (V1 | {"profiles": 5}, "profiles: Invalid value: 5: must be a list"),
    (V1 | {"profiles": {}}, "profiles: Invalid value: object: must be a list"),
    (V1 | {"profiles": ["a"]}, 'profiles[0]: Invalid value: "a": must be an object'),
    (
        V1 | {"profiles": [{"schedulerName": 5}]},
        "profiles[0].schedulerName: Invalid value: 5: must be a string; put it in quotes",
    ),
    (
        V1 | {"profiles": [{"schedulerName": True}]},
        "profiles[0].schedulerName: Invalid value: true: must be a string; put it in quotes",
    ),
    (V1 | {"leaderElection": "yes"}, 'leaderElection: Invalid value: "yes": must be an object'),
    (election(leaderElect="maybe"), 'leaderElection.leaderElect: Invalid value: "maybe": must be true or false'),
    (election(leaseDuration=15), 'leaderElection.leaseDuration: Invalid value: 15: must be a duration such as "15s"'),
    (V1 | {"parallelism": "16"}, 'parallelism: Invalid value: "16": must be an integer'),
    (V1 | {"parallelism": 1.5}, "parallelism: Invalid value: 1.5: must be an integer"),
    (V1 | {"parallelism": True}, "parallelism: Invalid value: true: must be an integer"),
    (V1 | {"parallelism": 2**31}, f"parallelism: Invalid value: {2**31}: does not fit into 32 bits"),
    (V1 | {"podMaxBackoffSeconds": 2**63}, f"podMaxBackoffSeconds: Invalid value: {2**63}: does not fit into 64 bits"),
    (V1 | {"clientConnection": {"qps": "x"}}, 'clientConnection.qps: Invalid value: "x": must be a number'),
    (
        V1 | {"clientConnection": {"qps": 1e39}},
        "clientConnection.qps: Invalid value: 1e+39: does not fit into a 32-bit float",
    ),
    (V1 | {"paralelism": 1}, 'paralelism: unknown field, did you mean "parallelism"?'),
    (V1 | {"xyz": 1}, "xyz: unknown field"),
    (V1 | {"a b\x1b": 1}, '["a b\\u001b"]: unknown field'),
    (
        strategy(type="MostAllocated", resources=[{"name": "cpu", "wait": 1}]),
        f'{ARGS}.scoringStrategy.resources[0].wait: unknown field, did you mean "weight"?',
    ),
    (
        strategy(type="MostAllocated", resources=[{"name": "cpu", "weight": "1"}]),
        f'{ARGS}.scoringStrategy.resources[0].weight: Invalid value: "1": must be an integer',
    ),
    (strategy(type=5), f"{ARGS}.scoringStrategy.type: Invalid value: 5: must be a string; put it in quotes"),
    (fit(ignoredResources=[[]]), f"{ARGS}.ignoredResources[0]: Invalid value: list: must be a string"),
    (profile_with_args("NodeResourcesFit", 5), f"{ARGS}: Invalid value: 5: must be an object"),
    (
        plugins(score={"enabled": [{"name": "ImageLocality", "weight": "3"}]}),
        'profiles[0].plugins.score.enabled[0].weight: Invalid value: "3": must be an integer',
    ),
    (plugins(scores={}), 'profiles[0].plugins.scores: unknown field, did you mean "score"?'),
    (
        V1 | {"podMaxBackoffSeconds": "x" * 10_000},
        f'podMaxBackoffSeconds: Invalid value: "{"x" * 200}...": must be an integer',
    ),
]


@pytest.mark.parametrize(
    ("content", "expected"),
    [*TOP_LEVEL, *PROFILES, *FIT, *OTHER_ARGS, *AFFINITY, *EXTENDERS, *DECODING],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
def test_a_broken_rule_is_one_error_at_its_field(tmp_path, content, expected):
    lines = complaints(tmp_path, content, known_plugins=ALL_PLUGINS, extenders=True)
    assert expected in lines
    assert lines == [expected] or expected in CONSEQUENCES


CONSEQUENCES = {
    # These break two rules at once, as in kube-scheduler.
    next(text for _, text in TOP_LEVEL if "-1s" in text and "leaseDuration" in text),
    next(text for _, text in FIT if "values must be sorted" in text),
    next(text for _, text in AFFINITY if "[a]" in text),
}


def test_preemption_that_looks_at_no_node_is_two_errors(tmp_path):
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}
    assert complaints(tmp_path, profile_with_args("DefaultPreemption", args), known_plugins=ALL_PLUGINS) == [
        f"{ARGS}.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute",
        f"{ARGS}.minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage",
    ]


@pytest.mark.parametrize(
    "content",
    [
        election(leaderElect=False, leaseDuration="-1s", resourceLock="endpoints"),
        V1 | {"clientConnection": {"qps": -1}},
        strategy(type="MostAllocated", resources=[{"name": "cpu"}, {"name": "cpu", "weight": 5}]),
        ratio((0, 10), (100, 0)),
        ratio((50, 5)),
        affinity([{"key": "a.b/c", "operator": "Gt", "values": ["5"]}]),
        plugins(score={"disabled": [{"name": "*"}]}, postFilter={"disabled": [{"name": "DefaultPreemption"}]}),
        plugins(score={"disabled": [{"name": "EBSLimits"}]}),
        plugins(placementGenerate={}, placementScore={"enabled": []}),
        V1 | {"podMaxBackoffSeconds": 1},
    ],
)
def test_what_kube_scheduler_accepts_is_accepted(tmp_path, content):
    assert load(tmp_path, content)


@pytest.mark.parametrize("plugin", sorted(ALL_PLUGINS - {"PrioritySort"}))
def test_kube_schedulers_other_plugins_are_said_to_be_missing(tmp_path, plugin):
    known = frozenset({"PrioritySort"})
    detail = "is not implemented in this version of bayplan"
    enabled = plugins(filter={"enabled": [{"name": plugin}]})
    assert complaints(tmp_path, enabled, known_plugins=known) == [
        f'profiles[0].plugins.filter.enabled[0]: Invalid value: "{plugin}": {detail}'
    ]
    assert complaints(tmp_path, profile_with_args(plugin, {}), known_plugins=known) == [
        f'profiles[0].pluginConfig[0]: Invalid value: "{plugin}": {detail}'
    ]
    assert load(tmp_path, plugins(filter={"disabled": [{"name": plugin}]}), known_plugins=known)


def test_all_errors_come_at_once(tmp_path):
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 0
parallelism: -1
podInitialBackoffSeconds: x
profiles:
- schedulerName: a
  plugins: {score: {enabled: [{name: Foo}, {name: DynamicResources}]}}
- schedulerName: a
  nope: 1
"""
    assert sorted(complaints(tmp_path, text)) == [
        "parallelism: Invalid value: -1: should be an integer value greater than zero",
        'parallelism: line 5: key "parallelism" already set in map',
        'podInitialBackoffSeconds: Invalid value: "x": must be an integer',
        'profiles[0].plugins.score.enabled[0]: Invalid value: "Foo": does not exist',
        'profiles[0].plugins.score.enabled[1]: Invalid value: "DynamicResources": is not implemented in this version of bayplan',
        "profiles[1].nope: unknown field",
        'profiles[1].schedulerName: Duplicate value: "a"',
    ]


def test_endless_errors_are_cut(tmp_path):
    lines = complaints(tmp_path, V1 | {f"field{number}": 1 for number in range(5000)})
    assert len(lines) == 101
    assert lines[-1] == "... and 4900 more errors"


def test_key_material_never_shows_in_errors(tmp_path):
    tls = {"keyData": ["hunter2"], "certData": 5, "caData": "hunter2!", "nope": "hunter2"}
    lines = complaints(tmp_path, extenders({"tlsConfig": tls}, {"tlsConfig": [{"keyData": "hunter2"}]}))
    assert len(lines) == 6
    assert not any("hunter2" in line for line in lines)
