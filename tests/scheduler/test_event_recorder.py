import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_pod_info

from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.api_calls import JSON, MERGE_PATCH
from bayplan.scheduler.event_recorder import EventRecorder, cut_note

START = datetime(2026, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
STAMP = f"{int(START.timestamp()) * 10**9 + 123456000:x}"
COLLECTION = "/apis/events.k8s.io/v1/namespaces/shop/events"


class Scene:
    """A recorder on a clock moved by hand, and the calls it made."""

    def __init__(self):
        self.now = START
        self.calls = []
        self.creations = {}
        self.passed = 0.0
        self.recorder = EventRecorder(
            emit=self._emit, now=lambda: self.now, hostname="host-1", clock=lambda: self.passed
        )

    def _emit(self, uid, call, if_missing):
        assert uid in {"u1", "u2"}
        assert (if_missing is not None) == (call.method == "PATCH")
        self.calls.append(call)
        self.creations[call.path] = if_missing

    def after(self, **delta):
        self.now += timedelta(**delta)
        self.passed += timedelta(**delta).total_seconds()
        return self

    def fail(self, pod, message="no room", *, times=1):
        for _ in range(times):
            self.recorder.failed_scheduling(pod, message)

    def take(self):
        """The calls since last asked, as (method, body)."""
        calls, self.calls[:] = [(c.method, json.loads(c.body)) for c in self.calls], []
        return calls

    def methods(self):
        return [method for method, _ in self.take()]

    def counts(self):
        return [body["series"]["count"] for method, body in self.take() if method == "PATCH"]


@pytest.fixture
def scene():
    return Scene()


def web_pod(name="web", **fields) -> PodInfo:
    return make_pod_info(name, **{"namespace": "shop", "uid": "u1", "resource_version": "42", **fields})


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


def test_the_second_failure_starts_a_series_on_the_first_event(scene):
    scene.fail(web_pod())
    scene.take()
    scene.after(seconds=2).fail(web_pod(), "another text")
    (call,) = scene.calls
    assert (call.method, call.path, call.content_type) == ("PATCH", f"{COLLECTION}/web.{STAMP}", MERGE_PATCH)
    assert json.loads(call.body) == {"series": {"count": 2, "lastObservedTime": "2026-05-06T07:08:11.123456Z"}}


def test_later_failures_are_only_counted_until_half_an_hour_has_passed(scene):
    pod = web_pod()
    for _ in range(30):
        scene.fail(pod)
        scene.after(minutes=1).recorder.sweep()
    assert scene.counts() == [2]
    scene.fail(pod)
    scene.after(minutes=1).recorder.sweep()
    assert scene.counts() == [31]
    scene.after(minutes=1).recorder.sweep()
    assert scene.counts() == []


def test_a_series_idle_for_six_minutes_is_written_and_closed(scene):
    pod = web_pod()
    scene.fail(pod, times=3)
    scene.take()
    scene.after(minutes=5, seconds=59).recorder.sweep()
    assert scene.take() == []
    scene.after(minutes=1).recorder.sweep()
    assert scene.take() == [("PATCH", {"series": {"count": 3, "lastObservedTime": "2026-05-06T07:08:09.123456Z"}})]
    scene.fail(pod)
    assert scene.methods() == ["POST"]
    scene.after(minutes=10).recorder.sweep()
    assert scene.take() == [], "a single event is no series"


def test_a_failure_after_six_idle_minutes_starts_a_new_event_without_a_sweep(scene):
    pod = web_pod()
    scene.fail(pod, times=3)
    scene.take()
    scene.after(minutes=6).fail(pod)
    assert scene.methods() == ["PATCH", "POST"]
    scene.fail(pod)
    assert scene.counts() == [2]


def test_forgetting_a_pod_writes_its_count_and_ends_its_series(scene):
    pod = web_pod()
    scene.fail(pod, times=4)
    scene.take()
    scene.recorder.forget("u1")
    assert scene.counts() == [4]
    scene.recorder.forget("u1")
    scene.recorder.forget("never seen")
    assert scene.take() == []
    scene.fail(pod)
    assert scene.methods() == ["POST"]


@pytest.mark.parametrize("failures", [1, 2, 4])
def test_a_new_version_of_the_pod_has_an_event_of_its_own(scene, failures):
    # What was written on the pod meanwhile is a new version, so another message is an Event as with kube-scheduler.
    scene.fail(web_pod(), times=failures)
    scene.after(seconds=1).fail(web_pod(resource_version="43"), "another text")
    calls = scene.take()
    created = [body for method, body in calls if method == "POST"]
    assert [(body["note"], body["regarding"]["resourceVersion"]) for body in created] == [
        ("no room", "42"),
        ("another text", "43"),
    ]
    counts = [body["series"]["count"] for method, body in calls if method == "PATCH"]
    assert counts == [count for count in (2, failures) if 1 < count <= failures][: failures // 2]
    scene.fail(web_pod(resource_version="43"))
    assert scene.counts() == [2]


def test_an_event_that_is_missing_is_created_with_its_series_so_far(scene):
    scene.fail(web_pod(), "the first text", times=2)
    scene.after(minutes=31).recorder.sweep()
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


def test_sweeps_in_quick_succession_do_nothing(scene):
    scene.fail(web_pod(), times=3)
    scene.take()
    scene.after(minutes=5, seconds=50).recorder.sweep()
    scene.after(seconds=20).recorder.sweep()
    assert scene.counts() == [], "it is due, and the last sweep was just now"
    scene.after(seconds=10).recorder.sweep()
    assert scene.counts() == [3]


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


@given(st.lists(st.one_of(st.just("fail"), st.integers(0, 600), st.just("forget")), max_size=60))
def test_every_failure_is_counted_exactly_once_by_the_end(steps):
    scene = Scene()
    pod = web_pod()
    failures = 0
    for step in [*steps, 600, "forget"]:
        if step == "fail":
            scene.fail(pod)
            failures += 1
        elif step == "forget":
            scene.recorder.forget("u1")
        else:
            scene.after(seconds=step).recorder.sweep()
        scene.after(microseconds=1)
    last = {}
    for call in scene.calls:
        body = json.loads(call.body)
        if call.method == "POST":
            last[f"{call.path}/{body['metadata']['name']}"] = 1
        else:
            assert body["series"]["count"] > last[call.path]
            last[call.path] = body["series"]["count"]
    assert sum(last.values()) == failures


@pytest.mark.parametrize(
    ("in_memory", "note"),
    [(False, "Preempted by pod u9 on node n1"), (True, "Preempted by pod u9 on node n1 (in kube-scheduler memory).")],
)
def test_a_victim_is_told_who_came_by_uid_and_by_the_preemptors_profile(scene, in_memory, note):
    victim = web_pod(scheduler_name="default-scheduler")
    scene.recorder.preempted(victim, web_pod("secret-name", uid="u9"), "n1", in_memory=in_memory)
    ((_, body),) = scene.take()
    assert body == event(type="Normal", reason="Preempted", action="Preempting", note=note)
