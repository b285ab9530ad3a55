"""A changed configuration under a queue that goes on."""

from tests.queue.scene import COLOUR, Scene, make_profile
from tests.queue_checks import assert_consistent

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, NODE_CONDITION, EventRegistration
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.queue.queue_settings import QueueSettings, priority_sort
from bayplan.queue.queued_pod import SubQueue

ALL = ("bayplan", "other")


def take_over(scene, changed=ALL, *, profile=None, sort_key=priority_sort, initial=1, maximum=10):
    profiles = {"bayplan": profile or make_profile(), "other": make_profile()}
    scene.queue.take_over(QueueSettings(profiles, sort_key, initial, maximum), changed)
    assert_consistent(scene.queue)


def held(pod):
    return Status(Code.UNSCHEDULABLE, ("not yet",), "Holiday")


def histories(scene):
    """What the queue remembers of each pod, wherever it stands."""
    return {
        uid: (q.attempts, q.timestamp, q.initial_attempt_timestamp, q.unschedulable_count, q.backs_off_until)
        for uid in scene.queue.uids()
        if (q := scene.queue.get(uid))
    }


def fill(scene):
    """A pod in every part of the queue, one in flight and one being bound, and a nomination."""
    scene.reject("waits")
    scene.reject("coloured", COLOUR, colour="red")
    scene.reject("strange", scheduler_name="other")
    scene.break_off("broken")
    scene.add("gated", gates=["g"])
    scene.popped("tried")
    scene.popped("bound")
    scene.queue.begin_bind("bound")
    scene.add("fresh")
    scene.queue.nominate(scene.queue.get("waits").pod_info, "n1")


def test_no_pod_is_lost_and_each_keeps_its_history_and_its_nomination(scene):
    fill(scene)
    before = histories(scene)
    assert len(before) == 8
    take_over(scene)
    assert histories(scene) == before
    assert scene.queue.nominator.nominated_node("waits") == "n1"
    assert {uid: scene.sub_queue(uid) for uid in before} == {
        "waits": SubQueue.BACKOFF,
        "coloured": SubQueue.BACKOFF,
        "strange": SubQueue.BACKOFF,
        "broken": SubQueue.ERROR_BACKOFF,
        "gated": SubQueue.GATED,
        "tried": None,
        "bound": None,
        "fresh": SubQueue.ACTIVE,
    }


def test_where_no_profile_changed_nothing_moves(scene):
    fill(scene)
    before = {uid: scene.sub_queue(uid) for uid in scene.queue.uids()}
    take_over(scene, (), initial=5)
    assert {uid: scene.sub_queue(uid) for uid in scene.queue.uids()} == before


def test_only_pods_of_changed_profiles_are_tried_again(scene):
    scene.reject("waits")
    scene.reject("strange", scheduler_name="other")
    take_over(scene, ["other"])
    assert (scene.sub_queue("waits"), scene.sub_queue("strange")) == (SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF)


def test_a_pod_whose_back_off_is_over_is_active_at_once(scene):
    scene.reject("waits")
    scene.wait(5)
    take_over(scene)
    assert scene.sub_queue("waits") is SubQueue.ACTIVE
    assert scene.metrics.moves[-1] == ("active", "ConfigurationChange")


def test_a_pod_held_by_a_gate_that_is_gone_is_active(scene):
    scene.add("gated", gates=["g"])
    take_over(scene, profile=make_profile(pre_enqueue=lambda pod: SUCCESS))
    assert scene.sub_queue("gated") is SubQueue.ACTIVE


def test_a_new_gate_holds_pods_that_are_queued_already(scene):
    scene.reject("waits")
    scene.add("fresh")
    take_over(scene, profile=make_profile(pre_enqueue=held))
    assert (scene.sub_queue("fresh"), scene.sub_queue("waits")) == (SubQueue.GATED, SubQueue.GATED)
    assert scene.queue.get("fresh").gating_message == "not yet"


def test_a_pod_in_flight_that_a_plugin_of_before_rejects_does_not_wait_for_it(scene):
    queued = scene.popped("tried")
    take_over(scene)
    scene.fail(queued, frozenset({"Gone"}))
    assert scene.sub_queue("tried") is SubQueue.BACKOFF


def test_a_pod_popped_afterwards_waits_as_always(scene):
    first = scene.popped("first")
    take_over(scene)
    second = scene.popped("second")
    scene.fail(second)
    assert scene.sub_queue("second") is SubQueue.UNSCHEDULABLE
    scene.fail(first)
    third = scene.popped("third", priority=9)
    scene.move(ASSIGNED_POD_DELETE)
    scene.fail(third)
    assert scene.sub_queue("third") is SubQueue.BACKOFF


def test_events_wake_by_what_the_new_plugins_registered(scene):
    scene.move(NODE_CONDITION)
    take_over(scene, profile=make_profile(registrations={"Fit": [EventRegistration(NODE_CONDITION)]}))
    scene.reject("waits")
    scene.move(ASSIGNED_POD_DELETE)
    assert scene.sub_queue("waits") is SubQueue.UNSCHEDULABLE
    scene.move(NODE_CONDITION)
    assert scene.sub_queue("waits") is SubQueue.BACKOFF


def test_new_back_offs_count_from_the_next_failure_on(scene):
    scene.break_off("before")
    until = scene.queue.get("before").backs_off_until
    take_over(scene, initial=60, maximum=60)
    scene.break_off("after")
    assert scene.queue.get("before").backs_off_until == until
    assert scene.queue.get("after").backs_off_until == scene.clock() + 61


def test_pods_stand_in_the_new_order():
    scene = Scene()
    for name in ("a", "b", "c"):
        scene.add(name)
        scene.clock.step(1)
    take_over(scene, sort_key=lambda pod, timestamp: (-timestamp,))
    assert scene.drain() == ["c", "b", "a"]


def test_pods_of_a_kind_that_was_rejected_are_tried_again():
    scene = Scene(profile=make_profile(shape=lambda pod: "alike"))
    for name in ("a", "b"):
        scene.reject(name)
    scene.move(ASSIGNED_POD_DELETE)
    scene.fail(scene.pop(), as_its_kind=True)
    assert scene.queue.pop() is None, "the other is of its kind"
    take_over(scene)
    assert {scene.pop().uid, scene.pop().uid} == {"a", "b"}
