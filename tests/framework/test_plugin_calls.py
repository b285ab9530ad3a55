import pytest

from bayplan.framework.interface import PreFilterResult, Wait
from bayplan.framework.plugin_calls import (
    CYCLES_PER_SAMPLE,
    PluginCalls,
    label_of,
)
from bayplan.framework.status import SKIP, SUCCESS, Code, Status
from bayplan.metrics.table import Metrics


def seen(histogram):
    """How often each label set of a histogram was observed."""
    return {labels: sum(series.counts) for labels, series in histogram.values.items()}


def test_one_attempt_of_ten_is_sampled():
    calls = PluginCalls("bayplan", Metrics())
    sampled = 0
    for _ in range(10_000):
        calls.begin()
        sampled += calls.sampled
    assert 10_000 / CYCLES_PER_SAMPLE * 0.8 < sampled < 10_000 / CYCLES_PER_SAMPLE * 1.2


def test_the_first_attempt_is_sampled_so_that_a_short_life_shows_something():
    calls = PluginCalls("bayplan", Metrics())
    calls.begin()
    assert calls.sampled


def test_without_metrics_nothing_is_sampled():
    calls = PluginCalls()
    calls.begin()
    assert (calls.observed, calls.sampled) == (False, False)


def test_a_call_is_told_with_its_status_and_gives_its_answer():
    metrics = Metrics()
    answer = PluginCalls("bayplan", metrics).run("Reserve", "A", label_of, lambda number: SUCCESS, 1)
    assert answer is SUCCESS
    assert seen(metrics.plugin_seconds) == {("A", "Reserve", "Success"): 1}


def test_a_call_that_raises_is_told_as_an_error():
    def fail():
        raise ValueError("no")

    metrics = Metrics()
    with pytest.raises(ValueError, match="no"):
        PluginCalls("bayplan", metrics).run("Reserve", "A", label_of, fail)
    assert seen(metrics.plugin_seconds) == {("A", "Reserve", "Error"): 1}


def test_what_is_reported_within_a_measure_is_left_out_of_it_once():
    metrics = Metrics()
    calls = PluginCalls("bayplan", metrics)
    calls.reported_within = 2.0
    calls.report_rest("Filter", "Success", 5.0)
    calls.report_rest("Score", "Success", 5.0)
    points = metrics.extension_point_seconds.values
    assert [points[point, "Success", "bayplan"].total for point in ("Filter", "Score")] == [3.0, 5.0]


def test_what_an_attempt_left_over_is_not_taken_from_the_next():
    calls = PluginCalls("bayplan", Metrics())
    calls.reported_within = 2.0
    calls.begin()
    assert calls.reported_within == 0.0


def test_preemption_is_told_in_every_attempt_and_its_plugin_in_a_sample():
    metrics = Metrics()
    calls = PluginCalls("bayplan", metrics)
    calls.post_filtered("DefaultPreemption", "Success", 1.0)
    calls.post_filtered("Other", "Success", 1.0)
    assert seen(metrics.preemption_evaluation_seconds) == {("pod", "Success"): 1}
    assert seen(metrics.plugin_seconds) == {}
    calls.sampled = True
    calls.post_filtered("Other", "Unschedulable", 1.0)
    assert seen(metrics.plugin_seconds) == {("Other", "PostFilter", "Unschedulable"): 1}


def test_the_same_plugins_share_a_count():
    metrics = Metrics()
    first, again = (PluginCalls("bayplan", metrics).count(["A", "B"], "Filter") for _ in range(2))
    assert first is again
    assert PluginCalls("bayplan", metrics).count(["A"], "Filter") is not first


def test_what_volumes_could_not_answer_is_counted_by_its_stage_and_of_no_other_plugin():
    metrics = Metrics()
    calls = PluginCalls("bayplan", metrics)
    for plugin, point in (("VolumeBinding", "PreBind"), ("VolumeBinding", "Score"), ("Other", "Filter")):
        calls.failed(plugin, point)
    assert metrics.volume_stage_errors.values == {("predicate",): 0, ("assume",): 0, ("bind",): 1}


@pytest.mark.parametrize(
    ("method", "answer", "point", "status"),
    [
        ("pre_score", SKIP, "PreScore", "Skip"),
        ("reserve", Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE), "Reserve", "UnschedulableAndUnresolvable"),
        ("pre_filter", PreFilterResult(Status(Code.UNSCHEDULABLE)), "PreFilter", "Unschedulable"),
        ("permit", Wait(5.0), "Permit", "Wait"),
        ("permit", SUCCESS, "Permit", "Success"),
        ("pre_bind", None, "PreBindPreFlight", "Skip"),
        ("pre_bind", ["bind"], "PreBindPreFlight", "Success"),
        ("sign_pod", None, "Sign", "Unschedulable"),
        ("sign_pod", (), "Sign", "Success"),
        ("filter", [1, 0], "Filter", "Success"),
        ("filter", [1, 2], "Filter", "Unschedulable"),
        ("filter", [], "Filter", "Success"),
        ("score", [0], "Score", "Success"),
        ("normalize_score", [0], "ScoreExtensionNormalize", "Success"),
    ],
)
def test_statuses_are_called_as_kube_scheduler_calls_them(method, answer, point, status):
    metrics = Metrics()
    assert PluginCalls("bayplan", metrics).measured(method, "A", lambda: answer)() is answer
    assert seen(metrics.plugin_seconds) == {("A", point, status): 1}
