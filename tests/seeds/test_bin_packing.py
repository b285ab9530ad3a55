"""What the documentation says of the two strategies that pack, with its own configurations."""

import pytest
from tests.builders import make_node, make_pod
from tests.config.test_examples import EXAMPLES
from tests.simulate.explained import run_explained
from tests.simulate.test_simulator import fit_scores, simulator

from bayplan.config.load import load_configuration
from bayplan.config.types import UtilizationShapePoint
from bayplan.plugins.node_resources.resource_scoring import shape_table

FOO, BAR = "intel.com/foo", "intel.com/bar"
DOCUMENTED = [UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10)]


def scores(example, requests, **used):
    """NodeResourcesFit's scores of nodes of 10 of everything, by what runs there: `used` is resources by node."""
    nodes = [make_node(name, cpu="10", memory="10Gi", allocatable={FOO: 10, BAR: 10}) for name in used]
    running = [make_pod(f"on-{name}", node=name, requests=amounts) for name, amounts in used.items()]
    configuration = load_configuration(EXAMPLES / example)
    return fit_scores(
        run_explained(simulator(nodes, [*running, make_pod(requests=requests)], configuration=configuration))
    )


CORE = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize("example", ["most-allocated.yaml", "requested-to-capacity-ratio.yaml"])
def test_the_node_with_more_allocated_is_favoured(example):
    points = scores(example, {FOO: 1, BAR: 1, **CORE}, empty={}, half={FOO: 5, BAR: 5, **CORE}, fuller={FOO: 8, BAR: 5})
    assert points["empty"] < points["half"] < points["fuller"]


def test_a_resource_counts_as_much_as_its_weight_says():
    # Of the weights 1, 1, 3, 3 in the example: 9 tenths of a device weigh three times as much as 9 tenths of the cores.
    points = scores("most-allocated.yaml", {FOO: 1, BAR: 1, **CORE}, cores={"cpu": "8"}, devices={FOO: 8})
    assert points == {"cores": (90 + 10 + 3 * 10 + 3 * 10) // 8, "devices": (10 + 10 + 3 * 90 + 3 * 10) // 8}


def test_extended_resources_alone_are_packed_when_only_they_are_listed():
    points = scores("requested-to-capacity-ratio.yaml", {FOO: 1, BAR: 1, **CORE}, cores={"cpu": "8"}, devices={FOO: 4})
    assert points == {"cores": 10, "devices": 30}


@pytest.mark.parametrize(("utilization", "score"), [(0, 0), (37, 37), (50, 50), (75, 75), (100, 100)])
def test_the_documented_shape_gives_the_utilization_itself_on_todays_scale_of_100(utilization, score):
    assert shape_table(DOCUMENTED)[utilization] == score


@pytest.mark.parametrize(("example", "best"), [("worked-example", "busy"), ("worked-example-least-requested", "idle")])
def test_the_reversed_shape_favours_the_node_with_less_allocated(example, best):
    points = scores(f"{example}.yaml", {FOO: 1, **CORE}, busy={FOO: 5, "cpu": "5"}, idle={})
    assert max(points, key=points.get) == best
