"""Events that come while a pod is tried count once it has failed."""

from tests.queue.scene import COLOUR

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, NODE_ADD, NODE_TAINT
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


def test_a_younger_pod_that_ends_leaves_the_events_of_the_older(scene):
    older = scene.popped("older")
    scene.move(ASSIGNED_POD_DELETE)
    scene.popped("younger")
    scene.move(NODE_TAINT)
    scene.queue.done("younger")
    scene.queue.done("unknown")
    scene.queue.validate()
    scene.fail(older)
    assert scene.sub_queue("older") is SubQueue.BACKOFF
