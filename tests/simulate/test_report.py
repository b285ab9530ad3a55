from hypothesis import given
from hypothesis import strategies as st

from bayplan.simulate.report import lower_bound_nodes


def test_the_largest_nodes_are_counted_first():
    nodes = [{"cpu": 1}, {"cpu": 8}, {"cpu": 4}]
    assert lower_bound_nodes(nodes, {"cpu": 9}, 2, [110] * 3) == 2


def test_the_scarcest_resource_decides():
    nodes = [{"cpu": 100, "gpu": 1}] * 5
    assert lower_bound_nodes(nodes, {"cpu": 100, "gpu": 3}, 3, [110] * 5) == 3


def test_the_number_of_pods_counts_as_a_resource():
    assert lower_bound_nodes([{"cpu": 100}] * 5, {"cpu": 1}, 11, [5] * 5) == 3


def test_nothing_needs_no_node():
    assert lower_bound_nodes([{"cpu": 1}], {"cpu": 0}, 0, [110]) == 0
    assert lower_bound_nodes([], {}, 0, []) == 0


def test_a_demand_beyond_all_nodes_counts_them_all():
    assert lower_bound_nodes([{"cpu": 1}] * 3, {"cpu": 100}, 1, [110] * 3) == 3


@given(st.lists(st.lists(st.integers(1, 4), max_size=4), min_size=1, max_size=6))
def test_no_placement_uses_fewer_nodes_than_the_bound(placement):
    nodes = [{"cpu": max(4, sum(pods))} for pods in placement]
    demand = sum(map(sum, placement))
    count = sum(map(len, placement))
    used = sum(bool(pods) for pods in placement)
    assert lower_bound_nodes(nodes, {"cpu": demand}, count, [4] * len(nodes)) <= used
