from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_node, make_pod_info

from bayplan.cache.cache import Cache
from bayplan.simulate.report import cluster_use, lower_bound_nodes

GIB = 1024**3


def use_of(*nodes, by_devices=()):
    """How full nodes are, each given as its builder's fields and the fields of its pods."""
    cache = Cache()
    for number, (fields, pods) in enumerate(nodes):
        cache.set_node(make_node(f"n{number}", **fields))
        for at, pod in enumerate(pods):
            cache.set_pod(make_pod_info(f"p{number}-{at}", node=f"n{number}", **pod))
    return cluster_use(cache.nodes, by_devices)


def test_the_scarcest_resource_decides():
    capacities = {"cpu": [100] * 5, "gpu": [1] * 5}
    assert lower_bound_nodes(capacities, {"cpu": {100: 1}, "gpu": {1: 3}}) == 3


def test_nothing_needs_no_node():
    assert lower_bound_nodes({"cpu": [1]}, {"cpu": {}}) == 0
    assert lower_bound_nodes({}, {}) == 0


def test_the_number_of_pods_counts_as_a_resource():
    fields = {"cpu": "100", "pods": "5"}
    assert use_of((fields, [{"cpu": "10m"}] * 5), (fields, [{}] * 5), (fields, [{}])).lower_bound_nodes == 3


def test_pods_that_share_no_node_need_one_each():
    assert use_of(*[({"cpu": "4"}, [{"cpu": "2500m"}])] * 3).lower_bound_nodes == 3


def test_what_no_node_offers_has_all_nodes_count():
    assert use_of(({}, [{"requests": {"example.com/x": "1"}}]), ({}, [])).lower_bound_nodes == 2


def test_what_a_class_provides_counts_where_a_device_plugin_offers_it():
    name = "example.com/x"
    asks, offers = {"requests": {name: "2"}}, {"allocatable": {name: "2"}}
    nodes = (offers, [asks]), ({}, [asks, asks]), ({}, [])
    use = use_of(*nodes, by_devices={name})
    assert (use.overcommitted_nodes, use.lower_bound_nodes, use.allocation[name].requested) == (0, 1, 2)
    assert use_of(*nodes).overcommitted_nodes == 1
    assert use_of(*nodes[1:], by_devices={name}).lower_bound_nodes == 1


def test_what_is_named_after_a_class_overcommits_no_node_where_the_class_is_left_out():
    """A redacted snapshot has pods with devices, and neither devices nor their classes."""
    asks = {"requests": {"deviceclass.resource.kubernetes.io/gpu": "2"}}
    use = use_of(({}, [asks, asks]), ({}, []))
    assert (use.overcommitted_nodes, use.lower_bound_nodes) == (0, 1)


def test_what_is_free_where_another_resource_is_full_is_stranded():
    use = use_of(({"cpu": "4", "memory": "16Gi"}, [{"cpu": "4", "memory": "4Gi"}])).allocation
    assert (use["memory"].stranded, use["cpu"].stranded, use["pods"].stranded) == (12 * GIB, 0, 109)
    assert (use["memory"].largest_free, use["cpu"].largest_free) == (12 * GIB, 0)


@given(st.lists(st.lists(st.integers(1, 4), max_size=4), min_size=1, max_size=6))
def test_no_placement_uses_fewer_nodes_than_the_bound(placement):
    capacities = {"cpu": [max(4, sum(pods)) for pods in placement], "pods": [4] * len(placement)}
    sizes = {"cpu": Counter(size for pods in placement for size in pods), "pods": {1: sum(map(len, placement))}}
    assert lower_bound_nodes(capacities, sizes) <= sum(bool(pods) for pods in placement)
