"""A single pod takes a group of disruption mode `all` as a whole, wherever its pods are."""

import pytest
from tests.builders import make_node
from tests.group_builders import make_pod_group
from tests.plugins.preemption.worlds import World, high, low, make_budget, minute


def world(*objects, nodes=2, as_one=True):
    made = World(*[make_node(f"n{number}", cpu="4") for number in range(1, nodes + 1)], *objects)
    made.groups.set(make_pod_group("g", priority=1, evicted_as_one=as_one))
    return made


def of_group(name, node, **fields):
    return low(name, node, group="g", **{"cpu": "4", **fields})


@pytest.mark.parametrize(("as_one", "victims"), [(True, {"a", "b"}), (False, {"a"})])
def test_its_pods_elsewhere_end_as_well(as_one, victims):
    there = world(of_group("a", "n1"), of_group("b", "n2"), as_one=as_one)
    node, names = there.preempt(high())
    assert (node in {"n1", "n2"}, len(names)) == (True, len(victims))


def test_a_node_with_fewer_and_less_important_victims_is_better():
    there = world(of_group("a", "n1"), of_group("b", "n2"), low("c", "n3", cpu="4"), nodes=3)
    assert there.preempt(high()) == ("n3", ["c"])


def test_on_a_node_it_stays_or_goes_as_a_whole():
    there = world(of_group("a", "n1", cpu="1"), of_group("b", "n1", cpu="2"), low("c", "n1", cpu="1"), nodes=1)
    # A group is more important than a pod: it is given back first, and does not fit beside the pod.
    assert there.preempt(high(cpu="2")) == ("n1", ["a", "b"])


def test_a_budget_of_one_of_its_pods_elsewhere_counts():
    spared = make_budget(allowed=0, app="kept")
    there = world(
        of_group("a", "n1"),
        of_group("b", "n2", labels={"app": "kept"}),
        low("c", "n3", cpu="4", priority=5),
        spared,
        nodes=3,
    )
    assert there.preempt(high()) == ("n3", ["c"])


def test_a_group_that_is_gone_ends_pod_by_pod():
    there = world(of_group("a", "n1"), of_group("b", "n2"))
    there.groups.remove(make_pod_group("g").key)
    assert len(there.preempt(high())[1]) == 1


def test_pods_that_started_later_make_no_difference_to_the_whole():
    there = world(of_group("a", "n1", start_time=minute(1)), of_group("b", "n2", start_time=minute(9)))
    assert set(there.preempt(high())[1]) == {"a", "b"}
