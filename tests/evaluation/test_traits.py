"""What each trait and optional method of a plugin spares: calls are counted, and without the switch there are more."""

from dataclasses import replace

import numpy as np
import pytest
from tests.builders import make_node, make_pod_info
from tests.plugins.preemption.worlds import World, high, low

from bayplan.cache.cache import Cache
from bayplan.config.types import Profile
from bayplan.evaluation.evaluation import Evaluation
from bayplan.framework.interface import PreFilterResult
from bayplan.framework.nominated_table import Nominations
from bayplan.framework.nominator import Nominator
from bayplan.framework.runtime import Framework
from bayplan.framework.status import SUCCESS, Reads, Traits
from bayplan.plugins.node_resources.node_resources_fit import NodeResourcesFit

NODES = [f"n{number}" for number in range(20)]


class Plugin:
    """Extends all points of an evaluation, agrees with everything, and logs its calls with how many rows they got."""

    name = "Plugin"

    def __init__(self, *, lasting=False, **traits):
        self.traits = Traits(**traits)
        self.lasting = lasting
        self.calls = []

    def sign_pod(self, pod):
        return ()

    def pre_filter(self, state, pod, nodes):
        self.calls.append("pre_filter")
        return PreFilterResult(SUCCESS, lasting=self.lasting)

    def filter(self, state, pod, nodes, rows):
        self.calls.append(("filter", len(rows)))
        return np.zeros(len(rows), dtype=np.int8)

    def reasons(self, state, pod, nodes, rows):
        return []

    def pre_score(self, state, pod, nodes, feasible):
        self.calls.append(("pre_score", len(feasible)))
        return SUCCESS

    def score(self, state, pod, nodes, rows):
        self.calls.append(("score", len(rows)))
        return np.ones(len(rows), dtype=np.int64)


class FewRowsPlugin(Plugin):
    def filter_few(self, state, pod, nodes, rows):
        self.calls.append(("filter_few", len(rows)))
        return [0] * len(rows)

    def score_few(self, state, pod, nodes, rows):
        self.calls.append(("score_few", len(rows)))
        return [1] * len(rows)


class NominatedPlugin(Plugin):
    def filter_with_nominated(self, state, pod, nodes, nominated):
        self.calls.append(("filter_with_nominated", len(nominated.rows)))
        return np.zeros(len(nominated.rows), dtype=np.int8)


class Scene:
    """An evaluation under a profile of one plugin."""

    def __init__(self, plugin, *nominated):
        self.plugin = plugin
        self.cache = Cache()
        for name in NODES:
            self.cache.set_node(make_node(name))
        points = ("queue_sort", "pre_filter", "filter", "pre_score", "score")
        framework = Framework(Profile(), {point: [(plugin, 1)] for point in points})
        nominator = Nominator()
        for name in nominated:
            nominator.add(make_pod_info(f"to-{name}", uid=name, priority=1), name)
        self.pod = make_pod_info()
        nominations = Nominations(self.cache.nodes, nominator, lambda seen: None)
        self.evaluation = Evaluation(framework, self.cache.nodes, nominations, nominations.respected_by(self.pod))
        self.decide()

    def decide(self):
        """The plugin's calls in one cycle."""
        self.plugin.calls.clear()
        self.evaluation.refresh(self.pod)
        self.evaluation.totals(self.pod)
        return list(self.plugin.calls)

    def decide_after(self, *changed):
        """The plugin's calls in the cycle after pods came to these nodes."""
        for name in changed:
            self.cache.set_pod(make_pod_info(f"on-{name}", node=name))
        return self.decide()


def test_where_pods_came_to_few_nodes_methods_for_few_rows_are_called_in_place_of_those_for_many():
    assert Scene(FewRowsPlugin(reads=Reads.USAGE)).decide_after("n1", "n2") == [("filter_few", 2), ("score_few", 2)]
    assert Scene(Plugin(reads=Reads.USAGE)).decide_after("n1", "n2") == [("filter", 2), ("score", 2)]


def test_where_pods_came_to_many_nodes_methods_for_many_rows_are_called():
    assert Scene(FewRowsPlugin(reads=Reads.USAGE)).decide_after(*NODES[:9]) == [("filter", 9), ("score", 9)]


def test_an_answer_that_reads_the_node_alone_stays_when_pods_come_to_it():
    assert Scene(Plugin(reads=Reads.NODE)).decide_after("n1") == []
    calls = Scene(Plugin(reads=Reads.CLUSTER)).decide_after("n1")
    assert calls == ["pre_filter", ("filter", 20), ("pre_score", 20), ("score", 20)]


def test_pre_filter_and_pre_score_that_read_less_than_the_filter_run_once():
    scene = Scene(Plugin(reads=Reads.CLUSTER, pre_reads=Reads.NODE))
    assert scene.decide_after("n1") == [("filter", 20), ("score", 20)]


def test_a_lasting_result_of_a_pre_filter_that_reads_the_cluster_is_not_asked_for_again():
    assert "pre_filter" not in Scene(Plugin(reads=Reads.CLUSTER, lasting=True)).decide()
    assert "pre_filter" in Scene(Plugin(reads=Reads.CLUSTER)).decide()


def test_a_pre_score_that_does_not_read_the_feasible_nodes_is_not_given_them():
    assert ("pre_score", 0) in Scene(Plugin(reads=Reads.CLUSTER, reads_feasible=False)).decide()
    assert ("pre_score", 20) in Scene(Plugin(reads=Reads.CLUSTER)).decide()


def test_a_filter_that_knows_of_nominated_pods_is_run_once_for_all_their_nodes():
    nominated = NODES[:5]
    filters = [call for call in Scene(NominatedPlugin(reads=Reads.CLUSTER), *nominated).decide() if "filter" in call[0]]
    assert filters == [("filter", 20), ("filter_with_nominated", 5)]
    filters = [call for call in Scene(Plugin(reads=Reads.CLUSTER), *nominated).decide() if "filter" in call[0]]
    assert filters == [("filter", 20), *[("filter", 1)] * 5]


@pytest.mark.parametrize(("reads_pods", "fewest", "most"), [(False, 0, 10), (True, len(NODES), 1000)])
def test_preemption_tries_many_nodes_at_once_if_no_filter_reads_pods(monkeypatch, reads_pods, fewest, most):
    monkeypatch.setattr(NodeResourcesFit, "traits", replace(NodeResourcesFit.traits, reads_pods=reads_pods))
    calls = []
    of_rows = NodeResourcesFit.filter

    def counted(self, state, pod, nodes, rows):
        calls.append(len(rows))
        return of_rows(self, state, pod, nodes, rows)

    monkeypatch.setattr(NodeResourcesFit, "filter", counted)
    world = World(*(make_node(name, cpu="1") for name in NODES), *(low(name, name, cpu="1") for name in NODES))
    assert world.schedule(high(cpu="1")).post_filter.nominated_node_name in NODES
    assert fewest <= len(calls) <= most
