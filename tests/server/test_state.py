import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.samples import PACKED, metrics, sources

from bayplan import __version__
from bayplan.scheduler.allocation import AllocationSummary
from bayplan.server.state import MAX_EXTENDED_RESOURCES, NATIVE_RESOURCES, StateCollector


def value(name, **labels):
    return metrics().registry.get_sample_value(name, labels)


def ratios(collector, name="bayplan_cluster_allocation_ratio"):
    family = next(family for family in collector.collect() if family.name == name)
    return {sample.labels["resource"]: sample.value for sample in family.samples}


def summary(allocatable):
    return AllocationSummary(1, 1, requested={}, allocatable_in_use=allocatable, allocatable=allocatable)


def test_the_allocation_ratio_counts_only_nodes_in_use():
    assert value("bayplan_allocation_ratio", resource="cpu") == 0.75
    assert value("bayplan_cluster_allocation_ratio", resource="cpu") == 0.3


def test_a_resource_only_idle_nodes_have_is_allocated_to_zero():
    assert value("bayplan_allocation_ratio", resource="nvidia.com/gpu") == 0


def test_nodes_and_nodes_in_use_are_read_from_the_summary():
    assert value("bayplan_nodes") == 10
    assert value("bayplan_nodes_in_use") == 4


def test_an_empty_cluster_has_no_ratios():
    assert ratios(StateCollector(sources(allocation=AllocationSummary(0, 0, {}, {}, {})))) == {}


def test_every_queue_is_exported_even_when_it_is_empty():
    assert [value("scheduler_pending_pods", queue=queue) for queue in ("active", "backoff")] == [3, 2]
    assert [value("scheduler_pending_pods", queue=queue) for queue in ("unschedulable", "gated")] == [0, 0]


def test_cache_sizes_are_exported_by_type():
    assert [value("scheduler_cache_size", type=kind) for kind in ("nodes", "pods", "assumed_pods")] == [10, 40, 1]


def test_watches_show_age_and_relists():
    assert value("bayplan_watch_last_event_age_seconds", resource="nodes") == 30.0
    assert value("bayplan_watch_relists_total", resource="nodes") == 2


def test_the_build_is_named():
    subject = metrics()
    info = [family for family in subject.registry.collect() if family.name == "bayplan_build_info"]
    assert [sample.labels["version"] for sample in info[0].samples] == [__version__]


def test_state_is_read_at_each_scrape():
    pending = {"active": 1}
    registry = metrics(pending=pending).registry
    assert registry.get_sample_value("scheduler_pending_pods", {"queue": "active"}) == 1
    pending["active"] = 7
    assert registry.get_sample_value("scheduler_pending_pods", {"queue": "active"}) == 7


@given(st.lists(st.dictionaries(st.text("ab/.", min_size=1, max_size=8), st.integers(0, 5), max_size=60), max_size=4))
def test_resource_labels_stay_bounded_over_all_scrapes(scrapes):
    seen = set()
    current = {}
    collector = StateCollector(sources(allocation=summary(current)))
    for allocatable in scrapes:
        current.clear()
        current.update(allocatable)
        seen |= set(ratios(collector))
    assert len(seen - set(NATIVE_RESOURCES)) <= MAX_EXTENDED_RESOURCES


def test_resources_first_seen_keep_their_series_and_native_ones_always_have_one():
    first = {f"example.com/z{number}": 1 for number in range(MAX_EXTENDED_RESOURCES)}
    later = first | {"example.com/a": 1, "cpu": 1000}
    current = dict(first)
    collector = StateCollector(sources(allocation=summary(current)))
    assert set(ratios(collector)) == set(first)
    current.update(later)
    assert set(ratios(collector)) == set(first) | {"cpu"}


@pytest.mark.parametrize("resource", PACKED.requested)
def test_ratios_lie_between_zero_and_one_on_a_sound_cluster(resource):
    collector = StateCollector(sources())
    for name in ("bayplan_allocation_ratio", "bayplan_cluster_allocation_ratio"):
        assert 0 < ratios(collector, name)[resource] <= 1
