"""Cases of a kept evaluation that random clusters meet too seldom."""

import numpy as np
import pytest
from tests.builders import make_node, make_pod, make_term
from tests.evaluation.clusters import build_framework

from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import PluginEntry, Plugins, PluginSet, Profile
from bayplan.evaluation.evaluation import Evaluation
from bayplan.evaluation.raw_score import NOT_FEASIBLE

ONE, TWO = ["x:PreferNoSchedule"], ["x:PreferNoSchedule", "y:PreferNoSchedule"]


class Bench:
    """One evaluation under a profile of a few plugins; every question compares it with a new one."""

    def __init__(self, *plugins, pod=None):
        entries = [PluginEntry(name) for name in ("PrioritySort", "DefaultBinder", *plugins)]
        self.cache = Cache()
        nodes = self.cache.nodes
        profile = Profile(plugins=Plugins(multi_point=PluginSet(enabled=tuple(entries))))
        self.framework = build_framework(profile, nodes)
        self.pod = PodInfo(pod or make_pod())
        self.evaluation = Evaluation(self.framework, nodes)

    def add(self, *nodes):
        for node in nodes:
            self.cache.set_node(node)

    def totals(self):
        fresh = Evaluation(self.framework, self.cache.nodes)
        kept, new = ({}, {})
        for found, evaluation in ((kept, self.evaluation), (new, fresh)):
            evaluation.refresh(self.pod)
            totals = evaluation.totals(self.pod)
            for row in np.flatnonzero(totals != NOT_FEASIBLE).tolist():
                found[self.cache.nodes.names[row]] = int(totals[row])
        assert kept == new
        return kept


def test_when_the_highest_raw_score_changes_all_normalised_scores_move_with_it():
    bench = Bench("TaintToleration")
    bench.add(make_node("a", taints=ONE), make_node("b", taints=TWO), make_node("c"))
    assert bench.totals() == {"a": 50, "b": 0, "c": 100}
    bench.add(make_node("b", taints=ONE))
    assert bench.totals() == {"a": 0, "b": 0, "c": 100}
    bench.add(make_node("b", taints=TWO))
    assert bench.totals() == {"a": 50, "b": 0, "c": 100}


def test_when_the_node_with_the_highest_raw_score_fills_up_all_normalised_scores_move():
    bench = Bench("TaintToleration", "NodeResourcesFit")
    bench.add(make_node("a", cpu="0", memory="0", taints=ONE), make_node("c", cpu="0", memory="0"))
    bench.add(make_node("b", cpu="0", memory="0", taints=TWO, pods=1))
    assert bench.totals() == {"a": 50, "b": 0, "c": 100}
    placed = PodInfo(make_pod(node="b", uid="u"))
    bench.cache.set_pod(placed)
    assert bench.totals() == {"a": 0, "c": 100}
    bench.cache.remove_pod("u")
    assert bench.totals() == {"a": 50, "b": 0, "c": 100}


def test_when_the_node_with_the_highest_raw_score_is_removed_all_normalised_scores_move():
    bench = Bench(
        "NodeAffinity", pod=make_pod(preferred=[(1, make_term("zone Exists")), (3, make_term("disk Exists"))])
    )
    bench.add(make_node("a", labels={"zone": "x"}), make_node("b", labels={"zone": "x", "disk": "y"}))
    assert bench.totals() == {"a": 25, "b": 100}
    bench.cache.remove_node("b")
    assert bench.totals() == {"a": 100}


def test_a_score_that_was_zero_everywhere_counts_once_a_node_has_one():
    bench = Bench("TaintToleration")
    bench.add(make_node("a"), make_node("b"))
    assert bench.totals() == {"a": 100, "b": 100}
    bench.add(make_node("b", taints=ONE))
    assert bench.totals() == {"a": 100, "b": 0}
    bench.add(make_node("b"))
    assert bench.totals() == {"a": 100, "b": 100}


def test_one_node_more_changes_the_image_scores_of_all_the_others():
    bench = Bench("ImageLocality", pod=make_pod(images=["app:1"]))
    bench.add(make_node("a", images={"app:1": 1000 * 2**20}))
    assert bench.totals() == {"a": 100}
    bench.add(make_node("b"))
    assert bench.totals() == {"a": 48, "b": 0}
    bench.cache.remove_node("b")
    assert bench.totals() == {"a": 100}


def test_a_row_that_changes_hands_belongs_to_the_new_node():
    bench = Bench("TaintToleration", "NodeName", pod=make_pod(node="b"))
    bench.add(make_node("a"))
    assert bench.totals() == {}
    bench.cache.remove_node("a")
    bench.add(make_node("b"))
    assert bench.cache.nodes.row("b") is not None
    assert bench.totals() == {"b": 100}


@pytest.mark.parametrize("plugins", [("NodeResourcesFit",), ("NodeResourcesFit", "TaintToleration", "ImageLocality")])
def test_scores_of_a_sample_are_normalised_within_it(plugins):
    bench = Bench(
        *plugins, "NodeAffinity", pod=make_pod(preferred=[(1, make_term("zone Exists")), (9, make_term("disk Exists"))])
    )
    bench.add(make_node("a", labels={"zone": "x"}), make_node("b", labels={"disk": "x"}), make_node("c"))
    nodes = bench.cache.nodes
    bench.totals()
    rows = np.array([nodes.row("a"), nodes.row("c")])
    assert bench.evaluation.scores(bench.pod, rows)["NodeAffinity"].tolist() == [100, 0]
