import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.server.samples import PROFILE, metrics, observe_a_bound_pod, observed

from bayplan.server.metrics import SchedulerMetrics


def exponential(start, factor, count):
    return [start * factor**power for power in range(count)]


CLIENT = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]

# name -> (type, labels, buckets) in kube-scheduler 1.37.
UPSTREAM = {
    "scheduler_schedule_attempts_total": ("counter", {"result", "profile"}, None),
    "scheduler_scheduling_attempt_duration_seconds": (
        "histogram",
        {"result", "profile"},
        exponential(0.001, 2, 15),
    ),
    "scheduler_scheduling_algorithm_duration_seconds": ("histogram", set(), exponential(0.001, 2, 15)),
    "scheduler_pod_scheduling_sli_duration_seconds": ("histogram", {"attempts"}, exponential(0.01, 2, 20)),
    "scheduler_pod_scheduling_attempts": ("histogram", set(), [1, 2, 4, 8, 16]),
    "scheduler_pod_scheduled_after_flush_total": ("counter", set(), None),
    "scheduler_framework_extension_point_duration_seconds": (
        "histogram",
        {"extension_point", "status", "profile"},
        exponential(0.0001, 2, 12),
    ),
    "scheduler_permit_wait_duration_seconds": ("histogram", {"result"}, exponential(0.001, 2, 15)),
    "scheduler_queue_incoming_pods_total": ("counter", {"queue", "event"}, None),
    "scheduler_pending_pods": ("gauge", {"queue"}, None),
    "scheduler_queued_entities": ("gauge", {"queue", "type"}, None),
    "scheduler_unschedulable_pods": ("gauge", {"plugin", "profile"}, None),
    "scheduler_cache_size": ("gauge", {"type"}, None),
    "scheduler_event_handling_duration_seconds": ("histogram", {"event"}, exponential(0.0001, 2, 12)),
    "scheduler_preemption_attempts_total": ("counter", set(), None),
    "scheduler_preemption_victims": ("histogram", set(), [1, 2, 4, 8, 16, 32, 64]),
    "rest_client_requests_total": ("counter", {"code", "method", "host"}, None),
    "rest_client_request_duration_seconds": ("histogram", {"verb", "host"}, CLIENT),
    "rest_client_rate_limiter_duration_seconds": ("histogram", {"verb", "host"}, CLIENT),
}


@pytest.fixture
def exported():
    families = text_string_to_metric_families(generate_latest(observed().registry).decode())
    return {family.name + ("_total" if family.type == "counter" else ""): family for family in families}


@pytest.mark.parametrize("name", UPSTREAM)
def test_a_metric_has_the_type_labels_and_buckets_of_kube_scheduler(exported, name):
    kind, labels, buckets = UPSTREAM[name]
    family = exported[name]
    assert family.type == kind
    assert family.samples
    assert {label for sample in family.samples for label in sample.labels} - {"le"} == labels
    if buckets is not None:
        first = [sample for sample in family.samples if sample.name.endswith("_bucket")][: len(buckets) + 1]
        assert [float(sample.labels["le"]) for sample in first] == [*buckets, float("inf")]


def test_nothing_is_exported_twice_or_without_help(exported):
    text = generate_latest(metrics().registry).decode()
    types = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(types) == len(set(types))
    assert all(family.documentation for family in exported.values())


def test_no_created_series_are_exported():
    assert b"_created" not in generate_latest(observed().registry)


def test_two_instances_do_not_share_a_registry():
    first, second = metrics(), metrics()
    observe_a_bound_pod(first)
    labels = {"result": "scheduled", "profile": PROFILE}
    assert first.registry.get_sample_value("scheduler_schedule_attempts_total", labels) == 1
    assert second.registry.get_sample_value("scheduler_schedule_attempts_total", labels) == 0


def test_every_result_has_a_series_before_the_first_attempt():
    registry = metrics().registry
    for result in ("scheduled", "unschedulable", "error"):
        labels = {"result": result, "profile": PROFILE}
        assert registry.get_sample_value("scheduler_schedule_attempts_total", labels) == 0


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (4000, "15+")])
def test_the_attempts_label_of_the_sli_is_capped(attempts, label):
    subject = metrics()
    subject.bound(attempts, 3.0)
    value = subject.registry.get_sample_value("scheduler_pod_scheduling_sli_duration_seconds_sum", {"attempts": label})
    assert value == 3.0
    assert subject.registry.get_sample_value("scheduler_pod_scheduling_attempts_sum") == attempts


def test_unschedulable_pods_go_down_when_a_pod_leaves():
    subject = metrics()
    subject.unschedulable_pods.add("NodeResourcesFit", PROFILE, by=2)
    subject.unschedulable_pods.add("NodeResourcesFit", PROFILE, by=-1)
    labels = {"plugin": "NodeResourcesFit", "profile": PROFILE}
    assert subject.registry.get_sample_value("scheduler_unschedulable_pods", labels) == 1


def test_a_lost_answer_counts_as_error_and_as_ambiguous(exported):
    codes = {sample.labels["code"] for sample in exported["rest_client_requests_total"].samples}
    assert codes == {"201", "<error>"}
    assert exported["bayplan_bind_ambiguous_total"].samples[0].value == 1


def test_process_and_runtime_metrics_are_present(exported):
    assert exported["process_cpu_seconds_total"].samples[0].value > 0
    assert exported["process_resident_memory_bytes"].samples[0].value > 0
    assert "python_info" in exported
    assert "python_gc_collections_total" in exported


def test_ten_thousand_pods_add_no_series():
    subject = observed()
    for attempts in range(1, 16):
        subject.bound(attempts, 0.1)
    before = generate_latest(subject.registry).count(b"\n")
    for number in range(10_000):
        observe_a_bound_pod(subject, attempts=1 + number)
    assert generate_latest(subject.registry).count(b"\n") == before


def test_refusals_of_admission_are_told_apart_by_what_was_written_and_where():
    subject = metrics()
    for namespace in ("shop", "shop", "calm"):
        subject.admission_refused("POST", "pods/binding", namespace)
    labels = {"method": "POST", "resource": "pods/binding", "namespace": "shop"}
    assert subject.registry.get_sample_value("bayplan_admission_refusals_total", labels) == 2
    assert subject.registry.get_sample_value("bayplan_admission_refusals_total", labels | {"namespace": "calm"}) == 1


def test_beyond_200_series_refusals_have_no_namespace_and_those_that_are_known_still_count():
    subject = metrics()
    for number in range(300):
        subject.admission_refused("POST", "events", f"tenant-{number}")
    subject.admission_refused("POST", "events", "tenant-0")
    subject.admission_refused("PATCH", "pods/status", "tenant-299")
    (family,) = [each for each in subject.registry.collect() if each.name == "bayplan_admission_refusals"]
    values = {tuple(sample.labels.values()): sample.value for sample in family.samples}
    assert len(values) == 202
    assert values[("POST", "events", "tenant-0")] == 2
    assert values[("POST", "events", "")] == 101, "one of the 200 is there from the start"
    assert values[("PATCH", "pods/status", "")] == 1


def test_differences_are_those_of_the_last_comparison_and_stay_at_zero_once_mended():
    made = SchedulerMetrics(profiles=["bayplan"])
    assert made.registry.get_sample_value("bayplan_cache_comparisons_total") == 0
    made.cache_compared({"pods": 2, "nodes": 1})
    assert made.registry.get_sample_value("bayplan_cache_differences", {"kind": "pods"}) == 2
    made.cache_compared({"nodes": 3})
    assert made.registry.get_sample_value("bayplan_cache_comparisons_total") == 2
    assert made.registry.get_sample_value("bayplan_cache_differences", {"kind": "pods"}) == 0
    assert made.registry.get_sample_value("bayplan_cache_differences", {"kind": "nodes"}) == 3
