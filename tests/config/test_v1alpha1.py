"""Component configurations from before 1.19."""

import pytest
from tests.config.configurations import ALL_PLUGINS, POLICY, V1, V1ALPHA1, complaints, load, strategy, write

from bayplan.config.plugin_sets import IMPLEMENTED_PLUGINS, expand_profiles
from bayplan.config.types import InterPodAffinityArgs, PluginEntry, ScoringStrategyType
from bayplan.plugins.registry import in_tree_extends


def test_the_default_provider_is_todays_default_profile(tmp_path):
    assert load(tmp_path, V1ALPHA1 | {"algorithmSource": {"provider": "DefaultProvider"}}) == load(tmp_path, V1)
    assert load(tmp_path, V1ALPHA1) == load(tmp_path, V1)


def test_the_autoscalers_provider_packs(tmp_path):
    content = V1ALPHA1 | {"algorithmSource": {"provider": "ClusterAutoscalerProvider"}}
    assert load(tmp_path, content) == load(tmp_path, strategy(type="MostAllocated"))


def test_settings_outside_plugin_config_leave_its_other_arguments_alone(tmp_path):
    given = {
        "NodeResourcesFit": {"ignoredResources": ["example.com/foo"]},
        "VolumeBinding": {"shape": [{"utilization": 0, "score": 1}, {"utilization": 100, "score": 10}]},
    }
    content = V1ALPHA1 | {
        "algorithmSource": {"provider": "ClusterAutoscalerProvider"},
        "bindTimeoutSeconds": 300,
        "pluginConfig": [{"name": name, "args": args} for name, args in given.items()],
    }
    config = load(tmp_path, content).profiles[0].plugin_config
    assert config["NodeResourcesFit"].ignored_resources == ("example.com/foo",)
    assert config["NodeResourcesFit"].scoring_strategy.type is ScoringStrategyType.MOST_ALLOCATED
    assert [point.score for point in config["VolumeBinding"].shape] == [1, 10]
    assert config["VolumeBinding"].bind_timeout_seconds == 300


def test_a_whole_file_of_its_time_is_read(tmp_path):
    notes = []
    content = V1ALPHA1 | {
        "schedulerName": "x",
        "algorithmSource": {"provider": "DefaultProvider"},
        "hardPodAffinitySymmetricWeight": 7,
        "leaderElection": {
            "leaderElect": True,
            "leaseDuration": "15s",
            "renewDeadline": "10s",
            "retryPeriod": "2s",
            "resourceLock": "endpoints",
            "lockObjectName": "kube-scheduler",
            "lockObjectNamespace": "kube-system",
        },
        "clientConnection": {
            "kubeconfig": "",
            "acceptContentTypes": "",
            "contentType": "application/vnd.kubernetes.protobuf",
            "qps": 50,
            "burst": 100,
        },
        "healthzBindAddress": "0.0.0.0:10251",
        "metricsBindAddress": "0.0.0.0:10251",
        "enableProfiling": False,
        "enableContentionProfiling": False,
        "disablePreemption": False,
        "percentageOfNodesToScore": 50,
        "bindTimeoutSeconds": 300,
        "podInitialBackoffSeconds": 2,
        "podMaxBackoffSeconds": 20,
    }
    configuration = load(tmp_path, content, notes=notes)
    today = V1 | {
        "leaderElection": {"leaderElect": True, "resourceName": "kube-scheduler", "resourceNamespace": "kube-system"},
        "enableProfiling": False,
        "percentageOfNodesToScore": 50,
        "podInitialBackoffSeconds": 2,
        "podMaxBackoffSeconds": 20,
        "profiles": [
            {
                "schedulerName": "x",
                "pluginConfig": [
                    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}},
                    {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 300}},
                ],
            }
        ],
    }
    assert configuration == load(tmp_path, today)
    assert list(map(str, notes)) == [
        "leaderElection.resourceLock: is leases: Kubernetes has no endpoints lock any more",
        f"healthzBindAddress: {SERVED}",
        f"metricsBindAddress: {SERVED}",
    ]


SERVED = "has no successor; use --bind-address and --secure-port of bayplan run"
PORT, IP = "must be between 1 and 65535, inclusive", "must be a valid IP address, (e.g. 10.9.8.7)"


@pytest.mark.parametrize("key", ["healthzBindAddress", "metricsBindAddress"])
@pytest.mark.parametrize(
    ("address", "refusals"),
    [
        ("0.0.0.0:10251", []),
        ("[::]:10251", []),
        (":10251", []),
        ("127.0.0.1", []),
        # What is no address at all was replaced by the default in those days, before it was checked.
        ("nonsense", []),
        ("::1", []),
        ("nonsense:80", [IP]),
        ("0.0.0.0:0", [PORT]),
        ("0.0.0.0:65536", [PORT]),
        ("[nonsense]:http", [PORT, IP]),
    ],
)
def test_an_address_is_refused_as_it_was(tmp_path, key, address, refusals):
    notes = []
    content = V1ALPHA1 | {key: address}
    if refusals:
        assert complaints(tmp_path, content) == [f'{key}: Invalid value: "{address}": {each}' for each in refusals]
    else:
        load(tmp_path, content, notes=notes)
        assert list(map(str, notes)) == [f"{key}: {SERVED}"]


@pytest.mark.parametrize("lock", ["configmaps", "endpointsleases", "configmapsleases"])
def test_every_lock_of_its_time_is_a_lease_today(tmp_path, lock):
    notes = []
    content = V1ALPHA1 | {"leaderElection": {"resourceLock": lock}}
    assert load(tmp_path, content, notes=notes) == load(tmp_path, V1)
    assert [note.path for note in notes] == ["leaderElection.resourceLock"]


def test_a_policys_own_affinity_weight_wins(tmp_path):
    content = V1ALPHA1 | {
        "algorithmSource": {"policy": {"file": {"path": "policy.json"}}},
        "hardPodAffinitySymmetricWeight": 7,
    }
    for own, expected in ((9, 9), (1, 1), (0, 7), (None, 7)):
        write(tmp_path, POLICY | {"hardPodAffinitySymmetricWeight": own}, "policy.json")
        args = load(tmp_path, content).profiles[0].plugin_config["InterPodAffinity"]
        assert args == InterPodAffinityArgs(expected)


OUTSIDE = {"enabled": [{"name": "Outside"}]}
KNOWN = IMPLEMENTED_PLUGINS | {"Outside", "Other"}


def test_plugins_stand_under_their_old_extension_points(tmp_path):
    notes = []
    config = [{"name": "Outside", "args": {"x": 1}}]
    plugins = {"postFilter": OUTSIDE, "reserve": OUTSIDE, "unreserve": OUTSIDE}
    content = V1ALPHA1 | {"plugins": plugins, "pluginConfig": config}
    today = {"preScore": OUTSIDE, "reserve": OUTSIDE}
    v1 = V1 | {"profiles": [{"plugins": today, "pluginConfig": config}]}
    assert load(tmp_path, content, known_plugins=KNOWN, notes=notes) == load(tmp_path, v1, known_plugins=KNOWN)
    assert list(map(str, notes)) == [
        "plugins.postFilter: is called preScore today",
        "plugins.unreserve: is part of reserve: a plugin that reserves also unreserves",
    ]


def test_what_only_unreserves_is_said_to_be_dropped(tmp_path):
    notes = []
    plugins = {"reserve": OUTSIDE, "unreserve": {"enabled": [{"name": "Outside"}, {"name": "Other"}]}}
    configuration = load(tmp_path, V1ALPHA1 | {"plugins": plugins}, known_plugins=KNOWN, notes=notes)
    today = V1 | {"profiles": [{"plugins": {"reserve": OUTSIDE}}]}
    assert configuration == load(tmp_path, today, known_plugins=KNOWN)
    assert str(notes[1]) == "plugins.unreserve: Other is dropped: it is not enabled at reserve"


def test_disabling_default_plugins_has_no_effect_as_there_were_none(tmp_path):
    notes = []
    everything = {"disabled": [{"name": "*"}]}
    plugins = {"filter": {"disabled": [{"name": "OfThatTime"}]}, "postFilter": everything, "score": everything}
    assert load(tmp_path, V1ALPHA1 | {"plugins": plugins}, notes=notes) == load(tmp_path, V1)
    detail = "has no effect, as in v1alpha1: use v1 to disable default plugins"
    assert list(map(str, notes)) == [
        f"plugins.filter.disabled: {detail}",
        "plugins.postFilter: is called preScore today",
        f"plugins.postFilter.disabled: {detail}",
        f"plugins.score.disabled: {detail}",
    ]


@pytest.mark.parametrize("key", ["preScore", "preEnqueue", "multiPoint"])
def test_extension_points_of_later_versions_are_unknown(tmp_path, key):
    (line,) = complaints(tmp_path, V1ALPHA1 | {"plugins": {"postFilter": OUTSIDE, key: {}}}, known_plugins=KNOWN)
    assert line.startswith(f"plugins.{key}: unknown field")


def test_errors_of_plugin_sets_name_the_old_extension_point(tmp_path):
    content = V1ALPHA1 | {"plugins": {"postFilter": {"enabled": [{"name": "NodeName"}]}}}
    told = 'plugins.postFilter: plugin "NodeName" does not extend PreScorePlugin plugin'
    options = {"extends": in_tree_extends, "check": lambda made: expand_profiles(made, in_tree_extends)}
    assert complaints(tmp_path, content, **options) == [told]
    assert complaints(tmp_path, content | {"bindTimeoutSeconds": -1}, **options)[1:] == [told]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"bindTimeoutSeconds": -1}, "bindTimeoutSeconds: Invalid value: -1: must be non-negative"),
        (
            {"hardPodAffinitySymmetricWeight": 101},
            "hardPodAffinitySymmetricWeight: Invalid value: 101: not in valid range [0, 100]",
        ),
        (
            {"leaderElection": {"lockObjectName": "a", "resourceName": "b"}},
            "leaderElection.lockObjectName: Forbidden: may not be given together with another resourceName",
        ),
        (
            {"leaderElection": {"resourceLock": "x"}},
            'leaderElection.resourceLock: Invalid value: "x": resourceLock value must be "leases"',
        ),
        (
            {
                "algorithmSource": {"policy": {"file": {"path": "policy.json"}}},
                "plugins": {"score": {"disabled": [{"name": "*"}]}},
            },
            "plugins: Forbidden: may not be given together with a policy",
        ),
        (
            {"plugins": {"filter": {"enabled": [{"name": "Foo"}]}}},
            'plugins.filter.enabled[0]: Invalid value: "Foo": does not exist',
        ),
        (
            {"plugins": {"postFilter": {"enabled": [{"name": "Foo"}]}}},
            'plugins.postFilter.enabled[0]: Invalid value: "Foo": does not exist',
        ),
        ({"plugins": {"unreserve": 5}}, "plugins.unreserve: Invalid value: 5: must be an object"),
        (
            {"leaderElection": {"lockObjectName": 5}},
            "leaderElection.lockObjectName: Invalid value: 5: must be a string; put it in quotes",
        ),
        ({"leaderElection": 5}, "leaderElection: Invalid value: 5: must be an object"),
        ({"plugins": 5}, "plugins: Invalid value: 5: must be an object"),
    ],
)
def test_a_mistake_is_an_error_at_its_field(tmp_path, fields, expected):
    write(tmp_path, POLICY, "policy.json")
    assert complaints(tmp_path, V1ALPHA1 | fields) == [expected]


def test_disable_preemption_holds_preemption_back_from_post_filter(tmp_path):
    content = V1ALPHA1 | {"algorithmSource": {"provider": "DefaultProvider"}, "disablePreemption": True}
    v1 = V1 | {"profiles": [{"plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}}]}
    for known in (ALL_PLUGINS, ALL_PLUGINS - {"DefaultPreemption"}):
        configuration = load(tmp_path, content, known_plugins=known)
        assert configuration.profiles[0].plugins.post_filter.disabled == (PluginEntry("DefaultPreemption"),)
        assert configuration == load(tmp_path, v1, known_plugins=known)


def test_preemption_stays_on_when_it_is_not_disabled(tmp_path):
    assert load(tmp_path, V1ALPHA1 | {"disablePreemption": False}) == load(tmp_path, V1)


def test_the_fields_of_the_process_are_the_same_as_in_v1(tmp_path):
    fields = {
        "leaderElection": {"leaderElect": True, "leaseDuration": "20s"},
        "clientConnection": {"qps": 5},
        "percentageOfNodesToScore": 40,
        "enableProfiling": False,
    }
    assert load(tmp_path, V1ALPHA1 | fields) == load(tmp_path, V1 | fields)


def test_the_scheduler_name_names_the_profile(tmp_path):
    assert load(tmp_path, V1ALPHA1 | {"schedulerName": "x"}).profiles[0].scheduler_name == "x"
