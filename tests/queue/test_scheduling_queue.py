import pytest
from tests.clock import Clock
from tests.queue.scene import FIT, Scene, info, make_profile
from tests.queue_checks import assert_consistent

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE
from bayplan.queue.queue_settings import QueueSettings
from bayplan.queue.queued_pod import SubQueue
from bayplan.queue.scheduling_queue import SchedulingQueue


def test_pods_pop_by_priority_then_by_time_then_in_order_of_arrival(scene):
    scene.add("early")
    scene.clock.step(1)
    scene.add("later")
    scene.add("last")
    scene.add("urgent", priority=10)
    scene.add("lazy", priority=-5)
    assert scene.drain() == ["urgent", "early", "later", "last", "lazy"]


def test_a_sort_key_of_ones_own_decides_the_order():
    scene = Scene(sort_key=lambda pod, timestamp: (pod.name,))
    for name in "bca":
        scene.add(name)
    assert scene.drain() == ["a", "b", "c"]


def test_an_empty_queue_pops_nothing(scene):
    assert scene.queue.pop() is None
    assert not scene.queue.has_ready()
    assert scene.queue.next_deadline() is None
    assert scene.queue.pending() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}


def test_a_popped_pod_counts_its_attempts_and_is_in_no_queue(scene):
    queued = scene.popped("p")
    assert queued.attempts == 1
    assert queued.sub_queue is None
    assert sum(scene.queue.pending().values()) == 0
    assert scene.queue.uids() == {"p"}
    scene.fail(queued)
    scene.bring_back()
    assert scene.pop().attempts == 2


def test_a_pod_that_is_done_is_unknown(scene):
    scene.add("p")
    scene.queue.done(scene.pop().uid)
    scene.queue.done("p")
    assert scene.queue.uids() == set()
    assert scene.queue.get("p") is None


@pytest.mark.parametrize("in_flight", [False, True])
def test_a_pod_is_alive_until_its_deletion_begins(scene, in_flight):
    assert not scene.queue.is_alive("p")
    scene.add("p")
    if in_flight:
        scene.queue.pop()
    assert scene.queue.is_alive("p")
    scene.queue.update(info("p", version="2", deleting=True))
    assert not scene.queue.is_alive("p")
    assert scene.queue.newest("p") is not None


def test_a_recreated_pod_is_another_pod(scene):
    scene.add("p", uid="first")
    scene.queue.delete("first")
    scene.add("p", uid="second")
    assert scene.pop().uid == "second"
    assert scene.queue.pop() is None


def test_a_pod_of_no_profile_is_refused_by_name(scene):
    with pytest.raises(ValueError, match=r"default/p: no profile is named 'stranger'"):
        scene.add("p", scheduler_name="stranger")
    assert scene.queue.uids() == set()


def test_the_queue_needs_no_metrics():
    queue = SchedulingQueue(clock=Clock(), settings=QueueSettings({"bayplan": make_profile()}))
    queue.add(info("p"))
    queued = queue.pop()
    assert queued is not None
    queue.add_unschedulable(queued, rejector_plugins=FIT, error=False)
    assert queue.pending()["unschedulable"] == 1


# Deletion.


def test_a_deleted_pod_never_pops_wherever_it_was(scene):
    scene.add("gated", gates=["g"])
    scene.reject("unschedulable")
    scene.break_off("error")
    scene.reject("backoff")
    scene.move(ASSIGNED_POD_DELETE)
    scene.add("active")
    for uid in ("gated", "unschedulable", "error", "backoff", "active", "unknown"):
        scene.queue.delete(uid)
        assert_consistent(scene.queue)
    assert scene.queue.uids() == set()
    assert scene.metrics.rejected() == {}
    scene.queue.flush(10_000)
    assert scene.drain() == []


def test_a_pod_deleted_in_flight_does_not_come_back(scene):
    queued = scene.popped("p")
    scene.queue.delete("p")
    assert scene.queue.uids() == set()
    assert scene.queue.get("p") is None
    scene.fail(queued, frozenset(), error=True)
    assert sum(scene.queue.pending().values()) == 0


@pytest.mark.parametrize(("version", "comes_back"), [("6", True), ("5", False), ("4", False)])
def test_a_pod_deleted_in_flight_comes_back_only_in_a_later_version(scene, version, comes_back):
    queued = scene.popped("p", version="5")
    scene.queue.delete("p")
    scene.add("p", version=version)
    scene.fail(queued)
    assert scene.sub_queue("p") is (SubQueue.UNSCHEDULABLE if comes_back else None)


# The metrics.


def test_every_move_is_reported_with_its_event(scene):
    scene.reject("p")
    scene.move(ASSIGNED_POD_DELETE)
    scene.queue.flush(102.0)
    scene.fail(scene.pop(), frozenset(), error=True)
    assert scene.metrics.moves == [
        ("active", "UnscheduledPodAdd"),
        ("unschedulable", "ScheduleAttemptFailure"),
        ("backoff", "AssignedPodDelete"),
        ("active", "BackoffComplete"),
        ("backoff", "ScheduleAttemptFailure"),
    ]


def test_rejections_are_counted_by_plugin_and_profile_until_the_next_attempt(scene):
    scene.reject("a", FIT | {"Colour"})
    scene.reject("b", FIT, scheduler_name="other")
    scene.add("c", gates=["g"])
    assert scene.metrics.rejected() == {
        ("Fit", "bayplan"): 1,
        ("Colour", "bayplan"): 1,
        ("Fit", "other"): 1,
        ("SchedulingGates", "bayplan"): 1,
    }
    scene.bring_back()
    assert scene.metrics.rejected()["Fit", "bayplan"] == 1
    scene.pop()
    assert ("Fit", "bayplan") not in scene.metrics.rejected()
