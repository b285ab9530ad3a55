from tests.queue.scene import Scene

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE
from bayplan.queue.queued_pod import SubQueue


def test_an_idle_scheduler_takes_a_rejected_pod_before_its_backoff_ends(scene):
    pod = scene.reject("p")
    scene.move(ASSIGNED_POD_DELETE)
    assert scene.sub_queue("p") is SubQueue.BACKOFF
    assert scene.queue.has_ready()
    assert scene.pop().pod_info is pod
    assert ("active", "PopFromBackoffQ") in scene.metrics.moves


def test_a_busy_scheduler_leaves_pods_in_backoff(scene):
    scene.reject("urgent", priority=10)
    scene.move(ASSIGNED_POD_DELETE)
    scene.add("plain")
    assert scene.pop().pod_info.name == "plain"


def test_pods_whose_backoff_ends_in_the_same_second_come_back_by_priority(scene):
    scene.add("first")
    scene.add("low")
    scene.add("high", priority=5)
    scene.clock.now = 100.1
    for queued in [scene.pop(), scene.pop(), scene.pop()]:
        scene.clock.step(0.1)
        scene.fail(queued)
    scene.move(ASSIGNED_POD_DELETE)
    assert scene.queue.pending()["backoff"] == 3
    assert scene.drain() == ["high", "first", "low"]


def test_an_event_after_the_backoff_makes_the_pod_active_at_once(scene):
    scene.reject("p")
    scene.clock.step(2)
    scene.move(ASSIGNED_POD_DELETE)
    assert scene.sub_queue("p") is SubQueue.ACTIVE


def test_the_next_deadline_is_the_earliest_of_all_waits(scene):
    scene.reject("unschedulable")
    assert scene.queue.next_deadline() == 400.0
    scene.add("error")
    scene.clock.step(50)
    scene.fail(scene.pop(), frozenset(), error=True)
    assert scene.queue.next_deadline() == 152.0
    scene.queue.flush(152.0)
    assert scene.queue.next_deadline() == 400.0


def test_a_pod_that_waited_too_long_is_tried_without_an_event():
    scene = Scene(max_in_unschedulable_seconds=60.0)
    scene.reject("p")
    scene.wait(59.9)
    assert scene.sub_queue("p") is SubQueue.UNSCHEDULABLE
    scene.wait(0.1)
    assert scene.sub_queue("p") is SubQueue.ACTIVE
    assert scene.metrics.moves[-1] == ("active", "UnschedulableTimeout")


def test_a_gated_pod_never_times_out(scene):
    scene.add("p", gates=["g"])
    assert scene.queue.next_deadline() is None
    scene.wait(10_000)
    assert scene.sub_queue("p") is SubQueue.GATED


def test_a_backoff_longer_than_the_time_limit_still_holds():
    scene = Scene(initial_backoff_seconds=100, max_backoff_seconds=100, max_in_unschedulable_seconds=10.0)
    scene.reject("p")
    scene.wait(10)
    assert scene.sub_queue("p") is SubQueue.BACKOFF
