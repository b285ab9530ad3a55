"""What the documentation says of PriorityClasses and of the order in which pods are scheduled."""

import pytest
from tests.builders import make_node, make_pod
from tests.plugins.preemption.worlds import World
from tests.seeds.scenes import (
    CLUSTER_CRITICAL,
    HIGH,
    HIGHEST_OF_USERS,
    LOW,
    NODE_CRITICAL,
    node_document,
    pending,
    pod_document,
    priority_class,
    read_from_file,
    running,
)
from tests.simulate.test_simulator import placements, simulator


def test_a_priority_says_how_important_a_pod_is_relative_to_others():
    nodes = [make_node("n1", cpu="3")]
    assert placements(simulator(nodes, [pending("a", priority=LOW), pending("b")]).run()) == {"a": None, "b": "n1"}
    assert placements(simulator(nodes, [pending("a"), pending("b", priority=LOW)]).run()) == {"a": "n1", "b": None}


def test_the_class_with_the_larger_value_is_the_higher_priority(tmp_path):
    scene = read_from_file(
        tmp_path,
        priority_class("smaller", value=999),
        priority_class("larger", value=HIGHEST_OF_USERS),
        node_document(),
        pod_document("of-smaller", priorityClassName="smaller"),
        pod_document("of-larger", priorityClassName="larger"),
    )
    assert placements(scene.run()) == {"of-larger": "n1", "of-smaller": None}


def test_a_class_needs_only_a_name_and_a_value_and_counts_in_every_namespace(tmp_path):
    scene = read_from_file(
        tmp_path,
        priority_class("high", value=HIGH),
        node_document(cpu=2),
        pod_document("plain"),
        pod_document("one", "shop", priorityClassName="high"),
        pod_document("two", "bank", priorityClassName="high"),
    )
    assert placements(scene.run()) == {"one": "n1", "two": "n1", "plain": None}


def test_the_description_of_a_class_may_be_any_text_and_decides_nothing(tmp_path):
    scene = read_from_file(
        tmp_path,
        priority_class("high", value=HIGH, description="value: -5\npreemptionPolicy: Never\x85 ✓"),
        node_document(),
        pod_document("low"),
        pod_document("high", priorityClassName="high"),
    )
    assert placements(scene.run()) == {"high": "n1", "low": None}


def test_a_pod_without_a_priority_counts_as_zero():
    pods = [
        make_pod("none", cpu="1", created="2026-01-01T00:00:01Z"),
        make_pod("minus", cpu="1", priority=-1, created="2026-01-01T00:00:00Z"),
        make_pod("plus", cpu="1", priority=1, created="2026-01-01T00:00:02Z"),
    ]
    report = simulator([make_node("n1", cpu="1")], pods).run()
    assert [pod.name for pod in report.pods] == ["plus", "none", "minus"]
    world = World(make_node("n1", cpu="4"), running("old", priority=None))
    assert world.preempt(pending(priority=1)) == ("n1", ["old"])
    assert world.preempt(pending(priority=0)) == ("", [])


@pytest.mark.parametrize("priority", [CLUSTER_CRITICAL, NODE_CRITICAL])
def test_a_critical_pod_is_scheduled_although_the_cluster_is_full_of_the_highest_user_priority(priority):
    world = World(make_node("n1", cpu="4"), running("highest", priority=HIGHEST_OF_USERS))
    assert world.preempt(pending("critical", priority=priority)) == ("n1", ["highest"])


@pytest.mark.parametrize("priority", [CLUSTER_CRITICAL, NODE_CRITICAL])
def test_a_critical_pod_is_never_evicted_for_a_pod_of_a_user(priority):
    world = World(make_node("n1", cpu="4"), running("critical", priority=priority))
    assert world.preempt(pending(priority=HIGHEST_OF_USERS)) == ("", [])


def test_a_pod_that_cannot_be_scheduled_is_passed_over_for_pods_of_lower_priority():
    report = simulator([make_node("n1", cpu="4")], [pending("big", cpu="5"), pending("low", priority=LOW)]).run()
    assert [pod.name for pod in report.pods] == ["big", "low"]
    assert placements(report) == {"big": None, "low": "n1"}
