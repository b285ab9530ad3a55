from hypothesis import given
from hypothesis import strategies as st
from tests.reference.bin_packing import fewest_bins
from tests.replay.traces import make_pool, make_template, make_trace

from bayplan.replay.pools import LowerBound, Pools


def bound_of(running, *, pools=None, templates=None):
    """The bound where so many pods of each size run."""
    pools = pools or [make_pool(cpu=8)]
    templates = templates or [make_template(str(cpu), cpu=cpu) for cpu in running]
    bound = LowerBound(Pools(make_trace([], pools=pools, templates=templates)))
    for cpu, count in running.items():
        bound.change(str(cpu), count)
    return bound.total


@given(st.dictionaries(st.integers(1, 8), st.integers(1, 3), max_size=3))
def test_no_packing_does_with_fewer_nodes(running):
    sizes = [cpu for cpu, count in running.items() for _ in range(count)]
    found = bound_of(running)
    assert 8 * found.nodes >= sum(sizes)
    assert found.nodes <= fewest_bins([8] * len(sizes), sizes)
    assert found.milli_cpu == 8000 * found.nodes


@given(st.lists(st.sampled_from([1, 3, 5]), min_size=1, max_size=8))
def test_pods_that_came_and_left_count_for_nothing(pods):
    templates = [make_template(str(cpu), cpu=cpu) for cpu in (1, 3, 5)]
    bound = LowerBound(Pools(make_trace([], pools=[make_pool(cpu=8)], templates=templates)))
    for cpu in pods:
        bound.change(str(cpu), 1)
    for cpu in pods[1:]:
        bound.change(str(cpu), -1)
    assert bound.total.nodes == 1
    bound.change(str(pods[0]), -1)
    assert (bound.total.nodes, bound.total.milli_cpu) == (0, 0)


def test_pools_that_share_no_pods_are_bounded_each_by_itself():
    pools = [make_pool("a", cpu=8, labels={"pool": "a"}), make_pool("b", cpu=2, labels={"pool": "b"})]
    templates = [make_template(str(cpu), cpu=cpu, node_selector={"pool": name}) for cpu, name in ((1, "a"), (2, "b"))]
    found = bound_of({1: 1, 2: 3}, pools=pools, templates=templates)
    assert (found.nodes, found.milli_cpu) == (1 + 3, 8000 + 3 * 2000)


def test_pools_that_share_pods_are_bounded_by_their_largest_nodes_and_by_what_is_asked():
    found = bound_of({2: 8}, pools=[make_pool("a", cpu=8), make_pool("b", cpu=2)])
    assert (found.nodes, found.milli_cpu) == (2, 16000)
