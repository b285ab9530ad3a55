"""What is told of the rounds of a pod group: a condition on it, and counts."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.group_builders import make_pod_group
from tests.recorded_metrics import RecordedMetrics
from tests.scheduler.group_scene import GroupScene

from bayplan.api.objects import Condition
from bayplan.scheduler.pod_group_reporter import PodGroupReporter
from bayplan.scheduler.pod_group_round import RoundResult, RoundStatus

PLACED = RoundResult(RoundStatus.SCHEDULED, "", ())
FULL = RoundResult(RoundStatus.UNSCHEDULABLE, "minCount (3) cannot be satisfied", ())
BROKEN = RoundResult(RoundStatus.ERROR, "broken", ())


class Scene:
    def __init__(self):
        self.calls = []
        self.ended = []
        self.urgent = []
        self.time = datetime(2026, 1, 1, tzinfo=UTC)
        self.metrics = RecordedMetrics()
        self.reporter = PodGroupReporter(self.patch, self.metrics, lambda: 7.0, lambda: self.time)

    def patch(self, uid, call, ended, *, urgent=False, patient=False):
        self.calls.append(call)
        self.ended.append(ended)
        self.urgent.append(urgent)
        assert patient

    def written(self):
        bodies = [json.loads(call.body) for call in self.calls]
        return [condition for body in bodies for condition in body["status"]["conditions"]]

    def told(self):
        return [(each["status"], each["reason"], each["message"]) for each in self.written()]


@pytest.fixture
def scene():
    return Scene()


def test_each_outcome_has_its_condition(scene):
    for result in (FULL, BROKEN, PLACED):
        scene.reporter.report(make_pod_group(least=3), result)
    assert scene.told() == [
        ("False", "Unschedulable", FULL.message),
        ("False", "SchedulerError", "broken"),
        ("True", "Scheduled", ""),
    ]
    assert scene.urgent == [False, False, True]


def test_the_patch_is_of_that_very_object_and_of_its_status(scene):
    scene.reporter.report(make_pod_group("g", least=3, namespace="ns", uid="u"), PLACED)
    (call,) = scene.calls
    assert (call.method, call.content_type) == ("PATCH", "application/strategic-merge-patch+json")
    assert call.path == "/apis/scheduling.k8s.io/v1beta1/namespaces/ns/podgroups/g/status"
    assert json.loads(call.body)["metadata"] == {"uid": "u"}
    (condition,) = scene.written()
    assert condition["type"] == "PodGroupInitiallyScheduled"
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_what_the_group_says_already_is_not_written_again(scene):
    group = make_pod_group(least=3)
    for _ in range(3):
        scene.reporter.report(group, FULL)
    assert len(scene.calls) == 1
    shown = Condition("PodGroupInitiallyScheduled", "False", "Unschedulable", FULL.message, "t")
    scene.reporter.report(make_pod_group(least=3, condition=shown), FULL)
    assert len(scene.calls) == 1


def test_true_is_final_also_while_versions_from_before_it_still_arrive(scene):
    group = make_pod_group(least=3)
    scene.reporter.report(group, PLACED)
    scene.reporter.report(group, FULL)
    scene.reporter.report(group, BROKEN)
    assert scene.told() == [("True", "Scheduled", "")]


def test_a_true_that_another_scheduler_wrote_is_final_as_well(scene):
    shown = Condition("PodGroupInitiallyScheduled", "True", "Scheduled", "", "t")
    scene.reporter.report(make_pod_group(least=3, condition=shown), FULL)
    scene.reporter.report(make_pod_group(least=3, condition=shown), PLACED)
    assert scene.calls == []


def test_the_transition_time_is_that_of_the_first_of_a_row(scene):
    group = make_pod_group(least=3)
    for result in (FULL, BROKEN, PLACED):
        scene.reporter.report(group, result)
        scene.time += timedelta(minutes=1)
    times = [each["lastTransitionTime"] for each in scene.written()]
    assert times == ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:02:00Z"]


def test_a_write_that_was_given_up_is_made_up_for_by_the_next_round(scene):
    group = make_pod_group(least=3)
    scene.reporter.report(group, PLACED)
    scene.ended[0](False)
    scene.reporter.report(group, PLACED)
    scene.ended[1](True)
    scene.reporter.report(group, PLACED)
    assert len(scene.calls) == 2


def test_an_old_write_that_fails_late_forgets_nothing_newer(scene):
    group = make_pod_group(least=3)
    scene.reporter.report(group, FULL)
    scene.reporter.report(group, PLACED)
    scene.ended[0](False)
    scene.reporter.report(group, FULL)
    assert len(scene.calls) == 2


def test_a_group_made_anew_begins_anew(scene):
    scene.reporter.report(make_pod_group(least=3, uid="old"), PLACED)
    scene.reporter.forget("old")
    scene.reporter.forget("old")
    scene.reporter.report(make_pod_group(least=3, uid="new"), FULL)
    scene.reporter.report(make_pod_group(least=3, uid="old"), FULL)
    assert [status for status, *_ in scene.told()] == ["True", "False", "False"]


def test_groups_of_the_crd_and_rounds_of_nobody_leave_no_word(scene):
    scene.reporter.report(make_pod_group(least=3, crd=True), FULL)
    scene.reporter.report(make_pod_group(least=3), RoundResult(RoundStatus.SKIPPED, "", ()))
    assert scene.calls == []


def test_a_name_that_cannot_be_in_a_path_is_told_and_breaks_nothing(scene, caplog):
    scene.reporter.report(make_pod_group("..", least=3), FULL)
    assert scene.calls == []
    assert "condition cannot be written podGroup='default/..'" in caplog.text


def test_each_round_is_counted_by_its_result_with_the_time_since_its_first_member(scene):
    cluster = GroupScene()
    for least in (1, 3):
        scene.reporter.report(
            make_pod_group(least=least, crd=True), cluster.run(make_pod_group(least=least), cluster.queued("1"))
        )
    counted = scene.metrics.pod_group_attempts.values
    assert dict(counted) == {("scheduled", "bayplan"): 1, ("unschedulable", "bayplan"): 1}
