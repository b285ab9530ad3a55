"""The files in examples/ say what the documentation they come from says."""

from pathlib import Path

import pytest
from tests.config.test_plugin_sets import extends

from bayplan.config.load import load_configuration
from bayplan.config.plugin_sets import expand_profiles
from bayplan.config.types import PluginEntry, ResourceSpec, ScoringStrategyType

EXAMPLES = Path(__file__).parents[2] / "examples"
WEIGHTS = (ResourceSpec("intel.com/foo", 5), ResourceSpec("cpu", 3), ResourceSpec("memory", 1))


def profile(name):
    (only,) = load_configuration(EXAMPLES / name).profiles
    return only


def strategy(name):
    return profile(name).plugin_config["NodeResourcesFit"].scoring_strategy


def scores(name):
    configuration = load_configuration(EXAMPLES / name)
    return expand_profiles(configuration, extends)["bayplan"]["score"]


@pytest.mark.parametrize(
    ("policy", "v1"),
    [
        ("policy-worked-example.json", "worked-example.yaml"),
        ("policy-least-requested.json", "worked-example-least-requested.yaml"),
    ],
)
def test_the_worked_example_is_the_same_as_policy_and_as_v1(policy, v1):
    assert strategy(policy) == strategy(v1)
    assert strategy(v1).resources == WEIGHTS
    assert strategy(v1).type is ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO
    assert scores(policy) == scores(v1) == (PluginEntry("NodeResourcesFit", 1),)


def test_least_requested_is_the_reverse_of_the_worked_example():
    points = [(point.utilization, point.score) for point in strategy("policy-worked-example.json").shape]
    reverse = [(point.utilization, point.score) for point in strategy("policy-least-requested.json").shape]
    assert points == [(0, 0), (100, 10)]
    assert reverse == [(0, 10), (100, 0)]


def test_the_policy_for_extended_resources_has_its_weights():
    name = "policy-extended-resources.json"
    assert strategy(name).resources == (ResourceSpec("intel.com/foo", 3), ResourceSpec("intel.com/bar", 5))
    assert scores(name) == (PluginEntry("NodeResourcesFit", 2),)


def test_most_allocated_has_its_weights():
    assert strategy("most-allocated.yaml").type is ScoringStrategyType.MOST_ALLOCATED
    assert [(each.name, each.weight) for each in strategy("most-allocated.yaml").resources] == [
        ("cpu", 1),
        ("memory", 1),
        ("intel.com/foo", 3),
        ("intel.com/bar", 3),
    ]


def test_requested_to_capacity_ratio_has_its_weights():
    name = "requested-to-capacity-ratio.yaml"
    assert strategy(name).resources == (ResourceSpec("intel.com/foo", 3), ResourceSpec("intel.com/bar", 3))
    assert [(point.utilization, point.score) for point in strategy(name).shape] == [(0, 0), (100, 10)]


def test_disable_preemption_disables_it():
    disabled = profile("disable-preemption-v1alpha1.yaml").plugins.post_filter.disabled
    assert disabled == (PluginEntry("DefaultPreemption"),)
