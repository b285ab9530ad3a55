"""KubeSchedulerConfiguration v1: what a file means."""

# ruff: noqa: E501 - error texts stand whole, so that they can be searched for

from datetime import timedelta

import pytest
import yaml
from tests.config.configurations import ALL_PLUGINS, POLICY, V1, affinity, complaints, fit, load, profile_with_args

from bayplan.api.objects import NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.config.bayplan_args import DefaultPreemptionArgs
from bayplan.config.connections import (
    ClientConnection,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    LeaderElection,
)
from bayplan.config.convert import to_effective_yaml
from bayplan.config.types import (
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    OpaqueArgs,
    PodTopologySpreadArgs,
    PodTopologySpreadDefaulting,
    ResourceSpec,
    SchedulerConfiguration,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
    VolumeBindingArgs,
)


def fit_args(configuration):
    return configuration.profiles[0].plugin_config["NodeResourcesFit"]


def test_an_empty_configuration_has_kube_schedulers_defaults(tmp_path):
    configuration = load(tmp_path, V1)
    assert configuration.parallelism == 16
    assert configuration.client_connection == ClientConnection(
        kubeconfig="", accept_content_types="", content_type="application/vnd.kubernetes.protobuf", qps=50, burst=100
    )
    assert configuration.enable_profiling
    assert configuration.enable_contention_profiling
    assert (configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds) == (1, 10)
    assert configuration.extenders == ()
    assert not configuration.delay_cache_until_active
    assert fit_args(configuration) == NodeResourcesFitArgs(
        scoring_strategy=ScoringStrategy(
            ScoringStrategyType.LEAST_ALLOCATED, (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
        )
    )


def test_where_bayplan_differs_from_kube_scheduler_by_default(tmp_path):
    configuration = load(tmp_path, V1)
    assert [profile.scheduler_name for profile in configuration.profiles] == ["bayplan"]
    assert configuration.percentage_of_nodes_to_score is None
    assert configuration.leader_election == LeaderElection(
        leader_elect=None,
        lease_duration=timedelta(seconds=15),
        renew_deadline=timedelta(seconds=10),
        retry_period=timedelta(seconds=2),
        resource_lock="leases",
        resource_name="bayplan",
        resource_namespace="kube-system",
    )


def test_every_field_is_read(tmp_path):
    configuration = load(
        tmp_path,
        """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 4
leaderElection: {leaderElect: true, leaseDuration: 1m, renewDeadline: 30s, retryPeriod: 500ms, resourceLock: leases,
  resourceName: a, resourceNamespace: b}
clientConnection: {kubeconfig: /k, acceptContentTypes: application/json, contentType: application/json, qps: -1.5,
  burst: 7}
enableProfiling: false
enableContentionProfiling: true
percentageOfNodesToScore: 30
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
delayCacheUntilActive: true
profiles:
- schedulerName: x
  percentageOfNodesToScore: 0
""",
    )
    profile = configuration.profiles[0]
    assert (profile.scheduler_name, profile.percentage_of_nodes_to_score) == ("x", 0)
    assert configuration == SchedulerConfiguration(
        parallelism=4,
        leader_election=LeaderElection(
            True, timedelta(minutes=1), timedelta(seconds=30), timedelta(milliseconds=500), "leases", "a", "b"
        ),
        client_connection=ClientConnection("/k", "application/json", "application/json", -1.5, 7),
        enable_profiling=False,
        enable_contention_profiling=True,
        percentage_of_nodes_to_score=30,
        pod_initial_backoff_seconds=2,
        pod_max_backoff_seconds=20,
        profiles=configuration.profiles,
        delay_cache_until_active=True,
    )


def test_an_explicit_zero_percentage_is_kept_apart_from_none(tmp_path):
    assert load(tmp_path, V1 | {"percentageOfNodesToScore": 0}).percentage_of_nodes_to_score == 0
    assert load(tmp_path, V1 | {"percentageOfNodesToScore": None}).percentage_of_nodes_to_score is None


@pytest.mark.parametrize("given", [True, False, None])
def test_whether_leader_election_was_asked_for_is_kept(tmp_path, given):
    block = {} if given is None else {"leaderElect": given}
    assert load(tmp_path, V1 | {"leaderElection": block}).leader_election.leader_elect is given


def test_contention_profiling_follows_profiling(tmp_path):
    assert not load(tmp_path, V1 | {"enableProfiling": False}).enable_contention_profiling


def test_zero_qps_burst_and_durations_mean_the_default(tmp_path):
    configuration = load(
        tmp_path, V1 | {"clientConnection": {"qps": 0, "burst": 0}, "leaderElection": {"leaseDuration": "0s"}}
    )
    assert configuration == load(tmp_path, V1)


def test_null_is_the_same_as_nothing_everywhere(tmp_path):
    names = yaml.safe_load(to_effective_yaml(load(tmp_path, V1 | {"percentageOfNodesToScore": 1}))).keys() - V1.keys()
    assert load(tmp_path, V1 | dict.fromkeys(names)) == load(tmp_path, V1)
    assert load(tmp_path, V1 | {"profiles": [None]}) == load(tmp_path, V1)
    profile = dict.fromkeys(("schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"))
    assert load(tmp_path, V1 | {"profiles": [profile]}) == load(tmp_path, V1)
    sets = {"plugins": {"score": {"enabled": None, "disabled": None}, "filter": None}}
    assert load(tmp_path, V1 | {"profiles": [sets]}) == load(tmp_path, V1)
    assert load(tmp_path, profile_with_args("NodeResourcesFit", None)) == load(tmp_path, V1)


def test_integers_may_be_written_as_floats_without_a_fraction(tmp_path):
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 1e1\n"
    assert load(tmp_path, text).parallelism == 10


def test_fit_args_are_read_with_their_defaults(tmp_path):
    strategy = {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "cpu"}, {"name": "a.com/b", "weight": 0}, {"name": "cpu", "weight": 100}],
        "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100}]},
    }
    content = fit(ignoredResources=["a.com/x"], ignoredResourceGroups=["b.com"], scoringStrategy=strategy)
    assert fit_args(load(tmp_path, content)) == NodeResourcesFitArgs(
        ("a.com/x",),
        ("b.com",),
        ScoringStrategy(
            ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO,
            (ResourceSpec("cpu", 1), ResourceSpec("a.com/b", 1), ResourceSpec("cpu", 100)),
            (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0)),
        ),
    )


def test_args_may_name_their_kind(tmp_path):
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeResourcesFitArgs"}
    assert load(tmp_path, fit(**kind)) == load(tmp_path, V1)
    assert load(tmp_path, fit(kind="NodeResourcesFitArgs")) == load(tmp_path, V1)


def test_every_enabled_plugin_with_arguments_has_an_entry(tmp_path):
    assert load(tmp_path, V1).profiles[0].plugin_config == {
        "DefaultPreemption": DefaultPreemptionArgs(10, 100),
        "DynamicResources": DynamicResourcesArgs(timedelta(seconds=10), timedelta(minutes=10)),
        "InterPodAffinity": InterPodAffinityArgs(1, False),
        "NodeAffinity": NodeAffinityArgs(None),
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(
            (ResourceSpec("cpu"), ResourceSpec("memory"))
        ),
        "NodeResourcesFit": NodeResourcesFitArgs(),
        "PodTopologySpread": PodTopologySpreadArgs((), PodTopologySpreadDefaulting.SYSTEM),
        "VolumeBinding": VolumeBindingArgs(600),
    }


def test_added_affinity_is_read(tmp_path):
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": terms[0]}],
    }
    args = load(tmp_path, profile_with_args("NodeAffinity", {"addedAffinity": affinity})).profiles[0].plugin_config
    term = NodeSelectorTerm([NodeSelectorRequirement("zone", "In", ["a"])])
    added = args["NodeAffinity"].added_affinity
    assert isinstance(added, NodeAffinity)
    assert added.required_during_scheduling_ignored_during_execution == NodeSelector([term])
    assert [each.weight for each in added.preferred_during_scheduling_ignored_during_execution] == [3]


@pytest.mark.parametrize("weight", [{}, {"weight": 0}])
def test_the_expressions_of_a_preferred_term_of_weight_0_are_not_checked_as_in_kube_scheduler(tmp_path, weight):
    wrong = {"preference": {"matchExpressions": [{"key": "-", "operator": "Best"}]}}
    assert load(tmp_path, affinity(preferred=[weight | wrong]))
    assert complaints(tmp_path, affinity(preferred=[{"weight": 1} | wrong]))


@pytest.mark.parametrize("profiles", [None, [], [{}], [{"pluginConfig": []}], [{"schedulerName": "bayplan"}]])
def test_a_file_that_says_nothing_of_default_constraints_has_those_of_kube_scheduler(tmp_path, profiles):
    content = V1 if profiles is None else V1 | {"profiles": profiles}
    (found,) = load(tmp_path, content, known_plugins=ALL_PLUGINS).profiles
    assert found.plugin_config["PodTopologySpread"].defaulting_type is PodTopologySpreadDefaulting.SYSTEM


def test_spread_constraints_are_read(tmp_path):
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}
    content = profile_with_args("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [constraint]})
    args = load(tmp_path, content, known_plugins=ALL_PLUGINS).profiles[0].plugin_config["PodTopologySpread"]
    assert args.defaulting_type is PodTopologySpreadDefaulting.LIST
    assert [(each.max_skew, each.topology_key, each.min_domains) for each in args.default_constraints] == [
        (1, "zone", 2)
    ]


def test_plugins_from_outside_keep_their_arguments(tmp_path):
    content = profile_with_args("Mine", {"a": [1]})
    configuration = load(tmp_path, content, known_plugins=ALL_PLUGINS | {"Mine"})
    assert configuration.profiles[0].plugin_config["Mine"] == OpaqueArgs({"a": [1]})


def test_extenders_are_read(tmp_path):
    extender = {
        "urlPrefix": "https://x",
        "filterVerb": "f",
        "preemptVerb": "p",
        "prioritizeVerb": "s",
        "weight": 2,
        "bindVerb": "b",
        "enableHTTPS": True,
        "httpTimeout": "30s",
        "nodeCacheCapable": True,
        "ignorable": True,
        "managedResources": [{"name": "a.com/b", "ignoredByScheduler": True}],
        "tlsConfig": {"insecure": True, "serverName": "n", "certFile": "c", "keyData": "aGk="},
    }
    configuration = load(tmp_path, V1 | {"extenders": [extender]})
    assert configuration.extenders == (
        Extender(
            "https://x",
            "f",
            "p",
            "s",
            2,
            "b",
            True,
            ExtenderTLSConfig(insecure=True, server_name="n", cert_file="c", key_data=b"hi"),
            timedelta(seconds=30),
            True,
            (ExtenderManagedResource("a.com/b", True),),
            True,
        ),
    )
    assert "hi" not in repr(configuration.extenders)


def test_the_only_profile_can_be_renamed(tmp_path):
    assert load(tmp_path, V1, scheduler_name="x").profiles[0].scheduler_name == "x"
    content = V1 | {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]}
    assert complaints(tmp_path, content, scheduler_name="x") == [
        "--scheduler-name: Forbidden: renames the only profile, but there are 2"
    ]
    assert complaints(tmp_path, V1, scheduler_name="") == ["--scheduler-name: Required value"]
    (said,) = complaints(tmp_path, V1, scheduler_name="a,b")
    assert said == '--scheduler-name: Invalid value: "a,b": is one name; for several, --config has a profile for each'


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"a": 1}, "kind: Required value: KubeSchedulerConfiguration or Policy"),
        (
            V1 | {"kind": "Pod"},
            'kind: Unsupported value: "Pod": supported values: "KubeSchedulerConfiguration", "Policy"',
        ),
        (
            V1 | {"kind": ["Pod"]},
            'kind: Unsupported value: list: supported values: "KubeSchedulerConfiguration", "Policy"',
        ),
        (
            {"kind": "KubeSchedulerConfiguration"},
            'apiVersion: Required value: kubescheduler.config.k8s.io/v1 for kind "KubeSchedulerConfiguration"',
        ),
        (
            V1 | {"apiVersion": "v1"},
            'apiVersion: Unsupported value: "v1": supported values: "kubescheduler.config.k8s.io/v1", "kubescheduler.config.k8s.io/v1alpha1"',
        ),
        (
            V1 | {"apiVersion": {}},
            'apiVersion: Unsupported value: object: supported values: "kubescheduler.config.k8s.io/v1", "kubescheduler.config.k8s.io/v1alpha1"',
        ),
        (POLICY | {"apiVersion": "v2"}, 'apiVersion: Unsupported value: "v2": supported values: "v1"'),
        *(
            (
                V1 | {"apiVersion": f"kubescheduler.config.k8s.io/{version}", "profiles": []},
                (
                    f'apiVersion: Invalid value: "kubescheduler.config.k8s.io/{version}": was removed from kube-scheduler; change it '
                    "to kubescheduler.config.k8s.io/v1 and move resource scoring plugins to the scoringStrategy of "
                    "NodeResourcesFit; v1, v1alpha1 and Policy v1 are read"
                ),
            )
            for version in ("v1alpha2", "v1beta1", "v1beta2", "v1beta3")
        ),
    ],
)
def test_another_kind_or_version_says_what_to_do(tmp_path, document, expected):
    assert complaints(tmp_path, document) == [expected]
