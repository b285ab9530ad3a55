"""Component configurations from before 1.19."""

# ruff: noqa: E501 - error texts stand whole, so that they can be searched for

import pytest
from tests.config.configurations import ALL_PLUGINS, POLICY, V1, V1ALPHA1, complaints, load, write

from bayplan.config.types import PluginEntry, ScoringStrategyType


def test_the_default_provider_is_todays_default_profile(tmp_path):
    assert load(tmp_path, V1ALPHA1 | {"algorithmSource": {"provider": "DefaultProvider"}}) == load(tmp_path, V1)
    assert load(tmp_path, V1ALPHA1) == load(tmp_path, V1)
    alpha2 = V1ALPHA1 | {"apiVersion": "kubescheduler.config.k8s.io/v1alpha2"}
    assert load(tmp_path, alpha2) == load(tmp_path, V1)


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


def test_a_policy_file_is_found_beside_the_configuration(tmp_path):
    write(tmp_path, POLICY | {"priorities": [{"name": "MostRequestedPriority", "weight": 1}]}, "policy.json")
    content = V1ALPHA1 | {
        "algorithmSource": {"policy": {"file": {"path": "policy.json"}}},
        "schedulerName": "x",
        "disablePreemption": True,
    }
    profile = load(tmp_path, content).profiles[0]
    assert profile.scheduler_name == "x"
    assert profile.plugin_config["NodeResourcesFit"].scoring_strategy.type is ScoringStrategyType.MOST_ALLOCATED
    assert profile.plugins.post_filter.disabled == (PluginEntry("DefaultPreemption"),)
    assert profile.plugins.multi_point.disabled == (PluginEntry("*"),)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            {"provider": "ClusterAutoscalerProvider"},
            'algorithmSource.provider: Unsupported value: "ClusterAutoscalerProvider": supported values: "DefaultProvider"',
        ),
        ({"policy": {"file": {}}}, "algorithmSource.policy.file.path: Required value"),
        (
            {"policy": {"configMap": {"name": "x"}}},
            "algorithmSource.policy.configMap: Forbidden: is not supported; mount the ConfigMap and name the file",
        ),
        (
            {"provider": "DefaultProvider", "policy": {"file": {"path": "policy.json"}}},
            "algorithmSource.policy: Forbidden: may not be given together with provider",
        ),
        ({"nope": 1}, "algorithmSource.nope: unknown field"),
    ],
)
def test_another_source_is_an_error_at_its_field(tmp_path, source, expected):
    write(tmp_path, POLICY, "policy.json")
    assert complaints(tmp_path, V1ALPHA1 | {"algorithmSource": source}) == [expected]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (POLICY | {"predicates": [{"name": "Foo"}]}, 'predicates[0].name: Invalid value: "Foo": does not exist'),
        (V1, "kind: must be Policy, and apiVersion v1"),
        (b"\xff", "is not UTF-8 text: byte 0 is wrong"),
    ],
)
def test_errors_of_the_policy_file_name_it(tmp_path, policy, expected):
    path = write(tmp_path, policy, "policy.json")
    content = V1ALPHA1 | {"algorithmSource": {"policy": {"file": {"path": "policy.json"}}}, "parallelism": 1}
    assert complaints(tmp_path, content) == [
        f"algorithmSource.policy.file.path: {path}: {expected}",
        "parallelism: unknown field",
    ]


def test_a_missing_policy_file_is_one_error(tmp_path):
    content = V1ALPHA1 | {"algorithmSource": {"policy": {"file": {"path": "gone.json"}}}}
    assert complaints(tmp_path, content) == [
        f"algorithmSource.policy.file.path: {tmp_path / 'gone.json'}: cannot be read: No such file or directory"
    ]
