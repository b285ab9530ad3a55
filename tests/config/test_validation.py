"""Every rule kube-scheduler has for a configuration, with the path and the text of its error."""

# ruff: noqa: E501 - error texts stand whole, so that they can be searched for

import pytest
from tests.config.broken_args import AFFINITY, FIT_AND_OTHERS
from tests.config.broken_settings import SETTINGS
from tests.config.configurations import (
    ALL_PLUGINS,
    ARGS,
    V1,
    affinity,
    complaints,
    election,
    extenders,
    load,
    plugins,
    profile_with_args,
    ratio,
    strategy,
)


@pytest.mark.parametrize(
    ("content", "expected"),
    [*SETTINGS, *FIT_AND_OTHERS, *AFFINITY],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
def test_a_broken_rule_is_one_error_at_its_field(tmp_path, content, expected):
    lines = complaints(tmp_path, content, known_plugins=ALL_PLUGINS)
    assert expected in lines
    assert len(lines) == 1 or any(text in expected for text in TWO_RULES)


# These break two rules at once, as in kube-scheduler.
TWO_RULES = ('leaderElection.leaseDuration: Invalid value: "-1s"', "values must be sorted", ".values[0][a]")


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


FORMER = {
    "DefaultPodTopologySpread": "PodTopologySpread",
    "NodeLabel": "addedAffinity",
    "NodePreferAvoidPods": "PreferNoSchedule",
    "NodeResourceLimits": "no successor",
    "NodeResourcesLeastAllocated": "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
    "SelectorSpread": "PodTopologySpread",
    "ServiceAffinity": "podAffinity",
}
"""Plugins of kube-scheduler 1.17 to 1.20 that are gone, and what the advice names."""


@pytest.mark.parametrize("name", sorted(FORMER))
def test_a_plugin_of_former_times_is_refused_with_what_to_do_instead(tmp_path, name):
    (enabled,) = complaints(tmp_path, plugins(score={"enabled": [{"name": name}]}))
    (disabled,) = complaints(tmp_path, plugins(score={"disabled": [{"name": name}]}))
    (configured,) = complaints(tmp_path, profile_with_args(name, {}))
    advice = enabled.removeprefix(f'profiles[0].plugins.score.enabled[0]: Invalid value: "{name}": ')
    assert advice.startswith("does not exist any more: ")
    assert FORMER[name] in advice
    assert disabled == f'profiles[0].plugins.score.disabled[0]: Invalid value: "{name}": {advice}'
    assert configured == f'profiles[0].pluginConfig[0]: Invalid value: "{name}": {advice}'


def test_a_misspelled_plugin_is_told_with_the_name_that_is_nearest(tmp_path):
    misspelled = [{"name": "NodeResourceFit"}]
    (enabled,) = complaints(tmp_path, plugins(score={"enabled": misspelled}))
    (disabled,) = complaints(tmp_path, plugins(score={"disabled": misspelled}))
    (configured,) = complaints(tmp_path, profile_with_args("NodeResourceFit", {}))
    for said in (enabled, disabled, configured):
        assert said.endswith(': Invalid value: "NodeResourceFit": does not exist, did you mean "NodeResourcesFit"?')


def test_who_enables_coscheduling_is_told_that_no_plugin_has_to_be(tmp_path):
    (said,) = complaints(tmp_path, plugins(multiPoint={"enabled": [{"name": "Coscheduling"}]}))
    assert said.endswith('"Coscheduling": does not exist: pods of a PodGroup are placed together without a plugin')


def test_all_errors_come_at_once(tmp_path):
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 0
parallelism: -1
podInitialBackoffSeconds: x
profiles:
- schedulerName: a
  plugins: {score: {enabled: [{name: Foo}, {name: PodGroupPodsCount}]}}
- schedulerName: a
  nope: 1
"""
    assert sorted(complaints(tmp_path, text)) == [
        "parallelism: Invalid value: -1: should be an integer value greater than zero",
        'parallelism: line 5: key "parallelism" already set in map',
        'podInitialBackoffSeconds: Invalid value: "x": must be an integer',
        'profiles[0].plugins.score.enabled[0]: Invalid value: "Foo": does not exist',
        'profiles[0].plugins.score.enabled[1]: Invalid value: "PodGroupPodsCount": is not implemented in this version of bayplan',
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
    assert len(lines) == 5
    assert not any("hunter2" in line for line in lines)
