"""Which pods an idle scheduler tries before their back-off is over: of those that are alike, one."""

import pytest
from tests.queue.scene import FIT, Scene, info, make_profile
from tests.queue_checks import assert_consistent

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, NODE_CONDITION, NODE_TAINT
from bayplan.queue.queued_pod import SubQueue


def colour_of(pod):
    return (pod.pod.metadata.labels or {}).get("colour")


@pytest.fixture
def scene():
    """A queue whose profile takes pods of one colour for alike."""
    return Scene(profile=make_profile(shape=colour_of))


def back_off(scene, *names, **fields):
    """Pods that were rejected and woken, and back off."""
    for name in names:
        scene.reject(name, **fields)
    scene.move(ASSIGNED_POD_DELETE)
    assert {scene.sub_queue(name) for name in names} == {SubQueue.BACKOFF}


def reject_next(scene):
    queued = scene.pop()
    scene.fail(queued, FIT, as_its_kind=True)
    return queued.pod_info.name


def test_where_one_pod_of_a_kind_is_rejected_the_others_wait_for_the_end_of_their_back_off(scene):
    back_off(scene, "a", "b", "c", colour="red")
    assert reject_next(scene) == "a"
    assert not scene.queue.has_ready()
    assert scene.queue.pop() is None
    assert scene.queue.pending()["backoff"] == 2
    scene.wait(2)
    assert scene.drain() == ["b", "c"]


def test_what_happens_has_one_more_of_the_kind_tried(scene):
    back_off(scene, "a", "b", "c", colour="red")
    reject_next(scene)
    scene.move(NODE_TAINT)
    assert reject_next(scene) == "b"
    assert not scene.queue.has_ready()


def test_what_nobody_registered_for_is_no_news(scene):
    back_off(scene, "a", "b", colour="red")
    reject_next(scene)
    scene.move(NODE_CONDITION)
    assert not scene.queue.has_ready()


def test_when_one_of_the_kind_is_placed_the_next_is_tried(scene):
    back_off(scene, "a", "b", "c", "d", colour="red")
    reject_next(scene)
    assert not scene.queue.has_ready()
    scene.move(NODE_TAINT)
    scene.queue.done(scene.pop().uid)
    assert scene.pop().pod_info.name == "c"


@pytest.mark.parametrize(
    "other",
    [{"colour": "blue"}, {"colour": "red", "priority": -1}, {"colour": "red", "preemption_policy": "Never"}, {}],
    ids=["another shape", "another priority", "another preemption policy", "like no other"],
)
def test_a_pod_of_another_kind_is_tried(scene, other):
    scene.reject("other", **other)
    back_off(scene, "a", "b", colour="red", priority=0)
    names = [reject_next(scene), reject_next(scene)]
    assert sorted(names) == ["a", "other"]
    assert not scene.queue.has_ready()


def test_a_pod_that_is_nominated_is_tried(scene):
    back_off(scene, "a", "b", colour="red")
    reject_next(scene)
    assert not scene.queue.has_ready()
    scene.queue.nominate(scene.queue.newest("b"), "n1")
    assert scene.pop().pod_info.name == "b"


def test_a_pod_that_becomes_one_of_another_kind_is_tried(scene):
    back_off(scene, "a", "b", colour="red")
    reject_next(scene)
    assert not scene.queue.has_ready()
    scene.update(info("b", colour="blue", version="2"))
    assert scene.pop().pod_info.name == "b"


def test_a_rejection_that_may_be_of_that_pod_alone_holds_no_other_back(scene):
    back_off(scene, "a", "b", colour="red")
    scene.fail(scene.pop(), FIT)
    assert scene.pop().pod_info.name == "b"


def test_a_rejection_that_something_overtook_holds_no_other_back(scene):
    back_off(scene, "a", "b", colour="red")
    queued = scene.pop()
    scene.move(NODE_TAINT)
    scene.fail(queued, FIT, as_its_kind=True)
    assert {scene.pop().pod_info.name, scene.pop().pod_info.name} == {"a", "b"}


def test_pods_that_are_active_are_all_tried(scene):
    for name in ("a", "b"):
        scene.add(name, colour="red")
    assert [reject_next(scene), reject_next(scene)] == ["a", "b"]


def test_a_pod_that_waits_with_its_kind_can_be_deleted(scene):
    back_off(scene, "a", "b", "c", colour="red")
    reject_next(scene)
    assert not scene.queue.has_ready()
    scene.queue.delete("b")
    assert_consistent(scene.queue)
    scene.wait(2)
    assert scene.drain() == ["c"]


def test_pods_that_are_rejected_and_go_leave_nothing_behind(allocated):
    scene = Scene(profile=make_profile(shape=lambda pod: colour_of(pod) * 10_000))
    reject_and_delete(scene, range(10))
    before = allocated()
    reject_and_delete(scene, range(10, 110))
    assert allocated() - before < 100_000


def reject_and_delete(scene, numbers):
    """As many pods, each of a kind of its own, of which every second is deleted while it is tried again."""
    for number in numbers:
        scene.fail(scene.popped(f"p{number}", colour=f"c{number}"), FIT, as_its_kind=True)
        if number % 2:
            scene.update(info(f"p{number}", colour=f"d{number}", version="2"))
            scene.wait(300)
            queued = scene.pop()
            scene.queue.delete(queued.uid)
            scene.fail(queued, FIT, as_its_kind=True)
        scene.queue.delete(f"p{number}")
        assert_consistent(scene.queue)


def test_pods_that_are_rejected_and_placed_leave_nothing_behind(allocated):
    def place(numbers):
        for number in numbers:
            scene.fail(scene.popped(f"p{number}", colour=f"c{number}"), FIT, as_its_kind=True)
            scene.wait(300)
            scene.drain()

    scene = Scene(profile=make_profile(shape=lambda pod: colour_of(pod) * 10_000))
    place(range(10))
    before = allocated()
    place(range(10, 110))
    assert allocated() - before < 100_000


def test_others_of_the_kind_go_on_waiting_when_the_one_that_was_rejected_last_is_deleted(scene):
    for name in ("a", "b", "c"):
        scene.fail(scene.popped(name, colour="red"), FIT, as_its_kind=True)
    scene.move(ASSIGNED_POD_DELETE)
    assert reject_next(scene) == "a"
    assert not scene.queue.has_ready()
    scene.queue.delete("a")
    assert_consistent(scene.queue)
    assert not scene.queue.has_ready()


def test_a_kind_none_of_whose_rejected_pods_is_left_is_tried_again(scene):
    back_off(scene, "a", "b", "c", colour="red")
    assert reject_next(scene) == "a"
    assert not scene.queue.has_ready()
    scene.queue.delete("a")
    assert_consistent(scene.queue)
    assert reject_next(scene) == "b"
    assert not scene.queue.has_ready()
