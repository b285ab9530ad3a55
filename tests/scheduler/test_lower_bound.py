from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.reference.bin_packing import fewest_bins

from bayplan.cache.packing import MAX_THRESHOLDS, fewest, fewest_for_sizes


def test_where_all_capacities_do_not_cover_the_demand_all_of_them_count():
    assert fewest([3, 0, 2], 6) == 3
    assert fewest([3, 0, 2], 4) == 2
    assert fewest([3], 0) == 0


@pytest.mark.parametrize(
    ("capacities", "sizes", "bound"),
    [
        pytest.param([10] * 9, [6] * 5, 5, id="no two of them share a node"),
        pytest.param([9] * 9, [5] * 5, 5, id="no two of them share a node of an odd size"),
        pytest.param([10] * 9, [7, 7, 7, 4, 4], 4, id="what is left beside large ones is too little for the small"),
        pytest.param([10] * 9, [4] * 5, 3, id="two on a node, by their number"),
        pytest.param([64] + [8] * 99, [5] * 100, 89, id="small nodes hold one each, the large one many"),
        pytest.param([10] * 9, [2] * 11, 3, id="by the sum"),
        pytest.param([8, 4, 1], [3, 3, 3], 2, id="the largest nodes are taken first"),
        pytest.param([4] * 3, [12], 3, id="what fits nowhere has all nodes count that its volume takes"),
        pytest.param([4], [], 0, id="nothing"),
        pytest.param([], [4], 0, id="no nodes"),
        pytest.param([4], [0, 0], 0, id="pods that ask for nothing"),
    ],
)
def test_pods_that_cannot_be_split_need_more_than_their_volume(capacities, sizes, bound):
    assert fewest_for_sizes(capacities, Counter(sizes)) == bound


@given(st.lists(st.integers(0, 12), min_size=1, max_size=6), st.lists(st.integers(0, 12), max_size=7))
def test_the_bound_never_exceeds_the_optimum(capacities, sizes):
    optimum = fewest_bins(capacities, [size for size in sizes if size])
    assume(optimum is not None)
    bound = fewest_for_sizes(capacities, Counter(sizes))
    assert fewest(capacities, sum(sizes)) <= bound <= optimum


@given(st.integers(4, 30), st.lists(st.integers(1, 30), min_size=1, max_size=12))
def test_on_equal_nodes_it_is_at_least_the_l2_bound_of_the_book(capacity, sizes):
    sizes = [min(size, capacity) for size in sizes]
    assert fewest_for_sizes([capacity] * len(sizes), Counter(sizes)) >= l2(capacity, sizes)


def l2(capacity, sizes):
    """L2 as Martello and Toth write it."""
    found = 0
    for threshold in {0, *(size for size in sizes if 2 * size <= capacity)}:
        first = [size for size in sizes if size > capacity - threshold]
        second = [size for size in sizes if capacity / 2 < size <= capacity - threshold]
        third = [size for size in sizes if threshold <= size <= capacity / 2]
        rest = sum(third) - (len(second) * capacity - sum(second))
        found = max(found, len(first) + len(second) + max(0, -(-rest // capacity)))
    return found


def test_of_very_many_sizes_some_thresholds_are_left_out_and_it_is_still_a_bound():
    sizes = Counter(range(1, 40 * MAX_THRESHOLDS))
    capacity = 40 * MAX_THRESHOLDS
    bound = fewest_for_sizes([capacity] * len(sizes), sizes)
    # Each but the middle one has a partner with which it fills a node.
    assert bound == len(sizes) // 2 + 1


def test_absurd_amounts_do_not_wrap():
    assert fewest_for_sizes([10**30] * 3, {10**30 - 1: 2, 2: 1}) == 3
