"""Events that come while a pod is tried count once it has failed."""

from tests.queue.scene import COLOUR, FIT, Scene, make_profile

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, NODE_ADD, NODE_TAINT, WILDCARD, EventRegistration
from bayplan.queue.queued_pod import SubQueue


def test_an_event_during_a_cycle_is_not_lost(scene):
    queued = scene.popped("p")
    scene.move(ASSIGNED_POD_DELETE)
    scene.fail(queued)
    assert scene.sub_queue("p") is SubQueue.BACKOFF
    assert scene.tally.moves[-1] == ("backoff", "ScheduleAttemptFailure")


def test_an_event_during_a_cycle_that_cannot_help_is_no_reason_to_retry(scene):
    queued = scene.popped("red", colour="red")
    scene.move(ASSIGNED_POD_DELETE)
    scene.move(NODE_ADD, {"blue"})
    scene.fail(queued, COLOUR)
    assert scene.sub_queue("red") is SubQueue.UNSCHEDULABLE


def test_an_event_before_the_pop_is_not_replayed(scene):
    scene.add("other")
    scene.pop()
    scene.move(ASSIGNED_POD_DELETE)
    scene.fail(scene.popped("p"))
    assert scene.sub_queue("p") is SubQueue.UNSCHEDULABLE


def test_a_wildcard_during_a_cycle_brings_the_pod_back(scene):
    queued = scene.popped("p")
    scene.move(WILDCARD)
    scene.fail(queued, frozenset({"Unregistered"}))
    assert scene.sub_queue("p") is SubQueue.BACKOFF


def test_a_pending_plugin_that_says_queue_skips_the_backoff(scene):
    scene.fail(scene.popped("p", colour="red"), FIT, pending_plugins=COLOUR)
    scene.move(NODE_ADD, {"red"})
    assert scene.sub_queue("p") is SubQueue.ACTIVE


def test_with_a_plugin_pending_another_ones_word_still_means_backoff(scene):
    scene.fail(scene.popped("p", colour="red"), FIT, pending_plugins=COLOUR)
    scene.move(ASSIGNED_POD_DELETE)
    assert scene.sub_queue("p") is SubQueue.BACKOFF


def test_a_pending_plugin_is_heard_even_when_another_answered_the_same_event_first():
    registrations = {"Colour": [EventRegistration(NODE_ADD)], "Late": [EventRegistration(NODE_ADD)]}
    scene = Scene(profile=make_profile(registrations=registrations))
    scene.fail(scene.popped("p"), COLOUR, pending_plugins=frozenset({"Late"}))
    scene.move(NODE_ADD)
    assert scene.sub_queue("p") is SubQueue.ACTIVE


def test_the_best_of_the_events_during_a_cycle_counts(scene):
    queued = scene.popped("p", colour="red")
    scene.move(ASSIGNED_POD_DELETE)
    scene.move(NODE_ADD, {"red"})
    scene.move(NODE_TAINT)
    scene.fail(queued, FIT, pending_plugins=COLOUR)
    assert scene.sub_queue("p") is SubQueue.ACTIVE


def test_events_are_kept_only_while_a_pod_in_flight_needs_them(scene):
    scene.move(NODE_TAINT)
    assert scene.queue.in_flight_event_count == 0
    scene.popped("older")
    scene.move(ASSIGNED_POD_DELETE)
    scene.popped("younger")
    scene.move(NODE_TAINT)
    scene.queue.done("older")
    assert scene.queue.in_flight_event_count == 1
    scene.queue.done("younger")
    assert scene.queue.in_flight_event_count == 0


def test_a_younger_pod_that_ends_leaves_the_events_of_the_older(scene):
    older = scene.popped("older")
    scene.move(ASSIGNED_POD_DELETE)
    scene.popped("younger")
    scene.move(NODE_TAINT)
    scene.queue.done("younger")
    scene.queue.done("unknown")
    assert scene.queue.in_flight_event_count == 2
    scene.fail(older)
    assert scene.sub_queue("older") is SubQueue.BACKOFF
