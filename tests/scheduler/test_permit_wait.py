"""Permit plugins that have a pod wait: it keeps its room until its wait ends, in whatever way."""

import asyncio
from types import SimpleNamespace as Hook

import pytest
from tests.builders import make_pod_info
from tests.waiting import until

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, EventRegistration
from bayplan.framework.interface import Wait
from bayplan.framework.status import Code, Status
from bayplan.queue.queued_pod import SubQueue


def holding(name="Gang", seconds=600.0, only=None):
    """A Permit plugin that has pods wait."""
    return Hook(name=name, permit=lambda state, pod, node: Wait(seconds) if only in (None, pod.uid) else Status())


def waits(scene, uid="p"):
    return scene.framework.waiting_pods.get(uid)


async def settle(scene):
    """What was decided about a wait is done, and the binds that follow."""
    await asyncio.sleep(0)
    await scene.dispatcher.run()
    scene.check()


async def test_a_waiting_pod_keeps_its_room_and_is_bound_once_it_is_allowed(scene):
    scene.framework.permits = [holding()]
    await scene.first_attempt()
    await settle(scene)
    assert (scene.binder.bindings, scene.cache.node_of("p")) == ([], "n1")
    assert (waits(scene).node_name, waits(scene)._pending) == ("n1", {"Gang"})
    waits(scene).allow("Gang")
    await settle(scene)
    assert scene.binder.bindings == [("p", "n1")]
    assert (len(scene.framework.waiting_pods), scene.queue.get("p")) == (0, None)


async def test_every_plugin_that_asked_must_allow_it_and_those_that_passed_need_not(scene):
    passing = Hook(name="Free", permit=lambda *_: Status())
    scene.framework.permits = [holding("A"), passing, holding("B")]
    await scene.first_attempt()
    waiting = waits(scene)
    waiting.allow("A")
    waiting.allow("Free")
    await settle(scene)
    assert (waiting._pending, scene.binder.bindings) == ({"B"}, [])
    waiting.allow("B")
    assert not waiting.reject("B", "too late")
    await settle(scene)
    assert scene.binder.bindings == [("p", "n1")]


async def test_a_rejection_by_a_later_plugin_wins_over_a_wait(scene):
    refusing = Hook(name="Last", permit=lambda *_: Status(Code.UNSCHEDULABLE, ("not here",)))
    scene.framework.permits = [holding(), refusing]
    queued = await scene.first_attempt()
    assert (queued.rejector_plugins, len(scene.framework.waiting_pods)) == ({"Last"}, 0)
    assert scene.cache.node_of("p") is None


async def test_a_rejected_pod_gives_back_all_it_had_and_waits_for_an_event_of_the_plugin(scene):
    log = []
    scene.framework.reserves = [
        Hook(name="R", reserve=lambda *_: Status(), unreserve=lambda state, pod, node: log.append((pod.uid, node)))
    ]
    scene.framework.permits = [holding()]
    await scene.first_attempt()
    assert waits(scene).reject("Gang", "no company")
    # Nothing happens in the middle of what the plugin does.
    assert (log, scene.cache.node_of("p")) == ([], "n1")
    await settle(scene)
    assert (log, scene.cache.node_of("p")) == ([("p", "n1")], None)
    assert scene.said() == [("p", "FailedScheduling", "0/1 nodes are available: 1 no company.")]
    assert scene.dispatcher.patches == [("p", "Unschedulable", "0/1 nodes are available: 1 no company.")]
    assert scene.sub_queue_of() is SubQueue.UNSCHEDULABLE
    assert scene.queue.get("p").rejector_plugins == {"Gang"}


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0s"), (0.0015, "1.5ms")], ids=["none at all", "a little"])
async def test_a_pod_whose_time_is_up_is_rejected(scene, seconds, shown):
    scene.framework.permits = [holding(seconds=seconds), holding("Patient")]
    await scene.first_attempt()
    await until(lambda: not len(scene.framework.waiting_pods))
    await settle(scene)
    text = f"rejected due to timeout after waiting {shown} at plugin Gang"
    assert scene.said() == [("p", "FailedScheduling", f"0/1 nodes are available: 1 {text}.")]
    assert scene.queue.get("p").rejector_plugins == {"Gang"}


async def test_nobody_waits_longer_than_a_quarter_of_an_hour(scene):
    scene.framework.permits = [holding(seconds=float("inf"))]
    assert scene.framework.run_permit({}, make_pod_info(), "n1")[1] == {"Gang": 900.0}


@pytest.mark.parametrize(
    ("end", "result"),
    [
        (lambda scene: waits(scene).allow("Gang"), "Success"),
        (lambda scene: waits(scene).reject("Gang", "no company"), "Unschedulable"),
        (lambda scene: scene.pending.gone("p"), "Unschedulable"),
        (lambda scene: scene.scheduler.preemption.reject_waiting("p"), "Error"),
    ],
    ids=["allowed", "rejected", "deleted", "preempted"],
)
async def test_how_long_a_pod_waited_is_measured_by_how_its_wait_ended(scene, end, result):
    scene.framework.permits = [holding(), holding("Free", only="nobody")]
    await scene.first_attempt()
    scene.now += 2.5
    end(scene)
    scene.now += 1.0
    await settle(scene)
    assert scene.metrics.permit_waits == [(result, 2.5)]


async def test_a_pod_that_nobody_has_wait_is_not_measured_as_one_that_waits(scene):
    scene.framework.permits = [holding(only="another")]
    await scene.first_attempt()
    assert scene.metrics.permit_waits == []


async def test_room_that_a_rejected_pod_gave_back_wakes_others_but_not_the_pod_itself(scene):
    scene.profiles["bayplan"].registrations["Gang"] = [EventRegistration(ASSIGNED_POD_DELETE)]
    scene.framework.permits = [holding(only="p")]
    scene.node(cpu="1")
    scene.pod()
    await scene.attempt()
    scene.pod("q")
    await scene.attempt()
    assert scene.sub_queue_of("q") is SubQueue.UNSCHEDULABLE
    waits(scene).reject("Gang", "no company")
    await settle(scene)
    assert (scene.sub_queue_of("q"), scene.sub_queue_of("p")) == (SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE)


async def test_a_plugin_may_let_others_go_on_in_the_middle_of_an_attempt(scene):
    def permit(state, pod, node):
        waiting = [each.pod.uid for each in scene.framework.waiting_pods]
        if len(waiting) < 2:
            return Wait(600.0)
        for uid in waiting:
            scene.framework.waiting_pods.get(uid).allow("Gang")
        return Status()

    scene.framework.permits = [Hook(name="Gang", permit=permit)]
    scene.node()
    for name in ("a", "b", "c"):
        scene.pod(name)
        scene.step()
    await settle(scene)
    assert sorted(scene.binder.bindings) == [("a", "n1"), ("b", "n1"), ("c", "n1")]


async def test_a_waiting_pod_that_is_preempted_backs_off_as_after_an_error(scene):
    scene.framework.permits = [holding()]
    await scene.first_attempt()
    waiting = waits(scene)
    assert scene.scheduler.preemption.reject_waiting("p")
    assert scene.dispatcher.patches == [("p", "SchedulerError", "waiting on permit for pod: preempted")]
    assert (scene.sub_queue_of(), scene.cache.node_of("p")) == (SubQueue.ERROR_BACKOFF, None)
    waiting.allow("Gang")
    await settle(scene)
    assert scene.binder.bindings == []


async def test_what_is_said_of_a_wait_that_was_given_up_is_not_said_of_the_pods_next_one(scene):
    scene.framework.permits = [holding()]
    await scene.first_attempt()
    first = waits(scene)
    scene.scheduler.preemption.reject_waiting("p")
    scene.after(20.0)
    await scene.attempt()
    assert not first.reject("Gang", "no company")
    first.allow("Gang")
    await settle(scene)
    assert (scene.binder.bindings, waits(scene)._pending) == ([], {"Gang"})


async def test_a_waiting_pod_that_is_deleted_gives_its_room_back_at_once(scene):
    scene.framework.permits = [holding()]
    await scene.first_attempt()
    scene.pending.gone("p")
    await settle(scene)
    assert (scene.cache.node_of("p"), scene.queue.uids(), scene.said()) == (None, set(), [])


async def test_a_waiting_pod_whose_deletion_begins_gives_its_room_back_at_once(scene):
    scene.framework.permits = [holding()]
    await scene.first_attempt()
    scene.pod(resource_version="2", deleting=True)
    await settle(scene)
    assert (scene.cache.node_of("p"), scene.binder.bindings) == (None, [])
    assert scene.said() == [("p", "FailedScheduling", "0/1 nodes are available: 1 removed.")]
    assert scene.recorder.forgotten == ["p"]
    # What is written on it while it ends is no news.
    scene.pod(resource_version="3", deleting=True, labels={"a": "b"})
    assert scene.recorder.forgotten == ["p"]


async def test_at_the_end_nobodys_time_runs_out(scene):
    scene.framework.permits = [holding(seconds=0.001)]
    await scene.first_attempt()
    scene.scheduler.stop()
    await asyncio.sleep(0.01)
    await settle(scene)
    assert (len(scene.framework.waiting_pods), scene.said()) == (1, [])
