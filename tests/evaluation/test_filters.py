from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.builders import make_node, make_pod

from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import Profile
from bayplan.evaluation.evaluation import Evaluation
from bayplan.framework.interface import PreFilterResult
from bayplan.framework.runtime import Framework
from bayplan.framework.status import SKIP, SUCCESS, Code, Reads, Reason, Status, Traits


@dataclass
class Stub:
    """A plugin whose answers a test sets: a code per node name, and what its PreFilter says."""

    name: str
    rejects: dict[str, int] = field(default_factory=dict)
    before: Status = SUCCESS
    narrows_to: frozenset[str] | None = None
    traits: Traits = field(default_factory=Traits)
    asked: list[list[str]] = field(default_factory=list)

    def pre_filter(self, state, pod, nodes):
        return PreFilterResult(self.before, self.narrows_to)

    def filter(self, state, pod, nodes, rows):
        names = [nodes.names[row] for row in rows.tolist()]
        self.asked.append(names)
        return np.array([self.rejects.get(name, 0) for name in names], dtype=np.int8)

    def reasons(self, state, pod, nodes, rows):
        return [Reason(f"{self.name} says no", np.ones(len(rows), dtype=np.bool_))]


class Bench:
    """A filtering over nodes a, b and c by the given plugins."""

    def __init__(self, *plugins: Stub, **points: Any) -> None:
        self.cache = Cache()
        for name in "abc":
            self.cache.set_node(make_node(name))
        sort = Stub("Sort")
        both = [(plugin, 0) for plugin in plugins]
        points = {"queue_sort": [(sort, 0)], "pre_filter": both, "filter": both} | points
        self.evaluation = Evaluation(Framework(Profile(), points), self.cache.nodes)
        self.pod = PodInfo(make_pod())

    def refresh(self) -> set[str]:
        """The feasible nodes now."""
        self.evaluation.refresh(self.pod)
        return {self.cache.nodes.names[row] for row in np.flatnonzero(self.evaluation.feasible).tolist()}

    def message(self) -> str:
        self.refresh()
        return self.evaluation.verdicts.diagnose(self.pod).message

    def codes(self) -> list[int]:
        self.refresh()
        return self.evaluation.verdicts.rejections().codes.tolist()


UNRESOLVABLE = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
LATE = Traits(reads=Reads.CLUSTER, asked_late=True)


def test_a_node_is_feasible_when_no_filter_rejects_it():
    assert Bench(Stub("X", {"a": 1}), Stub("Y", {"b": 2})).refresh() == {"c"}


def test_the_first_rejecting_filter_in_profile_order_is_named():
    bench = Bench(Stub("X", {"a": 1}), Stub("Y", {"a": 2, "b": 2, "c": 2}))
    assert bench.message() == "0/3 nodes are available: 1 X says no, 2 Y says no."
    assert bench.codes() == [1, 2, 2]
    assert bench.evaluation.verdicts.diagnose(bench.pod).rejector_plugins == {"X", "Y"}


def test_a_filter_that_is_asked_late_is_asked_about_nodes_that_no_filter_before_it_rejects():
    first, late = Stub("X", {"a": 1}), Stub("Late", {"a": 1, "b": 1}, traits=LATE)
    bench = Bench(first, late, Stub("Y", {"b": 1, "c": 1}))
    assert bench.message() == "0/3 nodes are available: 1 Late says no, 1 X says no, 1 Y says no."
    assert late.asked == [["b", "c"]]
    first.rejects.clear()
    bench.cache.set_node(make_node("a", cpu=1))
    assert bench.message() == "0/3 nodes are available: 1 Y says no, 2 Late says no."
    assert late.asked == [["b", "c"], ["a", "b", "c"]]


def test_a_filter_that_is_asked_late_is_not_asked_about_nodes_that_a_pre_filter_left_out():
    late = Stub("Late", {"b": 1}, traits=LATE)
    assert Bench(Stub("X", {"a": 1}, narrows_to=frozenset("ab")), late).refresh() == set()
    assert late.asked == [["b"]]


def test_a_node_has_a_single_filter_that_rejects_it_by_what_all_would_say():
    bench = Bench(Stub("X", {"a": 1, "b": 1}), Stub("Late", {"a": 1, "c": 1}, traits=LATE))
    bench.refresh()
    found = bench.evaluation.verdicts.solely_by_filter(bench.pod)
    assert [(each.plugin.name, each.rows.tolist()) for each in found] == [("X", [1]), ("Late", [2])]


def test_the_message_sorts_counts_as_text():
    bench = Bench(Stub("X", {"a": 1, "b": 1}), Stub("Y", {"c": 1, **{f"n{i}": 1 for i in range(9)}}))
    for i in range(9):
        bench.cache.set_node(make_node(f"n{i}"))
    assert bench.message() == "0/12 nodes are available: 10 Y says no, 2 X says no."


def test_without_nodes_the_message_says_so():
    bench = Bench(Stub("X"))
    for name in "abc":
        bench.cache.remove_node(name)
    assert bench.message() == "no nodes available to schedule pods"


def test_a_skipping_pre_filter_switches_its_filter_off():
    assert Bench(Stub("X", {"a": 1}, before=SKIP), Stub("Y", {"b": 1})).refresh() == {"a", "c"}


def test_an_unresolvable_pre_filter_rejects_all_nodes_and_ends_the_round():
    later = Stub("Y", before=Status(Code.UNSCHEDULABLE, ("not asked",)))
    bench = Bench(Stub("X", before=Status(UNRESOLVABLE, ("hopeless", "really"))), later)
    assert bench.refresh() == set()
    assert bench.message() == "0/3 nodes are available: hopeless, really."
    assert bench.codes() == [2, 2, 2]
    assert bench.evaluation.verdicts.diagnose(bench.pod).rejector_plugins == {"X"}


def test_a_merely_unschedulable_pre_filter_yields_to_a_later_unresolvable_one():
    soft = Stub("X", before=Status(Code.UNSCHEDULABLE, ("maybe later",)))
    assert Bench(soft).message() == "0/3 nodes are available: maybe later."
    assert Bench(soft).codes() == [1, 1, 1]
    assert Bench(soft, Stub("Y", before=Status(UNRESOLVABLE, ("never",)))).codes() == [2, 2, 2]


def test_a_pre_filter_may_file_its_rejection_under_other_plugins():
    bench = Bench(Stub("X", before=Status(UNRESOLVABLE, ("no",), "P Q")))
    bench.refresh()
    assert bench.evaluation.verdicts.diagnose(bench.pod).rejector_plugins == {"P", "Q"}


def test_a_narrowed_search_tells_the_other_nodes_why():
    bench = Bench(Stub("X", {"a": 1}, narrows_to=frozenset({"a", "gone"})))
    assert bench.refresh() == set()
    assert bench.message() == "0/3 nodes are available: 1 X says no, 2 node(s) didn't satisfy plugin(s) [X]."
    assert bench.codes() == [1, 2, 2]
    rows = np.array([bench.cache.nodes.row(name) for name in "cab"])
    assert bench.evaluation.searched(rows).tolist() == [bench.cache.nodes.row("a")]


def test_narrowing_by_two_plugins_keeps_what_both_allow():
    bench = Bench(Stub("Y", narrows_to=frozenset("ab")), Stub("X", narrows_to=frozenset("bc")))
    assert bench.refresh() == {"b"}
    bench.cache.remove_node("b")
    assert bench.message() == "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [X Y]."


@pytest.mark.parametrize(
    ("plugins", "text"),
    [
        ([Stub("X", narrows_to=frozenset())], "node(s) didn't satisfy plugin X"),
        (
            [Stub("Y", narrows_to=frozenset("a")), Stub("X", narrows_to=frozenset("b"))],
            "node(s) didn't satisfy plugin(s) [X Y] simultaneously",
        ),
    ],
)
def test_a_search_narrowed_to_nothing_is_a_rejection(plugins, text):
    bench = Bench(*plugins)
    assert bench.message() == f"0/3 nodes are available: {text}."
    assert bench.codes() == [2, 2, 2]


def test_a_node_that_appears_later_is_narrowed_like_the_others():
    bench = Bench(Stub("X", narrows_to=frozenset({"late"})))
    assert bench.refresh() == set()
    bench.cache.set_node(make_node("late"))
    bench.cache.set_node(make_node("other"))
    assert bench.refresh() == {"late"}


@pytest.mark.parametrize(
    ("reads", "after_pod", "after_node"),
    [
        (Reads.NODE, [], [["b"]]),
        (Reads.USAGE, [["a"]], [["b"]]),
        (Reads.NODES, [], [["a", "b", "c"]]),
        (Reads.CLUSTER, [["a", "b", "c"]], [["a", "b", "c"]]),
    ],
)
def test_what_a_filter_reads_decides_when_it_is_asked(reads, after_pod, after_node):
    plugin = Stub("X", traits=Traits(reads))
    bench = Bench(plugin)
    bench.refresh()
    plugin.asked.clear()
    bench.cache.set_pod(PodInfo(make_pod(node="a", cpu="1")))
    bench.refresh()
    assert plugin.asked == after_pod
    plugin.asked.clear()
    bench.cache.set_node(make_node("b", cpu="1"))
    bench.refresh()
    assert plugin.asked == after_node


def test_a_filter_that_reads_all_nodes_is_asked_when_one_is_gone():
    plugin = Stub("X", traits=Traits(Reads.NODES))
    bench = Bench(plugin)
    bench.refresh()
    bench.cache.remove_node("c")
    assert bench.refresh() == {"a", "b"}
    assert plugin.asked[-1] == ["a", "b"]


def test_a_pre_filter_that_reads_the_cluster_may_change_its_mind():
    plugin = Stub("X", {"a": 1}, before=Status(UNRESOLVABLE, ("no",)), traits=Traits(Reads.CLUSTER))
    bench = Bench(plugin)
    assert bench.refresh() == set()
    plugin.before = SUCCESS
    assert bench.refresh() == {"b", "c"}
    plugin.before = SKIP
    assert bench.refresh() == {"a", "b", "c"}


def test_a_removed_node_is_not_feasible_and_not_counted_while_its_pods_remain():
    bench = Bench(Stub("X", {"a": 1, "b": 1}))
    bench.cache.set_pod(PodInfo(make_pod(node="c")))
    assert bench.refresh() == {"c"}
    bench.cache.remove_node("c")
    assert bench.message() == "0/2 nodes are available: 2 X says no."


def test_without_filters_every_node_is_feasible():
    assert Bench().refresh() == {"a", "b", "c"}
    assert Bench().codes() == [0, 0, 0]
    narrowing = Stub("X", narrows_to=frozenset({"a"}))
    assert Bench(pre_filter=[(narrowing, 0)]).codes() == [0, 2, 2]
