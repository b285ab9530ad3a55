from tests.server.samples import metrics


def value(name, **labels):
    return metrics().registry.get_sample_value(name, labels)


def test_every_queue_is_exported_even_when_it_is_empty():
    assert [value("scheduler_pending_pods", queue=queue) for queue in ("active", "backoff")] == [3, 2]
    assert [value("scheduler_pending_pods", queue=queue) for queue in ("unschedulable", "gated")] == [0, 0]


def test_the_pod_that_waits_longest_has_its_age():
    assert value("bayplan_oldest_pending_pod_age_seconds") == 120.0


def test_groups_that_wait_are_told_from_single_pods():
    assert value("scheduler_queued_entities", queue="active", type="pod") == 3
    assert value("scheduler_queued_entities", queue="backoff", type="podgroup") == 1
    assert value("bayplan_oldest_pod_group_age_seconds") == 90.0


def test_cache_sizes_are_exported_by_type():
    assert [value("scheduler_cache_size", type=kind) for kind in ("nodes", "pods", "assumed_pods")] == [10, 40, 1]


def test_watches_show_age_and_relists():
    assert value("bayplan_watch_last_event_age_seconds", resource="nodes") == 30.0
    assert value("bayplan_watch_relists_total", resource="nodes") == 2


def test_state_is_read_at_each_scrape():
    pending = {"active": 1}
    registry = metrics(pending=pending).registry
    assert registry.get_sample_value("scheduler_pending_pods", {"queue": "active"}) == 1
    pending["active"] = 7
    assert registry.get_sample_value("scheduler_pending_pods", {"queue": "active"}) == 7


def test_what_goes_on_beside_the_decisions_is_told_by_its_work():
    assert value("scheduler_goroutines", operation="binding") == 3
    assert value("scheduler_pending_async_api_calls", call_type="pod_status_patch") == 4
    assert value("scheduler_inflight_events", event="NodeAdd") == 2


def test_nominations_are_counted_and_the_oldest_has_its_age():
    assert value("bayplan_nominations") == 2
    assert value("bayplan_oldest_nomination_age_seconds") == 7.5
