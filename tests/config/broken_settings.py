"""Configurations that break a rule for settings, profiles, extenders or text, and the error of each."""

# ruff: noqa: E501 - error texts stand whole, so that they can be searched for

from tests.config.configurations import ARGS, NAME_RULE, V1, election, fit, nested, plugins, profile_with_args

# Where a value stands, the value, and how the error goes on after that path.
_BY_PATH = [
    ("parallelism", 0, ": Invalid value: 0: should be an integer value greater than zero"),
    ("parallelism", -1, ": Invalid value: -1: should be an integer value greater than zero"),
    ("leaderElection.renewDeadline", "-1s", ': Invalid value: "-1s": must be greater than zero'),
    ("leaderElection.retryPeriod", "-1s", ': Invalid value: "-1s": must be greater than zero'),
    ("leaderElection.leaseDuration", "10s", ': Invalid value: "10s": must be greater than `RenewDeadline` (10s)'),
    ("leaderElection", {"resourceLock": "x"}, '.resourceLock: Invalid value: "x": resourceLock value must be "leases"'),
    ("clientConnection.burst", -1, ": Invalid value: -1: must be non-negative"),
    ("percentageOfNodesToScore", 101, ": Invalid value: 101: not in valid range [0-100]"),
    ("percentageOfNodesToScore", -1, ": Invalid value: -1: not in valid range [0-100]"),
    ("podInitialBackoffSeconds", 0, ": Invalid value: 0: must be greater than 0"),
    ("podMaxBackoffSeconds", 0, ": Invalid value: 0: must be greater than or equal to PodInitialBackoffSeconds"),
    # Profiles.
    ("profiles[0].schedulerName", "", ": Required value"),
    ("profiles", [{"schedulerName": "a"}, {}], "[1].schedulerName: Required value"),
    ("profiles", [{"schedulerName": "a"}, {"schedulerName": "a"}], '[1].schedulerName: Duplicate value: "a"'),
    ("profiles[0].percentageOfNodesToScore", 101, ": Invalid value: 101: not in valid range [0-100]"),
    ("profiles[0].pluginConfig", [{"name": "NodeAffinity"}] * 2, '[1]: Duplicate value: "NodeAffinity"'),
    ("profiles[0].plugins.score.enabled[0]", {"name": "Foo"}, ': Invalid value: "Foo": does not exist'),
    ("profiles[0].plugins.score.disabled[0]", {"name": "Foo"}, ': Invalid value: "Foo": does not exist'),
    ("profiles[0].pluginConfig[0]", {"name": "Foo", "args": {"x": 1}}, ': Invalid value: "Foo": does not exist'),
    ("profiles[0].plugins.multiPoint.enabled", [{"name": "NodeName"}] * 2, '[1]: Duplicate value: "NodeName"'),
    ("profiles[0].plugins.score.enabled[0]", {"weight": 1}, ': Invalid value: "": does not exist'),
    ("profiles[0].plugins.score.disabled[0]", {"name": ""}, ': Invalid value: "": does not exist'),
    (
        "profiles[0].plugins.score.enabled[0]",
        {"name": 5},
        ".name: Invalid value: 5: must be a string; put it in quotes",
    ),
    ("profiles[0].pluginConfig[0]", {}, ".name: Required value"),
    # Extenders.
    ("extenders[0]", {"prioritizeVerb": "p"}, ".weight: Invalid value: 0: must have a positive weight applied to it"),
    ("extenders[0].managedResources[0].name", "-", f': Invalid value: "-": {NAME_RULE}'),
    ("extenders[0].managedResources[0].name", "cpu", ': Invalid value: "cpu": is an invalid extended resource name'),
    ("extenders[0].managedResources[0]", {}, ".name: Required value"),
    ("extenders[0].tlsConfig.keyData", "secret!", ": Invalid value: must be base64"),
    # Types and names of fields.
    ("profiles", 5, ": Invalid value: 5: must be a list"),
    ("profiles", {}, ": Invalid value: object: must be a list"),
    ("profiles[0]", "a", ': Invalid value: "a": must be an object'),
    ("profiles[0].schedulerName", 5, ": Invalid value: 5: must be a string; put it in quotes"),
    ("profiles[0].schedulerName", True, ": Invalid value: true: must be a string; put it in quotes"),
    ("leaderElection", "yes", ': Invalid value: "yes": must be an object'),
    ("leaderElection.leaderElect", "maybe", ': Invalid value: "maybe": must be true or false'),
    ("leaderElection.leaseDuration", 15, ': Invalid value: 15: must be a duration such as "15s"'),
    ("parallelism", "16", ': Invalid value: "16": must be an integer'),
    ("parallelism", 1.5, ": Invalid value: 1.5: must be an integer"),
    ("parallelism", True, ": Invalid value: true: must be an integer"),
    ("parallelism", 2**31, f": Invalid value: {2**31}: does not fit into 32 bits"),
    ("podMaxBackoffSeconds", 2**63, f": Invalid value: {2**63}: does not fit into 64 bits"),
    ("podMaxBackoffSeconds", "x" * 10_000, f': Invalid value: "{"x" * 200}...": must be an integer'),
    ("clientConnection.qps", "x", ': Invalid value: "x": must be a number'),
    ("clientConnection.qps", 1e39, ": Invalid value: 1e+39: does not fit into a 32-bit float"),
    ("paralelism", 1, ': unknown field, did you mean "parallelism"?'),
    ("xyz", 1, ": unknown field"),
    ("profiles[0].plugins.scores", {}, ': unknown field, did you mean "score"?'),
]
SETTINGS = [
    *((V1 | nested(path, value), f"{path}{error}") for path, value, error in _BY_PATH),
    (
        election(leaseDuration="-1s", renewDeadline="-2s"),
        'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
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
        'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"PrioritySort","Weight":0}],"Disabled":null}: must be the same for all profiles',
    ),
    (
        profile_with_args("EBSLimits", None),
        'profiles[0].pluginConfig[0]: Invalid value: "EBSLimits": was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")',
    ),
    (
        plugins(filter={"enabled": [{"name": "GCEPDLimits"}]}),
        'profiles[0].plugins.filter.enabled[0]: Invalid value: "GCEPDLimits": was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")',
    ),
    (profile_with_args("NodeName", {"x": 1}), f"{ARGS}: Forbidden: NodeName takes no arguments"),
    (
        fit(kind="NodeAffinityArgs"),
        f'{ARGS}.kind: Invalid value: "NodeAffinityArgs": args for plugin NodeResourcesFit were not of type NodeResourcesFitArgs.kubescheduler.config.k8s.io, got NodeAffinityArgs',
    ),
    (
        fit(apiVersion="v1"),
        f'{ARGS}.apiVersion: Invalid value: "v1": no kind "NodeResourcesFitArgs" is registered for this version',
    ),
    (
        plugins(placementScore={"enabled": [{"name": "NodeName"}]}),
        "profiles[0].plugins.placementScore: Forbidden: is not implemented in this version of bayplan",
    ),
    (
        V1 | {"extenders": [{"bindVerb": "a"}, {"bindVerb": "b"}]},
        'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
    ),
    (
        V1 | {"extenders": [{"managedResources": [{"name": "a/b"}]}] * 2},
        'extenders[1].managedResources[0].name: Invalid value: "a/b": duplicate extender managed resource name',
    ),
    (V1 | {"a b\x1b": 1}, '["a b\\u001b"]: unknown field'),
    (
        plugins(score={"enabled": [{"name": "ImageLocality", "weight": "3"}]}),
        'profiles[0].plugins.score.enabled[0].weight: Invalid value: "3": must be an integer',
    ),
]
