"""An event, or a second that comes, moves very many pods in steps; the pods tried and their order stay the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_node
from tests.queue.scene import COLOUR, FIT, Scene, info, make_profile
from tests.queue_checks import assert_consistent

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, NODE_ADD, NODE_CONDITION, NODE_TAINT
from bayplan.queue.queue_settings import QueueSettings, priority_sort
from bayplan.queue.queued_pod import SubQueue

PODS = [f"p{i}" for i in range(5)]


def colour_of(pod):
    return (pod.pod.metadata.labels or {}).get("colour")


@pytest.fixture
def scene():
    """A queue that moves two pods in one go."""
    return Scene(step=2)


def names_in(scene, *sub_queues):
    return [name for name in PODS if scene.sub_queue(name) in sub_queues]


def test_an_event_moves_a_step_of_pods_and_each_flush_another(scene):
    for name in PODS:
        scene.reject(name)
    assert not scene.queue.is_moving
    scene.move(ASSIGNED_POD_DELETE)
    assert names_in(scene, SubQueue.BACKOFF) == PODS[:2]
    assert scene.queue.is_moving
    assert scene.queue.flush(scene.clock())
    assert names_in(scene, SubQueue.BACKOFF) == PODS[:4]
    assert not scene.queue.flush(scene.clock())
    assert names_in(scene, SubQueue.BACKOFF) == PODS
    assert not scene.queue.is_moving


def test_pods_that_are_not_asked_yet_are_something_to_do_at_once(scene):
    for name in PODS:
        scene.reject(name, COLOUR, colour="red")
    scene.wait(15)
    scene.move(NODE_ADD, {"blue"})
    assert scene.queue.pending()["active"] == 0
    assert scene.queue.has_ready()
    assert scene.queue.next_deadline() == scene.clock()
    scene.settle()
    assert not scene.queue.has_ready()
    assert scene.queue.next_deadline() > scene.clock()


def test_an_event_that_comes_meanwhile_waits_its_turn(scene):
    for name in PODS[:4]:
        scene.reject(name, COLOUR, colour="red")
    scene.reject("p4", FIT)
    scene.move(NODE_ADD, {"red"})
    scene.move(NODE_TAINT)
    assert scene.sub_queue("p4") is SubQueue.UNSCHEDULABLE
    scene.settle()
    assert [event for _, event in scene.metrics.moves[-5:]] == [NODE_ADD.label] * 4 + [NODE_TAINT.label]


def test_an_event_that_concerns_no_waiting_pod_takes_no_turn(scene, allocated):
    for name in PODS:
        scene.reject(name)
    scene.move(ASSIGNED_POD_DELETE)
    before = allocated()
    for serial in range(1000):
        scene.move(NODE_ADD, frozenset({f"{serial}" * 100}))
    assert allocated() - before < 2**15
    scene.queue.flush(scene.clock())
    scene.queue.flush(scene.clock())
    assert not scene.queue.is_moving


def test_what_waits_for_its_turn_has_a_bound_and_nothing_is_lost_beyond_it(allocated):
    scene = Scene(step=2, kept_move_bytes=2**18)
    for name in PODS:
        scene.reject(name, COLOUR, colour="red")
    scene.reject("last", FIT)
    scene.move(NODE_ADD, {"blue"})
    scene.move(NODE_TAINT)
    before = allocated()
    for serial in range(1000):
        node = make_node("n", labels={f"example.com/label-{i}": f"{serial}" for i in range(10)})
        scene.queue.move_all(NODE_ADD, None, ["blue", node])
    assert_consistent(scene.queue)
    assert allocated() - before < 2**18
    assert scene.sub_queue("last") is SubQueue.BACKOFF
    assert scene.queue.is_moving
    scene.settle()
    assert names_in(scene, SubQueue.UNSCHEDULABLE) == PODS


def test_a_pod_that_failed_after_the_event_is_not_asked_about_it(scene):
    """Its attempt knew of the event, or heard of it when the pod was handed back."""
    for name in PODS[:3]:
        scene.reject(name)
    scene.move(ASSIGNED_POD_DELETE)
    assert scene.queue.is_moving
    scene.reject("later")
    scene.settle()
    assert scene.sub_queue("later") is SubQueue.UNSCHEDULABLE
    assert names_in(scene, SubQueue.BACKOFF) == PODS[:3]


def test_a_pod_in_flight_hears_of_an_event_whose_turn_has_not_come(scene):
    in_flight = scene.popped("tried")
    for name in PODS:
        scene.reject(name, COLOUR, colour="red")
    scene.move(NODE_ADD, {"blue"})
    scene.move(NODE_TAINT)
    scene.fail(in_flight, FIT)
    assert scene.sub_queue("tried") is SubQueue.BACKOFF


def test_a_pod_deleted_before_it_was_asked_is_left_out(scene):
    for name in PODS:
        scene.reject(name)
    scene.move(ASSIGNED_POD_DELETE)
    scene.queue.delete("p3")
    scene.settle()
    assert names_in(scene, SubQueue.BACKOFF) == ["p0", "p1", "p2", "p4"]


def test_ends_of_back_offs_come_in_steps_and_then_in_order_of_priority(scene):
    for priority, name in enumerate(PODS):
        scene.reject(name, priority=priority)
    scene.move(ASSIGNED_POD_DELETE)
    scene.settle()
    scene.clock.step(15)
    assert scene.queue.flush(scene.clock())
    assert len(names_in(scene, SubQueue.ACTIVE)) == 2
    assert scene.queue.next_deadline() <= scene.clock()
    scene.settle()
    assert scene.drain() == PODS[::-1]


def test_the_time_limit_moves_pods_in_steps(scene):
    for name in PODS:
        scene.reject(name)
    scene.clock.step(1000)
    assert scene.queue.flush(scene.clock())
    assert names_in(scene, SubQueue.ACTIVE) == PODS[:2]
    scene.settle()
    assert names_in(scene, SubQueue.ACTIVE) == PODS


def test_an_idle_queue_looks_for_a_pod_worth_a_try_in_steps():
    scene = Scene(step=2, profile=make_profile(shape=colour_of))
    for name in PODS:
        scene.reject(name, colour="red")
    scene.reject("other", colour="blue")
    scene.move(ASSIGNED_POD_DELETE)
    scene.settle()
    scene.fail(scene.pop(), FIT, as_its_kind=True)
    assert scene.queue.pop() is None, "found within a step"
    assert scene.queue.has_ready()
    assert scene.queue.next_deadline() == scene.clock()
    scene.settle()
    assert scene.pop().pod_info.name == "other"
    assert not scene.queue.has_ready()
    assert scene.queue.next_deadline() > scene.clock()


def test_events_that_were_under_way_end_by_the_configuration_they_came_in(scene):
    for name in PODS:
        scene.reject(name)
    scene.move(ASSIGNED_POD_DELETE)
    profiles = {"bayplan": make_profile(), "other": make_profile()}
    scene.queue.take_over(QueueSettings(profiles, priority_sort, 1, 10), {"other"})
    scene.settle()
    assert names_in(scene, SubQueue.BACKOFF) == PODS


# The same as without steps.

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(PODS), st.integers(0, 2), st.sampled_from(["red", "blue"])),
        st.tuples(st.just("delete"), st.sampled_from(PODS)),
        st.tuples(st.just("move"), st.sampled_from([ASSIGNED_POD_DELETE, NODE_TAINT, NODE_CONDITION]), st.just(None)),
        st.tuples(st.just("move"), st.just(NODE_ADD), st.sampled_from([("red",), ("blue",), ("red", "blue")])),
        st.tuples(st.just("reject"), st.sampled_from([FIT, COLOUR, FIT | COLOUR])),
        st.tuples(st.just("hand back"), st.sampled_from([FIT, COLOUR])),
        st.tuples(st.just("wait"), st.sampled_from([0.3, 1.0, 2.5, 40.0])),
    ),
    max_size=60,
)


class InSteps(Scene):
    """A queue that is settled before a pod is popped, as the scheduling loop does."""

    def __init__(self, step):
        super().__init__(step=step, max_in_unschedulable_seconds=30.0, profile=make_profile(shape=colour_of))
        self.tried = []
        self.popped_now = None

    def perform(self, kind, *how):
        if kind == "add":
            name, priority, colour = how
            if self.queue.get(name) is None and self.popped_now is None:
                self.queue.add(info(name, priority=priority, colour=colour))
        elif kind == "delete":
            self.queue.delete(*how)
        elif kind == "move":
            self.move(*how)
        elif kind == "wait":
            self.clock.step(*how)
        elif kind == "hand back" and self.popped_now is not None:
            self.fail(self.popped_now, *how)
            self.popped_now = None
        elif kind == "reject" and self.popped_now is None:
            self.settle()
            self.popped_now = self.queue.pop()
            self.tried.append(self.popped_now and self.popped_now.pod_info.name)
        assert_consistent(self.queue)


@given(steps=STEPS, step=st.integers(1, 3))
def test_steps_change_neither_the_pods_that_are_tried_nor_their_order(steps, step):
    stepwise, at_once = InSteps(step), InSteps(10**6)
    for each in steps:
        stepwise.perform(*each)
        at_once.perform(*each)
    stepwise.settle()
    at_once.settle()
    assert stepwise.tried == at_once.tried
    assert {name: stepwise.sub_queue(name) for name in PODS} == {name: at_once.sub_queue(name) for name in PODS}
