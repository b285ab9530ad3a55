"""Which events bring which pods back."""

import logging

from tests.queue.scene import COLOUR, FIT, Scene, make_profile

from bayplan.framework.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_CONDITION,
    NODE_TAINT,
    WILDCARD,
    EventRegistration,
    QueueingHint,
)
from bayplan.queue.in_flight import InFlightPods
from bayplan.queue.queued_pod import SubQueue
from bayplan.queue.queueing_hints import ObservedEvent


def test_only_pods_of_the_plugins_that_registered_move(scene):
    scene.reject("big", FIT)
    scene.reject("red", COLOUR, colour="red")
    scene.move(ASSIGNED_POD_DELETE)
    assert scene.sub_queue("big") is SubQueue.BACKOFF
    assert scene.sub_queue("red") is SubQueue.UNSCHEDULABLE


def test_a_hint_decides_pod_by_pod(scene):
    scene.reject("red", COLOUR, colour="red")
    scene.reject("blue", COLOUR, colour="blue")
    scene.move(NODE_ADD, {"red"})
    assert scene.sub_queue("red") is SubQueue.BACKOFF
    assert scene.sub_queue("blue") is SubQueue.UNSCHEDULABLE


def test_one_rejector_that_says_queue_is_enough(scene):
    scene.reject("p", FIT | COLOUR, colour="red")
    scene.move(NODE_ADD, {"blue"})
    assert scene.sub_queue("p") is SubQueue.UNSCHEDULABLE
    scene.move(NODE_TAINT)
    assert scene.sub_queue("p") is SubQueue.BACKOFF


def test_hints_of_plugins_that_did_not_reject_the_pod_are_not_asked():
    asked = []

    def hint(pod, old, new):
        asked.append(pod.name)
        return QueueingHint.SKIP

    scene = Scene(profile=make_profile(registrations={"Nosy": [EventRegistration(NODE_ADD, hint)]}))
    for name in ("a", "b", "c"):
        scene.reject(name, COLOUR)
    scene.reject("mine", frozenset({"Nosy"}))
    scene.move(NODE_ADD, set())
    assert asked == ["mine"]


def test_a_hint_sees_the_object_before_and_after():
    seen = []

    def hint(pod, old, new):
        seen.append((pod.name, old, new))
        return QueueingHint.SKIP

    scene = Scene(profile=make_profile(registrations={"Nosy": [EventRegistration(NODE_TAINT, hint)]}))
    scene.reject("p", frozenset({"Nosy"}))
    scene.queue.move_all(NODE_TAINT, "before", "after")
    assert seen == [("p", "before", "after")]


def test_an_event_nobody_registered_for_changes_nothing(scene):
    scene.reject("p")
    scene.move(NODE_CONDITION)
    assert scene.sub_queue("p") is SubQueue.UNSCHEDULABLE


def test_each_profile_hears_of_its_own_registrations_only():
    scene = Scene(profile=make_profile(registrations={"Fit": []}))
    scene.reject("deaf", FIT)
    scene.reject("hearing", FIT, scheduler_name="other")
    scene.move(ASSIGNED_POD_DELETE)
    assert scene.sub_queue("deaf") is SubQueue.UNSCHEDULABLE
    assert scene.sub_queue("hearing") is SubQueue.BACKOFF


def test_a_hint_that_raises_counts_as_queue_and_is_reported_once_per_event(caplog):
    def hint(pod, old, new):
        raise RuntimeError("broken hint")

    scene = Scene(profile=make_profile(registrations={"Broken": [EventRegistration(NODE_ADD, hint)]}))
    scene.reject("a", frozenset({"Broken"}))
    scene.reject("b", frozenset({"Broken"}))
    with caplog.at_level(logging.ERROR):
        scene.move(NODE_ADD, set())
    assert scene.sub_queue("a") is SubQueue.BACKOFF
    assert scene.sub_queue("b") is SubQueue.BACKOFF
    assert [record.getMessage() for record in caplog.records] == [
        "queueing hint failed, pod is tried again plugin=Broken event=NodeAdd pod=default/a"
    ]
    assert "broken hint" in caplog.text


def test_a_registration_for_whatever_happens_is_helped_by_every_event():
    scene = Scene(profile=make_profile(registrations={"Extender": [EventRegistration(WILDCARD)]}))
    scene.reject("p", frozenset({"Extender"}))
    scene.move(ASSIGNED_POD_ADD)
    assert scene.sub_queue("p") is SubQueue.BACKOFF


def test_events_nobody_registered_for_are_not_kept_for_pods_in_flight(scene):
    kept = InFlightPods()
    kept.start(scene.popped("p"))
    for _ in range(100):
        kept.record(ObservedEvent(ASSIGNED_POD_ADD, None, None, {}))
    assert list(kept.missed(kept.get("p"))) == []
