"""Configurations that break a rule for settings, profiles, extenders or text, and the error of each."""

from tests.config.broken_documents import ARGS, NAME_RULE, election, extenders, plugins, strategy
from tests.config.configurations import V1, fit, profile_with_args

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
