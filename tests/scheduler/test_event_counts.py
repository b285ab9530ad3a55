"""Which failures are an Event of their own, and when the counts of the others are written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scheduler.recorder_scene import COLLECTION, STAMP, Scene, web_pod

from bayplan.api.response import MERGE_PATCH
from bayplan.scheduler import event_recorder
from bayplan.scheduler.event_recorder import COUNTS_PER_SWEEP, MOST_WAITING

KEPT_BYTES = 2**20
SO_MANY = 2_000
"""Pods that fail and are gone; what is counted of them would take several times the bound."""


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def few_bytes(monkeypatch):
    """A quarter of what the Events that ended may take."""
    monkeypatch.setattr(event_recorder, "ENDED_BYTES", KEPT_BYTES)


def test_a_failure_for_the_same_reasons_is_counted_and_its_count_written_when_there_is_time(scene):
    scene.fail(web_pod())
    scene.take()
    scene.after(seconds=2).fail(web_pod())
    assert scene.calls == []
    scene.after(seconds=28).recorder.sweep()
    (call,) = scene.calls
    assert (call.method, call.path, call.content_type) == ("PATCH", f"{COLLECTION}/web.{STAMP}", MERGE_PATCH)
    assert json.loads(call.body) == {"series": {"count": 2, "lastObservedTime": "2026-05-06T07:08:11.123456Z"}}
    scene.take()
    scene.after(seconds=30).recorder.sweep()
    assert scene.calls == [], "nothing was counted since"


def test_other_reasons_are_an_event_of_their_own(scene):
    for message in ("no room", "tainted", "tainted", "no room"):
        scene.after(seconds=1).fail(web_pod(), message)
    assert [(method, body["note"]) for method, body in scene.take()] == [
        ("POST", "no room"),
        ("POST", "tainted"),
        ("POST", "no room"),
    ]
    scene.after(seconds=356).recorder.sweep()
    assert scene.counts() == []
    scene.after(minutes=6).recorder.sweep()
    assert scene.counts() == [2], "of the one that was repeated, six minutes after that"


def test_notes_are_compared_as_they_are_cut(scene):
    scene.fail(web_pod(), "x" * 2000 + "a")
    scene.fail(web_pod(), "x" * 2000 + "b")
    assert scene.methods() == ["POST"]


def test_a_new_version_of_the_pod_that_fails_for_the_same_reasons_is_counted(scene):
    scene.fail(web_pod())
    scene.fail(web_pod(resource_version="43"))
    assert scene.methods() == ["POST"]


def test_reasons_that_are_told_later_are_an_event_then(scene):
    pod = web_pod()
    scene.fail(pod)
    scene.take()
    scene.recorder.failed_scheduling(pod, "tainted", told_later=True)
    scene.recorder.failed_scheduling(pod, "2 tainted", told_later=True)
    assert scene.take() == []
    scene.recorder.told(pod, "2 tainted")
    assert [(method, body["note"]) for method, body in scene.take()] == [("POST", "2 tainted")]
    scene.fail(pod, "2 tainted")
    scene.recorder.told(pod, "2 tainted")
    scene.after(minutes=6).recorder.sweep()
    assert scene.counts() == [2, 2], "each of the four attempts once"


def test_reasons_that_are_told_later_are_told_at_once_where_nothing_was_told_lately(scene):
    scene.recorder.failed_scheduling(web_pod(), "tainted", told_later=True)
    assert [(method, body["note"]) for method, body in scene.take()] == [("POST", "tainted")]
    scene.recorder.told(web_pod(), "tainted")
    assert scene.take() == []


def many(scene, number):
    """So many pods failed twice, one millisecond after the other."""
    pods = [web_pod(f"web-{serial}", uid=f"u{serial}") for serial in range(number)]
    for pod in pods:
        scene.fail(pod, times=2)
        scene.after(milliseconds=1)
    scene.take()
    return pods


def test_of_many_counts_a_few_are_written_twice_a_minute_and_the_oldest_first(scene):
    pods = many(scene, 2 * COUNTS_PER_SWEEP + 10)
    numbers, written = [], []
    for _ in range(3):
        scene.after(seconds=31).recorder.sweep()
        numbers.append(len(scene.calls))
        written += [call.about for call in scene.calls]
        scene.take()
    assert numbers == [COUNTS_PER_SWEEP, COUNTS_PER_SWEEP, 10]
    assert written == [pod.key for pod in pods]


def test_however_many_counts_there_are_each_is_written_within_half_an_hour(scene):
    pods = many(scene, 1000)
    for _ in range(6):
        for pod in pods:
            scene.fail(pod)
        scene.after(seconds=301).recorder.sweep()
    assert {call.about for call in scene.calls} == {pod.key for pod in pods}


def test_an_event_idle_for_six_minutes_is_ended(scene):
    pod = web_pod()
    scene.fail(pod, times=3)
    scene.take()
    scene.after(minutes=5, seconds=59).recorder.sweep()
    assert scene.take() == [("PATCH", {"series": {"count": 3, "lastObservedTime": "2026-05-06T07:08:09.123456Z"}})]
    scene.after(minutes=1).recorder.sweep()
    scene.fail(pod)
    assert scene.methods() == ["POST"]
    scene.after(minutes=10).recorder.sweep()
    assert scene.take() == [], "a single event is no series"


def test_a_failure_after_six_idle_minutes_starts_a_new_event_without_a_sweep(scene):
    pod = web_pod()
    scene.fail(pod, times=3)
    scene.take()
    scene.after(minutes=6).fail(pod)
    assert scene.methods() == ["POST"]
    scene.fail(pod)
    scene.recorder.sweep()
    assert scene.counts() == [3, 2]


def test_what_a_pod_was_told_that_is_bound_or_gone_is_counted_six_minutes_later(scene):
    pod = web_pod()
    scene.fail(pod, times=4)
    scene.take()
    scene.recorder.forget("u1")
    scene.recorder.forget("u1")
    scene.recorder.forget("never seen")
    scene.after(minutes=5).recorder.sweep()
    assert scene.take() == []
    scene.after(minutes=1).recorder.sweep()
    assert scene.take() == [("PATCH", {"series": {"count": 4, "lastObservedTime": "2026-05-06T07:08:09.123456Z"}})]
    scene.fail(pod)
    assert scene.methods() == ["POST"]


@pytest.mark.usefixtures("few_bytes")
def test_what_waits_to_be_counted_has_a_bound_in_bytes_and_the_oldest_is_written_then(scene, allocated):
    before = allocated()
    written = 0
    for number in range(SO_MANY):
        pod = web_pod(uid=f"u{number}")
        scene.fail(pod, "x" * (number % 1000), times=2)
        scene.recorder.forget(pod.uid)
        written += scene.methods().count("PATCH")
        scene.creations.clear()
    assert allocated() - before < KEPT_BYTES + 2**18
    assert 0 < written < SO_MANY
    scene.after(minutes=6).recorder.sweep()
    assert written + len(scene.calls) == SO_MANY


def test_counts_wait_while_events_do(scene):
    pods = many(scene, 20)
    for pod in pods[:10]:
        scene.recorder.forget(pod.uid)
    scene.waiting = MOST_WAITING + 1
    scene.after(minutes=5, seconds=59).recorder.sweep()
    assert scene.counts() == []
    scene.waiting = MOST_WAITING
    scene.after(minutes=1).recorder.sweep()
    assert scene.counts() == [2] * 20


def test_however_many_counts_are_due_no_more_of_them_wait_than_may(scene):
    pods = many(scene, 3 * MOST_WAITING)
    for pod in pods:
        for _ in range(6):
            scene.after(milliseconds=1).fail(pod)
    scene.take()
    for _ in range(6):
        scene.after(seconds=301)
        for pod in pods:
            scene.fail(pod)
    scene.waiting = None
    numbers = []
    for _ in range(4):
        scene.recorder.sweep()
        numbers.append(len(scene.take()))
        scene.after(seconds=31)
    assert numbers == [MOST_WAITING + 1, MOST_WAITING + 1, MOST_WAITING - 2, 0]


@pytest.mark.usefixtures("few_bytes")
def test_of_counts_that_wait_in_vain_the_oldest_are_let_go_of(scene, allocated):
    scene.waiting = MOST_WAITING + 1
    before = allocated()
    for number in range(SO_MANY):
        pod = web_pod(uid=f"u{number}")
        scene.fail(pod, "x" * (number % 1000), times=2)
        scene.recorder.forget(pod.uid)
        assert scene.methods() == ["POST"]
        scene.creations.clear()
    assert allocated() - before < KEPT_BYTES + 2**18
    scene.waiting = 0
    scene.after(minutes=6).recorder.sweep()
    assert scene.calls[-1].about == pod.key
    assert 250 < len(scene.calls) < SO_MANY


def test_sweeps_in_quick_succession_do_nothing(scene):
    scene.fail(web_pod(), times=3)
    scene.take()
    scene.after(seconds=29).recorder.sweep()
    assert scene.counts() == [], "the last sweep was just now"
    scene.after(seconds=1).recorder.sweep()
    assert scene.counts() == [3]


STEPS = st.one_of(st.sampled_from(["fail", "wait", "tell", "forget"]), st.integers(0, 600))


@given(st.lists(st.tuples(STEPS, st.sampled_from(["a", "b"])), max_size=60))
def test_every_failure_is_counted_by_the_end(steps):
    scene = Scene()
    pod = web_pod()
    failures = 0
    waits = None
    for step, message in [*steps, (600, "")]:
        if step == "fail":
            scene.fail(pod, message)
            failures, waits = failures + 1, None
        elif step == "wait":
            scene.recorder.failed_scheduling(pod, message, told_later=True)
            failures, waits = failures + 1, message
        elif step == "tell" and waits is not None:
            scene.recorder.told(pod, waits)
            waits = None
        elif step == "forget":
            scene.recorder.forget("u1")
            waits = None
        elif isinstance(step, int):
            scene.after(seconds=step).recorder.sweep()
        scene.after(microseconds=1)
    scene.recorder.forget("u1")
    scene.after(seconds=600).recorder.sweep()
    last = {}
    for call in scene.calls:
        body = json.loads(call.body)
        if call.method == "POST":
            last[f"{call.path}/{body['metadata']['name']}"] = 1
        else:
            assert body["series"]["count"] > last[call.path]
            last[call.path] = body["series"]["count"]
    told_later = sum(step == "tell" for step, _ in steps)
    # An attempt whose reasons are told after it was counted and that was written counts twice.
    assert failures <= sum(last.values()) <= failures + told_later
