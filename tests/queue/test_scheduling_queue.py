import pytest
from tests.queue.scene import FIT, Clock, Scene, info, make_profile

from bayplan.queue.cluster_event import ASSIGNED_POD_DELETE
from bayplan.queue.queued_pod import Place
from bayplan.queue.scheduling_queue import SchedulingQueue


def test_pods_pop_by_priority_then_by_time():
    scene = Scene()
    scene.add("early")
    scene.clock.step(1)
    scene.add("late")
    scene.add("urgent", priority=10)
    scene.add("lazy", priority=-5)
    assert scene.drain() == ["urgent", "early", "late", "lazy"]


def test_pods_of_the_same_moment_pop_in_order_of_arrival():
    scene = Scene()
    names = [f"p{i}" for i in range(20)]
    for name in names:
        scene.add(name)
    assert scene.drain() == names


def test_a_sort_key_of_ones_own_decides_the_order():
    scene = Scene(sort_key=lambda pod, timestamp: (pod.name,))
    for name in "bca":
        scene.add(name)
    assert scene.drain() == ["a", "b", "c"]


def test_an_empty_queue_pops_nothing():
    scene = Scene()
    assert scene.queue.pop() is None
    assert not scene.queue.has_ready()
    assert scene.queue.next_deadline() is None
    assert scene.queue.pending() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}


def test_a_popped_pod_counts_its_attempts_and_is_in_no_queue():
    scene = Scene()
    scene.add("p")
    queued = scene.pop()
    assert queued.attempts == 1
    assert queued.place is None
    assert sum(scene.queue.pending().values()) == 0
    assert scene.queue.uids() == {"p"}
    scene.fail(queued)
    scene.queue.activate(["p"])
    assert scene.pop().attempts == 2


def test_a_pod_that_is_done_is_unknown():
    scene = Scene()
    scene.add("p")
    scene.queue.done(scene.pop().uid)
    scene.queue.done("p")
    assert scene.queue.uids() == set()
    assert scene.queue.get("p") is None


def test_a_recreated_pod_is_another_pod():
    scene = Scene()
    scene.add("p", uid="first")
    scene.queue.delete("first")
    scene.add("p", uid="second")
    assert scene.pop().uid == "second"
    assert scene.queue.pop() is None


def test_a_pod_of_no_profile_is_refused_by_name():
    scene = Scene()
    with pytest.raises(ValueError, match=r"default/p: no profile is named 'stranger'"):
        scene.add("p", scheduler_name="stranger")
    assert scene.queue.uids() == set()


def test_the_queue_needs_no_observer():
    queue = SchedulingQueue(clock=Clock(), profiles={"bayplan": make_profile()})
    queue.add(info("p"))
    queued = queue.pop()
    assert queued is not None
    queue.add_unschedulable(queued, rejector_plugins=FIT, error=False)
    assert queue.pending()["unschedulable"] == 1


# Failed attempts.


def test_a_rejected_pod_waits_for_an_event():
    scene = Scene()
    scene.reject("p")
    assert scene.place("p") is Place.UNSCHEDULABLE
    assert not scene.queue.has_ready()


def test_an_error_is_retried_after_backoff_and_never_sooner():
    scene = Scene()
    scene.add("p")
    scene.clock.now = 100.46
    scene.fail(scene.pop(), frozenset(), error=True)
    assert scene.place("p") is Place.ERROR_BACKOFF
    assert not scene.queue.has_ready()
    assert scene.queue.pop() is None
    assert scene.queue.next_deadline() == 102.0
    scene.queue.flush(101.99)
    assert scene.place("p") is Place.ERROR_BACKOFF
    scene.queue.flush(102.0)
    assert scene.place("p") is Place.ACTIVE
    assert scene.queue.next_deadline() is None


def test_a_failure_that_no_plugin_caused_counts_as_error():
    scene = Scene()
    scene.add("p")
    scene.fail(scene.pop(), frozenset(), error=False)
    assert scene.place("p") is Place.ERROR_BACKOFF


def test_the_plugins_of_an_error_are_not_asked():
    scene = Scene()
    scene.add("p")
    scene.fail(scene.pop(), FIT, error=True)
    assert scene.place("p") is Place.ERROR_BACKOFF
    assert scene.tally.current() == {}


def test_backoff_grows_with_rejections_and_errors_are_counted_apart():
    scene = Scene()
    scene.add("p")
    waits = []
    for error in (False, False, False, True, True, False, False):
        queued = scene.pop()
        scene.fail(queued, FIT, error=error)
        assert queued.backoff_expiration is not None
        waits.append(queued.backoff_expiration - scene.clock.now)
        scene.queue.activate(["p"])
    assert waits == [1, 2, 4, 1, 2, 8, 10]


def test_a_retried_pod_goes_behind_newcomers_of_its_priority():
    scene = Scene()
    scene.add("old")
    queued = scene.pop()
    scene.clock.step(1)
    scene.add("newcomer")
    scene.clock.step(1)
    scene.fail(queued)
    scene.queue.activate(["old"])
    assert scene.drain() == ["newcomer", "old"]


def test_a_retried_pod_goes_behind_newcomers_of_the_same_moment():
    scene = Scene()
    scene.add("old")
    queued = scene.pop()
    scene.add("newcomer")
    scene.fail(queued)
    scene.queue.activate(["old"])
    assert scene.drain() == ["newcomer", "old"]


def test_without_maximum_backoff_a_failed_pod_is_active_at_once():
    scene = Scene(max_backoff_seconds=0)
    scene.add("p")
    scene.fail(scene.pop(), frozenset(), error=True)
    assert scene.place("p") is Place.ACTIVE


def test_a_pod_handed_back_after_done_is_kept_and_tried_again():
    scene = Scene()
    scene.add("p")
    queued = scene.pop()
    scene.queue.done("p")
    scene.fail(queued)
    assert scene.place("p") is Place.BACKOFF


def test_a_pod_that_is_queued_again_already_is_not_taken_twice():
    scene = Scene()
    pod = scene.add("p")
    queued = scene.pop()
    scene.queue.done("p")
    scene.queue.add(pod)
    scene.fail(queued)
    assert scene.drain() == ["p"]


# Back-off and idle time.


def test_an_idle_scheduler_takes_a_rejected_pod_before_its_backoff_ends():
    scene = Scene()
    pod = scene.reject("p")
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    assert scene.place("p") is Place.BACKOFF
    assert scene.queue.has_ready()
    assert scene.pop().pod_info is pod
    assert ("active", "PopFromBackoffQ") in scene.tally.moves


def test_a_busy_scheduler_leaves_pods_in_backoff():
    scene = Scene()
    scene.reject("urgent", priority=10)
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    scene.add("plain")
    assert scene.pop().pod_info.name == "plain"


def test_pods_whose_backoff_ends_in_the_same_second_come_back_by_priority():
    scene = Scene()
    scene.add("first")
    scene.add("low")
    scene.add("high", priority=5)
    scene.clock.now = 100.1
    for queued in [scene.pop(), scene.pop(), scene.pop()]:
        scene.clock.step(0.1)
        scene.fail(queued)
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    assert scene.queue.pending()["backoff"] == 3
    assert scene.drain() == ["high", "first", "low"]


def test_an_event_after_the_backoff_makes_the_pod_active_at_once():
    scene = Scene()
    scene.reject("p")
    scene.clock.step(2)
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    assert scene.place("p") is Place.ACTIVE


def test_the_next_deadline_is_the_earliest_of_all_waits():
    scene = Scene()
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
    scene.clock.step(59.9)
    scene.queue.flush(scene.clock.now)
    assert scene.place("p") is Place.UNSCHEDULABLE
    scene.clock.step(0.1)
    scene.queue.flush(scene.clock.now)
    scene.queue.validate()
    assert scene.place("p") is Place.ACTIVE
    assert scene.tally.moves[-1] == ("active", "UnschedulableTimeout")


def test_a_gated_pod_never_times_out():
    scene = Scene()
    scene.add("p", gates=["g"])
    assert scene.queue.next_deadline() is None
    scene.clock.step(10_000)
    scene.queue.flush(scene.clock.now)
    assert scene.place("p") is Place.GATED


def test_a_backoff_longer_than_the_time_limit_still_holds():
    scene = Scene(initial_backoff_seconds=100, max_backoff_seconds=100, max_in_unschedulable_seconds=10.0)
    scene.reject("p")
    scene.clock.step(10)
    scene.queue.flush(scene.clock.now)
    assert scene.place("p") is Place.BACKOFF


# Activation.


def test_activation_ignores_backoff():
    scene = Scene()
    scene.add("error")
    scene.fail(scene.pop(), frozenset(), error=True)
    scene.reject("rejected")
    scene.queue.activate(["error", "rejected", "unknown"])
    scene.queue.validate()
    assert scene.place("error") is Place.ACTIVE
    assert scene.place("rejected") is Place.ACTIVE


def test_activation_does_not_open_a_gate():
    scene = Scene()
    scene.add("p", gates=["g"])
    scene.queue.activate(["p"])
    assert scene.place("p") is Place.GATED


def test_a_pod_activated_in_flight_does_not_wait_for_another_event():
    scene = Scene()
    scene.add("p")
    scene.add("bystander")
    first, second = scene.pop(), scene.pop()
    scene.queue.activate(["p"])
    scene.fail(first)
    scene.fail(second)
    assert scene.place("p") is Place.BACKOFF
    assert scene.place("bystander") is Place.UNSCHEDULABLE


# Deletion.


def test_a_deleted_pod_never_pops_wherever_it_was():
    scene = Scene()
    scene.add("gated", gates=["g"])
    scene.reject("unschedulable")
    scene.add("error")
    scene.fail(scene.pop(), frozenset(), error=True)
    scene.reject("backoff")
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    scene.add("active")
    for uid in ("gated", "unschedulable", "error", "backoff", "active", "unknown"):
        scene.queue.delete(uid)
        scene.queue.validate()
    assert scene.queue.uids() == set()
    assert scene.tally.current() == {}
    scene.queue.flush(10_000)
    assert scene.drain() == []


def test_a_pod_deleted_in_flight_does_not_come_back():
    scene = Scene()
    scene.add("p")
    queued = scene.pop()
    scene.queue.delete("p")
    assert scene.queue.uids() == set()
    assert scene.queue.get("p") is None
    scene.fail(queued, frozenset(), error=True)
    assert sum(scene.queue.pending().values()) == 0


def test_a_pod_seen_again_after_its_deletion_in_flight_comes_back():
    scene = Scene()
    pod = scene.add("p")
    queued = scene.pop()
    scene.queue.delete("p")
    scene.queue.add(pod)
    scene.fail(queued)
    assert scene.place("p") is Place.UNSCHEDULABLE


# The observer.


def test_every_move_is_reported_with_its_event():
    scene = Scene()
    scene.reject("p")
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    scene.queue.flush(102.0)
    scene.fail(scene.pop(), frozenset(), error=True)
    scene.queue.activate(["p"])
    assert scene.tally.moves == [
        ("active", "UnschedulablePodAdd"),
        ("unschedulable", "ScheduleAttemptFailure"),
        ("backoff", "AssignedPodDelete"),
        ("active", "BackoffComplete"),
        ("backoff", "ScheduleAttemptFailure"),
        ("active", "ForceActivate"),
    ]


def test_rejections_are_counted_by_plugin_and_profile_until_the_next_attempt():
    scene = Scene()
    scene.reject("a", FIT | {"Colour"})
    scene.reject("b", FIT, scheduler_name="other")
    scene.add("c", gates=["g"])
    assert scene.tally.current() == {
        ("Fit", "bayplan"): 1,
        ("Colour", "bayplan"): 1,
        ("Fit", "other"): 1,
        ("SchedulingGates", "bayplan"): 1,
    }
    scene.queue.activate(["a"])
    assert scene.tally.current()["Fit", "bayplan"] == 1
    scene.pop()
    assert ("Fit", "bayplan") not in scene.tally.current()


# Nominations.


def test_a_pod_that_comes_with_a_nomination_has_it():
    scene = Scene()
    scene.queue.add(info("p", nominated="n1"))
    assert scene.queue.nominator.nominated_node("p") == "n1"


def test_a_nomination_follows_the_status_of_a_waiting_pod_and_dies_with_it():
    scene = Scene()
    scene.queue.add(info("p"))
    scene.queue.update(None, info("p", version="2", nominated="n1"))
    assert scene.queue.nominator.nominated_node("p") == "n1"
    scene.queue.update(None, info("p", version="3", nominated="n2"))
    assert scene.queue.nominator.nominated_node("p") == "n2"
    scene.queue.delete("p")
    assert scene.queue.nominator.nominated_node("p") is None


def test_a_status_that_comes_late_does_not_nominate_a_pod_in_flight():
    scene = Scene()
    scene.queue.add(info("p", nominated="n1"))
    scene.queue.pop()
    scene.queue.placed("p", "n1")
    scene.queue.update(None, info("p", version="2", nominated="n1"))
    assert scene.queue.nominator.nominated_node("p") is None
    scene.queue.done("p")
    assert scene.queue.nominator.nominated_node("p") is None


def test_a_pod_handed_back_has_the_nomination_its_newest_status_names():
    scene = Scene()
    scene.queue.add(info("p"))
    queued = scene.queue.pop()
    newest = info("p", version="2", nominated="n1")
    scene.queue.update(None, newest)
    scene.queue.add_unschedulable(queued, rejector_plugins=FIT, error=False)
    assert scene.queue.nominator.nominated_pods_for_node("n1") == [newest]
