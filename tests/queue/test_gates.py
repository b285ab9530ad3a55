"""Pods that a plugin holds before the queue."""

from tests.queue.scene import Scene, info, make_profile

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, NODE_TAINT, EventRegistration, QueueingHint
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.queue.queued_pod import SubQueue


def test_a_gated_pod_waits_until_its_gates_are_gone(scene):
    scene.add("p", gates=["a", "b"])
    queued = scene.queue.get("p")
    assert queued.sub_queue is SubQueue.GATED
    assert (queued.gating_plugin, queued.gating_message) == ("SchedulingGates", "waiting for 2 gates")
    assert scene.queue.pop() is None
    scene.update(info("p", version="2", gates=["b"]))
    assert queued.gating_message == "waiting for 1 gates"
    assert scene.queue.pending()["gated"] == 1
    scene.update(info("p", version="3"))
    assert queued.gating_plugin is None
    assert scene.pop() is queued
    assert scene.metrics.moves == [
        ("unschedulable", "UnscheduledPodAdd"),
        ("active", "TargetPodUpdatePodSchedulingGatesEliminated"),
    ]


def test_the_clock_of_the_first_attempt_starts_when_the_gate_opens(scene):
    scene.add("p", gates=["g"])
    queued = scene.queue.get("p")
    assert queued.initial_attempt_timestamp is None
    scene.clock.step(30)
    scene.update(info("p", version="2"))
    assert queued.initial_attempt_timestamp == 130.0
    assert queued.timestamp == 100.0
    scene.clock.step(5)
    scene.fail(scene.pop())
    scene.bring_back()
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
        if pod.name not in self.held:
            return SUCCESS
        return Status(Code.UNSCHEDULABLE, ("victims are leaving",), "Preemption")


def test_a_rejected_pod_may_be_gated_when_it_wants_to_come_back():
    room = ReservedRoom()
    scene = Scene(profile=room.profile)
    scene.reject("p")
    room.held.add("p")
    scene.move(ASSIGNED_POD_DELETE)
    assert scene.sub_queue("p") is SubQueue.GATED
    room.held.clear()
    scene.update(info("p", version="2"))
    assert scene.sub_queue("p") is SubQueue.BACKOFF


def test_a_gated_pod_moves_by_events_of_its_gating_plugin_when_its_rejectors_agree():
    room = ReservedRoom()
    scene = Scene(profile=room.profile)
    scene.reject("p")
    room.held.add("p")
    scene.move(NODE_TAINT)
    assert scene.sub_queue("p") is SubQueue.GATED
    room.held.clear()
    scene.move(NODE_TAINT)
    assert scene.sub_queue("p") is SubQueue.GATED
    scene.move(ASSIGNED_POD_DELETE)
    assert scene.sub_queue("p") is SubQueue.BACKOFF


def test_the_wait_of_a_gated_pod_for_its_gate_does_not_end_by_time():
    room = ReservedRoom()
    scene = Scene(profile=room.profile)
    scene.reject("p")
    room.held.add("p")
    scene.wait(300)
    assert scene.sub_queue("p") is SubQueue.GATED
    assert scene.queue.next_deadline() is None


def test_a_gate_that_raises_holds_the_pod_until_it_can_answer(caplog):
    answers = [RuntimeError("broken gate"), SUCCESS]

    def gate(pod):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    scene = Scene(profile=make_profile(pre_enqueue=gate))
    scene.add("p")
    assert scene.sub_queue("p") is SubQueue.GATED
    assert "PreEnqueue failed, pod is held back pod=default/p" in caplog.text
    scene.update(info("p", version="2"))
    assert scene.sub_queue("p") is SubQueue.ACTIVE
