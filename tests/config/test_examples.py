"""The files in examples/ say what the documentation they come from says."""

from pathlib import Path

import pytest
from tests.config.test_plugin_sets import extends

from bayplan.config.load import load_configuration
from bayplan.config.plugin_sets import expand_profiles
from bayplan.config.types import PluginEntry, ScoringStrategyType, UtilizationShapePoint

EXAMPLES = Path(__file__).parents[2] / "examples"
FOO, BAR = "intel.com/foo", "intel.com/bar"
WORKED = {FOO: 5, "cpu": 3, "memory": 1}
PACKING, SPREADING = [(0, 0), (100, 10)], [(0, 10), (100, 0)]


def profile(name):
    (only,) = load_configuration(EXAMPLES / name).profiles
    return only


def strategy(name):
    found = profile(name).plugin_config["NodeResourcesFit"].scoring_strategy
    return found.type, {each.name: each.weight for each in found.resources}, found.shape


@pytest.mark.parametrize(
    ("name", "resources", "shape", "scores", "weight"),
    [
        ("policy-worked-example.json", WORKED, PACKING, 1, 1),
        ("worked-example.yaml", WORKED, PACKING, 1, 1),
        ("policy-least-requested.json", WORKED, SPREADING, 1, 1),
        ("worked-example-least-requested.yaml", WORKED, SPREADING, 1, 1),
        ("policy-extended-resources.json", {FOO: 3, BAR: 5}, PACKING, 1, 2),
        ("requested-to-capacity-ratio.yaml", {FOO: 3, BAR: 3}, PACKING, 5, 1),
    ],
)
def test_an_example_of_a_shape_has_its_points_and_weights(name, resources, shape, scores, weight):
    points = tuple(UtilizationShapePoint(*point) for point in shape)
    assert strategy(name) == (ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO, resources, points)
    listed = expand_profiles(load_configuration(EXAMPLES / name), extends)["bayplan"]["score"]
    assert (len(listed), {each.name: each.weight for each in listed}["NodeResourcesFit"]) == (scores, weight)


def test_most_allocated_has_its_weights():
    resources = {"cpu": 1, "memory": 1, FOO: 3, BAR: 3}
    assert strategy("most-allocated.yaml") == (ScoringStrategyType.MOST_ALLOCATED, resources, ())


def test_disable_preemption_disables_it():
    disabled = profile("disable-preemption-v1alpha1.yaml").plugins.post_filter.disabled
    assert disabled == (PluginEntry("DefaultPreemption"),)
