import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.samples import GIB, PACKED, metrics, packing_collector

from bayplan.cache.node_table import NodeTable
from bayplan.cache.packing import AllocationSummary
from bayplan.server.state import MAX_EXTENDED_RESOURCES, NATIVE_RESOURCES


def value(name, **labels):
    return metrics().registry.get_sample_value(name, labels)


def ratios(collector, name="bayplan_cluster_allocation_ratio"):
    family = next(family for family in collector.collect() if family.name == name)
    return {sample.labels["resource"]: sample.value for sample in family.samples}


def summary(allocatable):
    return AllocationSummary(
        1, 1, requested={}, requested_in_use={}, allocatable_in_use=allocatable, allocatable=allocatable
    )


def test_the_allocation_ratio_counts_only_nodes_in_use():
    assert value("bayplan_allocation_ratio", resource="cpu") == 0.75
    assert value("bayplan_cluster_allocation_ratio", resource="cpu") == 0.35


def test_a_resource_only_idle_nodes_have_is_allocated_to_zero():
    assert value("bayplan_allocation_ratio", resource="nvidia.com/gpu") == 0


def test_nodes_and_nodes_in_use_are_read_from_the_summary():
    assert value("bayplan_nodes") == 10
    assert value("bayplan_nodes_in_use") == 4


def test_an_empty_cluster_has_no_ratios():
    assert ratios(packing_collector(allocation=AllocationSummary(0, 0, {}, {}, {}, {}))) == {}


@given(st.lists(st.dictionaries(st.text("ab/.", min_size=1, max_size=8), st.integers(0, 5), max_size=60), max_size=4))
def test_resource_labels_stay_bounded_over_all_scrapes(scrapes):
    seen = set()
    current = {}
    collector = packing_collector(allocation=summary(current))
    for allocatable in scrapes:
        current.clear()
        current.update(allocatable)
        seen |= set(ratios(collector))
    assert len(seen - set(NATIVE_RESOURCES)) <= MAX_EXTENDED_RESOURCES


def test_resources_first_seen_keep_their_series_and_native_ones_always_have_one():
    first = {f"example.com/z{number}": 1 for number in range(MAX_EXTENDED_RESOURCES)}
    later = first | {"example.com/a": 1, "cpu": 1000}
    current = dict(first)
    collector = packing_collector(allocation=summary(current))
    assert set(ratios(collector)) == set(first)
    current.update(later)
    assert set(ratios(collector)) == set(first) | {"cpu"}


@pytest.mark.parametrize("resource", PACKED.requested)
def test_ratios_lie_between_zero_and_one_on_a_sound_cluster(resource):
    collector = packing_collector()
    for name in ("bayplan_allocation_ratio", "bayplan_cluster_allocation_ratio"):
        assert 0 < ratios(collector, name)[resource] <= 1


def test_amounts_are_in_cores_and_bytes():
    assert value("bayplan_stranded_capacity", resource="cpu") == 0
    assert value("bayplan_stranded_capacity", resource="memory") == 12 * GIB
    assert value("bayplan_largest_schedulable_pod", resource="cpu") == 3
    assert value("bayplan_largest_schedulable_pod", resource="memory") == 15 * GIB


def test_bounds_by_the_sum_of_requests_are_told():
    assert value("bayplan_nodes_lower_bound") == 2
    assert value("bayplan_emptiable_nodes") == 0


def test_an_empty_table_has_nothing_to_tell():
    collector = packing_collector(table=NodeTable())
    found = {sample.name: sample.value for family in collector.collect() for sample in family.samples}
    assert found["bayplan_nodes_lower_bound"] == found["bayplan_emptiable_nodes"] == 0
    assert found["bayplan_stranded_capacity"] == found["bayplan_largest_schedulable_pod"] == 0
