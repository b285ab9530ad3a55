"""Where a component configuration from before 1.19 has its policy from."""

# ruff: noqa: E501 - error texts stand whole, so that they can be searched for

import os

import pytest
from tests.config.configurations import POLICY, V1, V1ALPHA1, complaints, load, write

from bayplan.config.errors import ConfigurationError
from bayplan.config.types import PluginEntry, ScoringStrategyType


@pytest.mark.parametrize("name", ["x\nconfig.yaml: ok: 1 profile: bayplan", "a\0b", "\x1b[31mred"])
def test_the_name_of_a_policy_file_stays_on_its_line_and_acts_on_no_terminal(tmp_path, name):
    content = V1ALPHA1 | {"algorithmSource": {"policy": {"file": {"path": name}}}}
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, content)
    assert str(caught.value).isprintable()


def test_notes_on_a_policy_file_name_it(tmp_path):
    notes = []
    path = write(tmp_path, POLICY | {"alwaysCheckAllPredicates": True}, "policy.json")
    load(tmp_path, V1ALPHA1 | {"algorithmSource": {"policy": {"file": {"path": "policy.json"}}}}, notes=notes)
    (note,) = map(str, notes)
    assert note.startswith(f"algorithmSource.policy.file.path: {path}: alwaysCheckAllPredicates: has no effect")


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


def test_a_policy_beside_a_provider_is_not_read(tmp_path):
    """Upstream, 1.16: scheduler.go New looks at the provider first."""
    notes = []
    source = {"provider": "ClusterAutoscalerProvider", "policy": {"file": {"path": "nowhere.json"}}}
    both = load(tmp_path, V1ALPHA1 | {"algorithmSource": source}, notes=notes)
    assert both == load(tmp_path, V1ALPHA1 | {"algorithmSource": {"provider": "ClusterAutoscalerProvider"}})
    assert [*map(str, notes)] == ["algorithmSource.policy: is not read, as a provider is named"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            {"provider": "MyProvider"},
            'algorithmSource.provider: Unsupported value: "MyProvider": supported values: "DefaultProvider", "ClusterAutoscalerProvider"',
        ),
        ({"policy": {"file": {}}}, "algorithmSource.policy.file.path: Required value"),
        (
            {"policy": {"configMap": {"name": "x"}}},
            "algorithmSource.policy.configMap: Forbidden: is not supported; mount the ConfigMap and name the file",
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


def test_a_policy_path_that_is_no_regular_file_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("pipe", "/dev/zero"):
        content = V1ALPHA1 | {"algorithmSource": {"policy": {"file": {"path": path}}}}
        assert complaints(tmp_path, content) == [
            f"algorithmSource.policy.file.path: {tmp_path / path}: is no regular file"
        ]


def test_a_very_long_policy_path_is_shortened(tmp_path):
    content = V1ALPHA1 | {"algorithmSource": {"policy": {"file": {"path": "x" * 100_000 + "end.json"}}}}
    (line,) = complaints(tmp_path, content)
    assert line.endswith("end.json: cannot be read: File name too long")
    assert len(line) < 1000
