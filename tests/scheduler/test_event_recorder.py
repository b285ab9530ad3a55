import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_pod_info
from tests.scheduler.recorder_scene import COLLECTION, STAMP, Scene, web_pod

from bayplan.api.response import JSON
from bayplan.scheduler.event_recorder import cut_note


@pytest.fixture
def scene():
    return Scene()


def event(**changes):
    regarding = {"kind": "Pod", "apiVersion": "v1", "namespace": "shop", "name": "web", "uid": "u1"}
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"web.{STAMP}", "namespace": "shop"},
        "eventTime": "2026-05-06T07:08:09.123456Z",
        "reportingController": "bayplan",
        "reportingInstance": "bayplan-host-1",
        "regarding": {**regarding, "resourceVersion": "42"},
        **changes,
    }


def test_a_bound_pod_is_announced_as_kube_scheduler_does(scene):
    scene.recorder.scheduled(web_pod(), "n1")
    (call,) = scene.calls
    assert (call.method, call.path, call.content_type) == ("POST", COLLECTION, JSON)
    note = "Successfully assigned shop/web to n1"
    assert json.loads(call.body) == event(type="Normal", reason="Scheduled", action="Binding", note=note)


def test_a_failure_is_announced_as_kube_scheduler_does(scene):
    note = "0/3 nodes are available: 3 Insufficient cpu. 100% %s {0}"
    scene.fail(web_pod(), note)
    ((method, body),) = scene.take()
    assert method == "POST"
    assert body == event(type="Warning", reason="FailedScheduling", action="Scheduling", note=note)


def test_a_pod_without_a_version_is_regarded_without_one(scene):
    scene.fail(web_pod(resource_version=""))
    ((_, body),) = scene.take()
    assert "resourceVersion" not in body["regarding"]


def test_the_event_of_a_long_pod_name_has_a_valid_name(scene):
    long = "a" * 235 + "." + "b" * 17
    scene.fail(web_pod(long))
    ((_, created),) = scene.take()
    assert created["metadata"]["name"] == f"{'a' * 235}.{STAMP}"
    assert len(created["metadata"]["name"]) <= 253
    assert created["regarding"]["name"] == long


def test_an_event_that_is_missing_is_created_with_its_series_so_far(scene):
    scene.fail(web_pod(), "the first text", times=2)
    scene.after(seconds=31).recorder.sweep()
    first, started, *_ = scene.calls
    creation = json.loads(scene.creations[started.path].body)
    assert (scene.creations[started.path].method, scene.creations[started.path].path) == ("POST", first.path)
    assert creation == {**json.loads(first.body), **json.loads(started.body)}


def test_the_clock_on_the_wall_may_go_back(scene):
    scene.fail(web_pod(), times=3)
    scene.take()
    scene.now -= timedelta(days=1)
    scene.passed += 360
    scene.recorder.sweep()
    assert scene.counts() == [3]


def test_a_recreated_pod_has_a_series_of_its_own(scene):
    scene.fail(web_pod(uid="u1"))
    scene.fail(web_pod(uid="u2"))
    assert scene.methods() == ["POST", "POST"]


@pytest.mark.parametrize("field", ["name", "namespace"])
@pytest.mark.parametrize("odd", ["", ".", "..", "a/b", "a?b#c", "\ud800", "x" * 10_000, "\x00\x1b\n"])
def test_no_name_is_odd_enough_to_raise_or_to_leave_its_path(scene, field, odd):
    pod = web_pod(**{field: odd})
    scene.recorder.scheduled(pod, "n")
    scene.fail(pod, times=3)
    scene.after(hours=1).recorder.sweep()
    scene.recorder.forget("u1")
    for call in scene.calls:
        segments = call.path.split("/")
        assert segments[:5] == ["", "apis", "events.k8s.io", "v1", "namespaces"]
        assert len(segments) == (7 if call.method == "POST" else 8)
        assert not {"?", "#", "\n"} & set(call.path)


def test_a_note_is_cut_to_1024_bytes_with_a_mark():
    assert cut_note("x" * 1024) == "x" * 1024
    assert cut_note("x" * 1025) == "x" * 1020 + " ..."
    assert cut_note("x" + "é" * 600) == "x" + "é" * 509 + " ..."


@given(st.text(st.characters(), max_size=1200))
def test_a_cut_note_is_a_beginning_of_whole_characters_within_the_limit(note):
    cut = cut_note(note)
    assert len(cut.encode()) <= 1024
    clean = note.encode(errors="replace").decode()
    assert cut == clean or (cut.endswith(" ...") and clean.startswith(cut[:-4]) and len(cut.encode()) > 1020)


@pytest.mark.parametrize(
    ("in_memory", "note"),
    [(False, "Preempted by pod u9 on node n1"), (True, "Preempted by pod u9 on node n1 (in kube-scheduler memory).")],
)
def test_a_victim_is_told_who_came_by_uid_and_by_the_preemptors_profile(scene, in_memory, note):
    victim = web_pod(scheduler_name="default-scheduler")
    scene.recorder.preempted(victim, web_pod("secret-name", uid="u9"), "n1", in_memory=in_memory)
    ((_, body),) = scene.take()
    assert body == event(type="Normal", reason="Preempted", action="Preempting", note=note)


def test_pods_that_somebody_else_bound_are_one_warning_a_minute_that_counts_them(scene, caplog):
    for number in range(3):
        scene.recorder.taken(make_pod_info(f"p{number}", namespace="shop", uid=f"u{number}"))
    scene.after(seconds=60)
    scene.recorder.taken(make_pod_info("p3", namespace="shop", uid="u3"))
    events = [body for _, body in scene.take()]
    assert [(each["type"], each["reason"]) for each in events] == [("Warning", "BoundByAnother")] * 2
    counts = [each["note"].partition("last such Event: ")[2].partition(".")[0] for each in events]
    assert counts == ["1", "3"]
    assert [line.rpartition(" ")[2] for line in caplog.messages] == ["pods=1", "pods=3"]
