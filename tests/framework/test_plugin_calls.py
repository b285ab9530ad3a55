import pytest

from bayplan.framework.interface import PreFilterResult, Wait
from bayplan.framework.plugin_calls import (
    CYCLES_PER_SAMPLE,
    EvaluationCount,
    PluginCalls,
    label_of,
    label_of_codes,
    label_of_effects,
    label_of_part,
    label_of_permit,
    label_of_result,
)
from bayplan.framework.status import SKIP, SUCCESS, Code, Status


class Observer:
    """Remembers what it is told, but no times."""

    def __init__(self):
        self.points = []
        self.plugins = []
        self.failures = []
        self.preemptions = []
        self.counts = {}

    def extension_point(self, point, status, profile, seconds):
        self.points.append((point, status, profile, seconds))

    def plugin_executed(self, plugin, point, status, seconds):
        assert seconds >= 0
        self.plugins.append((plugin, point, status))

    def plugin_failed(self, plugin, point):
        self.failures.append((plugin, point))

    def preemption_evaluated(self, result, seconds):
        self.preemptions.append(result)

    def evaluations(self, plugins, point, profile):
        return self.counts.setdefault((plugins, point, profile), EvaluationCount())


def test_one_attempt_of_ten_is_sampled():
    calls = PluginCalls("bayplan", Observer())
    sampled = 0
    for _ in range(10_000):
        calls.begin()
        sampled += calls.sampled
    assert 10_000 / CYCLES_PER_SAMPLE * 0.8 < sampled < 10_000 / CYCLES_PER_SAMPLE * 1.2


def test_the_first_attempt_is_sampled_so_that_a_short_life_shows_something():
    calls = PluginCalls("bayplan", Observer())
    calls.begin()
    assert calls.sampled


def test_without_an_observer_nobody_need_begin():
    assert not PluginCalls().observed
    assert not PluginCalls().sampled


def test_a_call_is_told_with_its_status_and_gives_its_answer():
    observer = Observer()
    answer = PluginCalls("bayplan", observer).run("Reserve", "A", label_of, lambda number: SUCCESS, 1)
    assert answer is SUCCESS
    assert observer.plugins == [("A", "Reserve", "Success")]


def test_a_call_that_raises_is_told_as_an_error():
    def fail():
        raise ValueError("no")

    observer = Observer()
    with pytest.raises(ValueError, match="no"):
        PluginCalls("bayplan", observer).run("Reserve", "A", label_of, fail)
    assert observer.plugins == [("A", "Reserve", "Error")]


def test_what_is_reported_within_a_measure_is_left_out_of_it_once():
    observer = Observer()
    calls = PluginCalls("bayplan", observer)
    calls.apart = 2.0
    calls.report_rest("Filter", "Success", 5.0)
    calls.report_rest("Score", "Success", 5.0)
    assert [seconds for *_, seconds in observer.points] == [3.0, 5.0]


def test_what_an_attempt_left_over_is_not_taken_from_the_next():
    calls = PluginCalls("bayplan", Observer())
    calls.apart = 2.0
    calls.begin()
    assert calls.apart == 0.0


def test_preemption_is_told_in_every_attempt_and_its_plugin_in_a_sample():
    observer = Observer()
    calls = PluginCalls("bayplan", observer)
    calls.post_filtered("DefaultPreemption", "Success", 1.0)
    calls.post_filtered("Other", "Success", 1.0)
    assert (observer.preemptions, observer.plugins) == (["Success"], [])
    calls.sampled = True
    calls.post_filtered("Other", "Unschedulable", 1.0)
    assert observer.plugins == [("Other", "PostFilter", "Unschedulable")]


def test_the_same_plugins_share_a_count():
    observer = Observer()
    first, again = (PluginCalls("bayplan", observer).count(["A", "B"], "Filter") for _ in range(2))
    assert first is again
    assert PluginCalls("bayplan", observer).count(["A"], "Filter") is not first


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (label_of(SKIP), "Skip"),
        (label_of(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)), "UnschedulableAndUnresolvable"),
        (label_of_result(PreFilterResult(Status(Code.UNSCHEDULABLE))), "Unschedulable"),
        (label_of_permit(Wait(5.0)), "Wait"),
        (label_of_permit(SUCCESS), "Success"),
        (label_of_effects([]), "Skip"),
        (label_of_effects(["bind"]), "Success"),
        (label_of_part(None), "Unschedulable"),
        (label_of_part(()), "Success"),
        (label_of_codes([1, 0]), "Success"),
        (label_of_codes([1, 2]), "Unschedulable"),
        (label_of_codes([]), "Success"),
    ],
)
def test_statuses_are_called_as_kube_scheduler_calls_them(label, expected):
    assert label == expected
