"""Which events bring which pods back."""

import logging

from tests.queue.scene import COLOUR, FIT, Scene, info, make_profile

from bayplan.queue.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_CONDITION,
    NODE_TAINT,
    UNSCHEDULABLE_POD_LABEL,
    WILDCARD,
    EventRegistration,
    QueueingHint,
)
from bayplan.queue.queued_pod import Place
from bayplan.queue.queueing_hints import GateRejection


def test_only_pods_of_the_plugins_that_registered_move():
    scene = Scene()
    scene.reject("big", FIT)
    scene.reject("red", COLOUR, colour="red")
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    scene.queue.validate()
    assert scene.place("big") is Place.BACKOFF
    assert scene.place("red") is Place.UNSCHEDULABLE


def test_a_hint_decides_pod_by_pod():
    scene = Scene()
    scene.reject("red", COLOUR, colour="red")
    scene.reject("blue", COLOUR, colour="blue")
    scene.queue.move_all(NODE_ADD, None, {"red"})
    scene.queue.validate()
    assert scene.place("red") is Place.BACKOFF
    assert scene.place("blue") is Place.UNSCHEDULABLE


def test_one_rejector_that_says_queue_is_enough():
    scene = Scene()
    scene.reject("p", FIT | COLOUR, colour="red")
    scene.queue.move_all(NODE_ADD, None, {"blue"})
    assert scene.place("p") is Place.UNSCHEDULABLE
    scene.queue.move_all(NODE_TAINT, None, None)
    assert scene.place("p") is Place.BACKOFF


def test_hints_of_plugins_that_did_not_reject_the_pod_are_not_asked():
    asked = []

    def hint(pod, old, new):
        asked.append(pod.name)
        return QueueingHint.SKIP

    scene = Scene(profile=make_profile(registrations={"Nosy": [EventRegistration(NODE_ADD, hint)]}))
    for name in ("a", "b", "c"):
        scene.reject(name, COLOUR)
    scene.reject("mine", frozenset({"Nosy"}))
    scene.queue.move_all(NODE_ADD, None, set())
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


def test_an_event_nobody_registered_for_changes_nothing():
    scene = Scene()
    scene.reject("p")
    scene.queue.move_all(NODE_CONDITION, None, None)
    assert scene.place("p") is Place.UNSCHEDULABLE


def test_each_profile_hears_of_its_own_registrations_only():
    scene = Scene(profile=make_profile(registrations={"Fit": []}))
    scene.reject("deaf", FIT)
    scene.reject("hearing", FIT, scheduler_name="other")
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    assert scene.place("deaf") is Place.UNSCHEDULABLE
    assert scene.place("hearing") is Place.BACKOFF


def test_a_wildcard_moves_every_pod_but_the_gated():
    scene = Scene()
    scene.reject("p", frozenset({"Unregistered"}))
    scene.add("gated", gates=["g"])
    scene.queue.move_all(WILDCARD, None, None)
    scene.queue.validate()
    assert scene.place("p") is Place.BACKOFF
    assert scene.place("gated") is Place.GATED


def test_a_hint_that_raises_counts_as_queue_and_is_reported_once_per_event(caplog):
    def hint(pod, old, new):
        raise RuntimeError("broken hint")

    scene = Scene(profile=make_profile(registrations={"Broken": [EventRegistration(NODE_ADD, hint)]}))
    scene.reject("a", frozenset({"Broken"}))
    scene.reject("b", frozenset({"Broken"}))
    with caplog.at_level(logging.ERROR):
        scene.queue.move_all(NODE_ADD, None, set())
    scene.queue.validate()
    assert scene.place("a") is Place.BACKOFF
    assert scene.place("b") is Place.BACKOFF
    assert [record.getMessage() for record in caplog.records] == [
        "queueing hint failed, pod is tried again plugin=Broken event=NodeAdd pod=default/a"
    ]
    assert "broken hint" in caplog.text


# Events while a pod is in flight.


def test_an_event_during_a_cycle_is_not_lost():
    scene = Scene()
    scene.add("p")
    queued = scene.pop()
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    scene.fail(queued)
    assert scene.place("p") is Place.BACKOFF
    assert scene.tally.moves[-1] == ("backoff", "ScheduleAttemptFailure")


def test_an_event_during_a_cycle_that_cannot_help_is_no_reason_to_retry():
    scene = Scene()
    scene.add("red", colour="red")
    queued = scene.pop()
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    scene.queue.move_all(NODE_ADD, None, {"blue"})
    scene.fail(queued, COLOUR)
    assert scene.place("red") is Place.UNSCHEDULABLE


def test_an_event_before_the_pop_is_not_replayed():
    scene = Scene()
    scene.add("other")
    scene.pop()
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    scene.add("p")
    scene.fail(scene.pop())
    assert scene.place("p") is Place.UNSCHEDULABLE


def test_a_wildcard_during_a_cycle_brings_the_pod_back():
    scene = Scene()
    scene.add("p")
    queued = scene.pop()
    scene.queue.move_all(WILDCARD, None, None)
    scene.fail(queued, frozenset({"Unregistered"}))
    assert scene.place("p") is Place.BACKOFF


def test_a_pending_plugin_that_says_queue_skips_the_backoff():
    scene = Scene()
    scene.add("p", colour="red")
    scene.fail(scene.pop(), FIT, pending_plugins=COLOUR)
    scene.queue.move_all(NODE_ADD, None, {"red"})
    scene.queue.validate()
    assert scene.place("p") is Place.ACTIVE


def test_with_a_plugin_pending_another_ones_word_still_means_backoff():
    scene = Scene()
    scene.add("p", colour="red")
    scene.fail(scene.pop(), FIT, pending_plugins=COLOUR)
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    assert scene.place("p") is Place.BACKOFF


def test_a_pending_plugin_is_heard_even_when_another_answered_the_same_event_first():
    registrations = {"Colour": [EventRegistration(NODE_ADD)], "Late": [EventRegistration(NODE_ADD)]}
    scene = Scene(profile=make_profile(registrations=registrations))
    scene.add("p")
    scene.fail(scene.pop(), COLOUR, pending_plugins=frozenset({"Late"}))
    scene.queue.move_all(NODE_ADD, None, None)
    assert scene.place("p") is Place.ACTIVE


def test_the_best_of_the_events_during_a_cycle_counts():
    scene = Scene()
    scene.add("p", colour="red")
    queued = scene.pop()
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    scene.queue.move_all(NODE_ADD, None, {"red"})
    scene.queue.move_all(NODE_TAINT, None, None)
    scene.fail(queued, FIT, pending_plugins=COLOUR)
    assert scene.place("p") is Place.ACTIVE


# Gates.


def test_a_gated_pod_waits_until_its_gates_are_gone():
    scene = Scene()
    scene.add("p", gates=["a", "b"])
    queued = scene.queue.get("p")
    assert queued is not None
    assert queued.place is Place.GATED
    assert (queued.gating_plugin, queued.gating_message) == ("SchedulingGates", "waiting for 2 gates")
    assert scene.queue.pop() is None
    scene.queue.update(None, info("p", version="2", gates=["b"]))
    assert queued.gating_message == "waiting for 1 gates"
    assert scene.queue.pending()["gated"] == 1
    scene.queue.update(None, info("p", version="3"))
    scene.queue.validate()
    assert queued.gating_plugin is None
    assert scene.pop() is queued
    assert scene.tally.moves == [
        ("unschedulable", "UnschedulablePodAdd"),
        ("active", "UnschedulablePodUpdatePodSchedulingGatesEliminated"),
    ]


def test_the_clock_of_the_first_attempt_starts_when_the_gate_opens():
    scene = Scene()
    scene.add("p", gates=["g"])
    queued = scene.queue.get("p")
    assert queued is not None
    assert queued.initial_attempt_timestamp is None
    scene.clock.step(30)
    scene.queue.update(None, info("p", version="2"))
    assert queued.initial_attempt_timestamp == 130.0
    assert queued.timestamp == 100.0
    scene.clock.step(5)
    scene.fail(scene.pop())
    scene.queue.activate(["p"])
    assert queued.initial_attempt_timestamp == 130.0


class ReservedRoom:
    """A profile whose plugin Preemption holds a pod back until it is told not to."""

    def __init__(self):
        self.held = set()
        registrations = {
            "Preemption": [EventRegistration(ASSIGNED_POD_DELETE, lambda pod, old, new: QueueingHint.SKIP)]
        }
        self.profile = make_profile(pre_enqueue=self.gate, registrations=registrations)

    def gate(self, pod):
        return GateRejection("Preemption", "victims are leaving") if pod.name in self.held else None


def test_a_rejected_pod_may_be_gated_when_it_wants_to_come_back():
    room = ReservedRoom()
    scene = Scene(profile=room.profile)
    scene.reject("p")
    room.held.add("p")
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    scene.queue.validate()
    assert scene.place("p") is Place.GATED
    room.held.clear()
    scene.queue.activate(["p"])
    scene.queue.validate()
    assert scene.place("p") is Place.ACTIVE


def test_a_gated_pod_moves_by_events_of_its_gating_plugin_when_its_rejectors_agree():
    room = ReservedRoom()
    scene = Scene(profile=room.profile)
    scene.reject("p")
    room.held.add("p")
    scene.queue.move_all(NODE_TAINT, None, None)
    assert scene.place("p") is Place.GATED
    room.held.clear()
    scene.queue.move_all(NODE_TAINT, None, None)
    assert scene.place("p") is Place.GATED
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    scene.queue.validate()
    assert scene.place("p") is Place.BACKOFF


def test_the_wait_of_a_gated_pod_for_its_gate_does_not_end_by_time():
    room = ReservedRoom()
    scene = Scene(profile=room.profile)
    scene.reject("p")
    room.held.add("p")
    scene.clock.step(300)
    scene.queue.flush(scene.clock.now)
    scene.queue.validate()
    assert scene.place("p") is Place.GATED
    assert scene.queue.next_deadline() is None


def test_a_gate_that_raises_holds_the_pod_until_it_can_answer(caplog):
    answers = [RuntimeError("broken gate"), None]

    def gate(pod):
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    scene = Scene(profile=make_profile(pre_enqueue=gate))
    scene.add("p")
    assert scene.place("p") is Place.GATED
    assert "PreEnqueue failed, pod is held back pod=default/p" in caplog.text
    scene.queue.update(None, info("p", version="2"))
    assert scene.place("p") is Place.ACTIVE


# Updates.


def test_an_update_of_an_active_pod_replaces_the_object_and_keeps_its_turn():
    scene = Scene()
    scene.add("first")
    scene.add("second")
    new = info("first", version="2", colour="red")
    scene.queue.update(None, new)
    assert scene.pop().pod_info is new


def test_an_update_that_changes_the_order_is_obeyed():
    scene = Scene()
    scene.add("first")
    scene.add("second")
    scene.queue.update(None, info("second", version="2", priority=7))
    scene.queue.validate()
    assert scene.drain() == ["second", "first"]


def test_an_update_in_backoff_replaces_the_object_in_place():
    scene = Scene()
    scene.reject("p")
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    new = info("p", version="2")
    scene.queue.update(None, new)
    assert scene.place("p") is Place.BACKOFF
    assert scene.pop().pod_info is new


def test_an_update_of_the_same_version_is_ignored():
    scene = Scene()
    pod = scene.add("p")
    scene.queue.update(pod, info("p", priority=9))
    assert scene.pop().pod_info is pod


def test_an_update_of_an_unknown_pod_adds_it():
    scene = Scene()
    scene.queue.update(None, info("p"))
    assert scene.drain() == ["p"]


def test_adding_a_known_pod_is_an_update():
    scene = Scene()
    scene.add("p")
    scene.add("p", version="2")
    assert scene.drain() == ["p"]


def test_a_change_its_rejector_wants_brings_the_pod_back():
    scene = Scene()
    scene.reject("p", COLOUR)
    scene.clock.step(5)
    scene.queue.update(None, info("p", version="2", tolerations=["gpu"]))
    scene.queue.validate()
    assert scene.place("p") is Place.ACTIVE
    assert scene.tally.moves[-1] == ("active", "UnschedulablePodUpdatePodToleration")


def test_any_other_change_leaves_the_pod_waiting_with_its_new_object():
    scene = Scene()
    scene.reject("p", COLOUR)
    new = info("p", version="2", colour="red")
    scene.queue.update(None, new)
    queued = scene.queue.get("p")
    assert queued is not None
    assert queued.place is Place.UNSCHEDULABLE
    assert queued.pod_info is new


def test_the_version_the_caller_names_is_the_one_compared_with():
    scene = Scene()
    scene.reject("p", COLOUR, tolerations=["gpu"])
    scene.queue.update(info("p"), info("p", version="2", tolerations=["gpu"]))
    assert scene.place("p") is Place.BACKOFF


def test_an_update_during_a_cycle_is_replayed_for_its_pod_and_for_no_other():
    scene = Scene()
    scene.add("p")
    scene.add("bystander")
    first, second = scene.pop(), scene.pop()
    old = first.pod_info
    new = info("p", version="2", tolerations=["gpu"])
    scene.queue.update(None, new)
    assert first.pod_info is old
    scene.fail(first, COLOUR)
    scene.fail(second, COLOUR)
    assert scene.place("p") is Place.BACKOFF
    assert first.pod_info is new
    assert scene.place("bystander") is Place.UNSCHEDULABLE


def test_a_hint_about_an_update_sees_both_versions():
    seen = []

    def hint(pod, old, new):
        seen.append((pod, old, new))
        return QueueingHint.SKIP

    profile = make_profile(registrations={"Nosy": [EventRegistration(UNSCHEDULABLE_POD_LABEL, hint)]})
    scene = Scene(profile=profile)
    old = scene.reject("p", frozenset({"Nosy"}))
    new = info("p", version="2", colour="red")
    scene.queue.update(None, new)
    assert seen == [(new, old, new)]


def test_events_nobody_registered_for_are_not_kept_for_pods_in_flight():
    scene = Scene()
    scene.add("p")
    scene.pop()
    for version in range(2, 100):
        scene.queue.move_all(ASSIGNED_POD_ADD, None, None)
        scene.queue.update(None, info("p", version=str(version)))
    assert scene.queue._in_flight.event_count == 0
