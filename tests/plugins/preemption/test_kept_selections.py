"""What is kept from one preemptor to the next changes no answer."""

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod, make_pod_info
from tests.examples import examples
from tests.plugins.preemption.test_properties import configured
from tests.plugins.preemption.worlds import World, make_budget

from bayplan.api.meta_objects import key_of
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.node_table import NodeTable
from bayplan.framework.status import Traits
from bayplan.plugins.preemption import on_columns
from bayplan.plugins.preemption.on_columns import KeptSelections
from bayplan.plugins.preemption.victims import LowerPriorityPods, VictimRule
from bayplan.scheduler.decision import FitError

NODES = ("n0", "n1", "n2")


class Steps:
    """A world in which things happen between one preemptor and the next."""

    def __init__(self, **arguments):
        self.world = World(*(make_node(name, cpu="4", pods=5) for name in NODES), configuration=configured(**arguments))

    def pod(self, uid, node, cpu, priority, labels=None, hour=0):  # noqa: PLR0917  one step of a property
        start = f"2026-01-01T{hour:02}:00:00Z"
        placed = make_pod(uid, uid=uid, node=node, cpu=cpu, priority=priority, labels=labels, start_time=start)
        self.world.add(placed)

    def gone(self, uid):
        self.world.cache.remove_pod(uid)

    def node(self, name, cpu):
        self.world.add(make_node(name, cpu=cpu, pods=5))

    def nominate(self, uid, node, cpu, priority):
        self.world.nominator.delete(uid)
        if node is not None:
            self.world.nominator.add(make_pod_info(uid, uid=uid, cpu=cpu, priority=priority), node)

    def budget(self, allowed):
        lister = self.world.cache.listers.of(PodDisruptionBudget)
        budget = make_budget(allowed=allowed or 0, a="1")
        if allowed is None:
            lister.delete(key_of(budget.metadata))
        else:
            lister.set(budget)

    def later(self, seconds):
        self.world.now += seconds


def outcome(world, pod):
    """The node, or the failure without its time: a pod is retried early where a young pod has left."""
    found = world.schedule(pod)
    if not isinstance(found, FitError):
        return found.node_name
    return replace(found, post_filter=replace(found.post_filter, retry_after=None))


UIDS = st.sampled_from([f"p{index}" for index in range(8)])
NODE_NAMES = st.sampled_from(NODES)
CPU = st.sampled_from(["1", "2", "3"])
PRIORITY = st.sampled_from([-1, 1, 2, 10])
CHANGES = st.one_of(
    st.tuples(
        st.just("pod"),
        UIDS,
        NODE_NAMES,
        CPU,
        PRIORITY,
        st.sampled_from([None, {"a": "1"}]),
        st.integers(0, 23),
    ),
    st.tuples(st.just("gone"), UIDS),
    st.tuples(st.just("node"), NODE_NAMES, st.sampled_from(["2", "4", "8"])),
    st.tuples(
        st.just("nominate"),
        st.sampled_from(["m0", "m1"]),
        st.sampled_from([None, *NODES]),
        CPU,
        st.sampled_from([5, 9]),
    ),
    st.tuples(st.just("budget"), st.sampled_from([None, 0, 1])),
    st.tuples(st.just("later"), st.integers(0, 40_000)),
)
PREEMPTORS = st.builds(
    lambda uid, cpu, priority: make_pod(uid, uid=uid, cpu=cpu, priority=priority),
    st.sampled_from(["new", "newer"]),
    st.sampled_from(["3", "4"]),
    st.sampled_from([5, 9]),
)


@pytest.mark.parametrize("arguments", [{}, {"minimum_runtime_seconds": 60_000}], ids=["any", "run long enough"])
@settings(max_examples=examples(40))
@given(start=st.lists(CHANGES, max_size=12), steps=st.lists(st.tuples(CHANGES, PREEMPTORS), max_size=12))
def test_a_preemptor_gets_the_same_outcome_with_and_without_what_was_kept(arguments, start, steps):
    world = Steps(**arguments)
    for name, *values in start:
        getattr(world, name)(*values)
    for (name, *values), pod in steps:
        getattr(world, name)(*values)
        # All rows in step there, and one by one with what was kept: that must make no difference either.
        with patch.object(on_columns, "FEW_ROWS", 0):
            expected = outcome(world.world.afresh(), pod)
        assert outcome(world.world, pod) == expected
        assert outcome(world.world, pod) == expected


def full(world):
    for index, node in enumerate(NODES):
        world.pod(f"p{index}", node, "4", 1)


def candidates(steps, uid, **fields):
    """The candidates by node; one made of a kept selection is the very object of before."""
    pod = make_pod(uid, uid=uid, **{"cpu": "3", "priority": 5, **fields})
    return {each.node_name: each for each in steps.world.schedule(pod).post_filter.candidates}


def test_the_next_preemptor_of_a_kind_tries_only_nodes_on_which_something_changed():
    steps = Steps()
    full(steps)
    first, second = candidates(steps, "a"), candidates(steps, "b")
    assert all(second[node] is first[node] for node in NODES)
    steps.pod("p1", "n1", "4", 2)
    third = candidates(steps, "c")
    assert [third[node] is first[node] for node in NODES] == [True, False, True]


@pytest.mark.parametrize("other", [{"cpu": "2"}, {"priority": 6}], ids=["requests", "priority"])
def test_a_preemptor_of_another_kind_tries_all_nodes(other):
    steps = Steps()
    full(steps)
    first, second = candidates(steps, "a"), candidates(steps, "b", **other)
    assert first == second
    assert not any(second[node] is first[node] for node in NODES)


class Signing:
    """A filter whose signatures depend on more than the pod."""

    name = "Signing"
    traits = Traits()
    sign = "before"

    def sign_pod(self, pod):
        return self.sign

    def sign_inputs(self, pod):
        return self.sign


def test_another_signature_starts_the_kind_over():
    plugin, kept, table = Signing(), KeptSelections(), NodeTable()
    lower = LowerPriorityPods(table, 5, VictimRule(0, lambda: 0.0))

    def of_the_kind():
        return kept.of(make_pod_info(), [plugin], table=table, lower=lower, budgets_version=0)

    first = of_the_kind()
    assert of_the_kind() is first
    plugin.sign = "after"
    assert of_the_kind() is not first


def test_a_node_that_another_pod_was_nominated_to_is_tried_again():
    world = Steps()
    for index, node in enumerate(NODES):
        world.pod(f"p{index}", node, "2", 1)
        world.pod(f"q{index}", node, "2", 1)
    pod = make_pod("new", uid="new", cpu="2", priority=5)

    def victims():
        return {each.node_name: len(each.victims) for each in world.world.schedule(pod).post_filter.candidates}

    world.nominate("m0", "n1", "2", 9)
    assert victims() == {"n0": 1, "n1": 2, "n2": 1}
    world.nominate("m1", "n2", "2", 9)
    assert victims() == {"n0": 1, "n1": 2, "n2": 2}
    world.nominate("m0", None, "2", 9)
    assert victims() == {"n0": 1, "n1": 1, "n2": 2}
