"""What a simulation reads of its decisions, and tells of an attempt."""

import pytest
from msgspec import UNSET
from tests.builders import make_node, make_pod

from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.framework.status import Code, Status
from bayplan.scheduler.decision import FitError
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.step import explaining, scoring, tracing


class Refuses:
    """A Reserve plugin that takes no pod."""

    name = "Refuses"

    def reserve(self, state, pod, node_name):
        return Status(Code.UNSCHEDULABLE, ("taken",), self.name)

    def unreserve(self, state, pod, node_name):
        """Nothing was taken."""


@pytest.fixture
def simulator():
    made = Simulator(default_configuration())
    made.add(ClusterObjects(nodes=[make_node("n1"), make_node("n2", cpu=2)], pods=[PodInfo(make_pod("p", cpu=1))]))
    return made


def test_without_a_reader_nothing_is_read(simulator):
    step = simulator.step()
    assert (step.read.explanation, step.read.trace, step.read.scores) == (None, None, None)
    assert step.explained_attempt() == step.attempt()


def test_a_reader_tells_of_the_decision_as_it_was_before_the_pod_took_its_room(simulator):
    nodes = simulator.cache.nodes
    readers = explaining(nodes), tracing(nodes), scoring
    heard = []
    simulator.reader = lambda decision: heard.extend(read(decision) for read in readers) or heard[0]
    step = simulator.step()
    explained, traced, scored = heard
    chosen = explained.explanation.chosen
    assert (chosen.node, chosen.total) == (step.outcome.node_name, step.outcome.score)
    assert {name: verdict.score for name, verdict in traced.trace.items()}[chosen.node] == chosen.total
    assert explained.scores == scored.scores == traced.trace[chosen.node].scores
    assert step.read is explained


def test_the_report_has_what_was_read_only_where_it_is_asked_for(simulator):
    simulator.reader = tracing(simulator.cache.nodes)
    step = simulator.step()
    (reported,) = simulator.report_of(step.pod).attempts
    assert (reported.nodes, reported.explanation) == (UNSET, UNSET)
    told = step.explained_attempt()
    assert told.nodes.keys() == {"n1", "n2"}
    assert told.explanation.chosen.node == told.node


def test_a_node_that_a_plugin_rejects_after_all_is_not_explained_as_chosen(simulator):
    (framework,) = simulator.frameworks.values()
    framework.reserves = [Refuses()]
    simulator.reader = tracing(simulator.cache.nodes)
    step = simulator.step()
    assert isinstance(step.outcome, FitError)
    told = step.explained_attempt()
    assert "taken" in told.message
    assert (told.node, told.explanation) == (None, UNSET)
    assert told.nodes.keys() == {"n1", "n2"}
