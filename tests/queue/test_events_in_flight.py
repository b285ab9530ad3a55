"""Events that come while a pod is tried count once it has failed."""

from tests.builders import make_node
from tests.queue.scene import COLOUR, FIT, Scene, info
from tests.queue_checks import assert_consistent

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, NODE_ADD, NODE_CONDITION, NODE_TAINT
from bayplan.queue.queued_pod import SubQueue


def test_an_event_during_a_cycle_is_not_lost(scene):
    queued = scene.popped("p")
    scene.move(ASSIGNED_POD_DELETE)
    scene.fail(queued)
    assert scene.sub_queue("p") is SubQueue.BACKOFF
    assert scene.metrics.moves[-1] == ("backoff", "ScheduleAttemptFailure")


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
    assert_consistent(scene.queue)
    scene.fail(older)
    assert scene.sub_queue("older") is SubQueue.BACKOFF


def test_the_events_kept_have_a_bound_in_bytes(allocated):
    scene = Scene(kept_event_bytes=2**20)
    queued = scene.popped("p")
    before = allocated()
    for serial in range(1000):
        labels = {f"example.com/label-{i}": f"{serial}" for i in range(100)}
        scene.move(NODE_TAINT, make_node("n", labels=labels))
    assert 2**19 < allocated() - before < 2**20
    scene.fail(queued)
    assert allocated() - before < 2**16


def test_a_pod_that_missed_more_than_is_kept_is_tried_again():
    scene = Scene(kept_event_bytes=2**16)
    older = scene.popped("older", colour="red")
    for _ in range(100):
        scene.move(NODE_ADD, {"blue" * 100})
    younger = scene.popped("younger", colour="red")
    scene.move(NODE_ADD, {"blue"})
    scene.fail(older, COLOUR)
    scene.fail(younger, COLOUR)
    assert scene.sub_queue("older") is SubQueue.BACKOFF
    assert scene.sub_queue("younger") is SubQueue.UNSCHEDULABLE


def test_an_event_nobody_registered_for_takes_no_room(scene):
    queued = scene.popped("p")
    scene.move(NODE_CONDITION)
    scene.fail(queued)
    assert scene.sub_queue("p") is SubQueue.UNSCHEDULABLE


def test_a_pod_that_is_bound_keeps_no_event_and_is_still_known(scene, allocated):
    scene.popped("p")
    scene.queue.begin_bind("p")
    before = allocated()
    for serial in range(1000):
        scene.move(NODE_TAINT, make_node("n", labels={f"example.com/label-{i}": f"{serial}" for i in range(10)}))
    assert allocated() - before < 2**16
    newest = info("p", version="2", cpu="1")
    scene.update(newest)
    assert (scene.queue.uids(), scene.queue.newest("p")) == ({"p"}, newest)


def test_a_pod_whose_bind_failed_comes_back_in_its_newest_version(scene):
    queued = scene.popped("p")
    scene.queue.begin_bind("p")
    scene.update(info("p", version="2", tolerations=["gpu"]))
    scene.fail(queued, frozenset(), error=True)
    assert scene.sub_queue("p") is SubQueue.ERROR_BACKOFF
    assert queued.pod_info.pod.metadata.resource_version == "2"


def test_a_pod_deleted_while_it_was_bound_is_dropped_when_it_comes_back(scene):
    queued = scene.popped("p")
    scene.queue.begin_bind("p")
    scene.queue.delete("p")
    assert scene.queue.get("p") is None
    scene.fail(queued, frozenset(), error=True)
    assert scene.sub_queue("p") is None
    scene.queue.begin_bind("p")
    assert_consistent(scene.queue)


def test_events_missed_before_the_bind_began_cannot_bring_it_back_to_wait(scene):
    """Whoever rejects a pod after all has it tried again, since nobody knows what it missed."""
    queued = scene.popped("p")
    scene.queue.begin_bind("p")
    scene.fail(queued, FIT)
    assert scene.sub_queue("p") is SubQueue.BACKOFF


def test_what_is_kept_is_told_by_its_label_and_the_pods_that_are_tried_beside_it(scene):
    assert scene.queue.in_flight_events() == {"PodPopped": 0}
    queued = scene.popped("p")
    scene.move(NODE_TAINT)
    scene.move(NODE_TAINT)
    scene.move(ASSIGNED_POD_DELETE)
    expected = {"PodPopped": 1, NODE_TAINT.label: 2, ASSIGNED_POD_DELETE.label: 1}
    assert scene.queue.in_flight_events() == expected
    scene.fail(queued)
    assert scene.queue.in_flight_events() == {"PodPopped": 0}
