"""What preemption does to its victims, and how the pod that takes their place waits for their end."""

import json

import msgspec
import pytest
from tests.scheduler.preemption.scene import preempt

from bayplan.api.errors import AmbiguousError
from bayplan.api.objects import Condition
from bayplan.api.response import ApiCall
from bayplan.cache.pod_info import PodInfo
from bayplan.queue.queued_pod import SubQueue

SAID = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": "bayplan: preempting to accommodate a higher priority pod",
}


def terminating(pod):
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z", resource_version="9")
    return msgspec.structs.replace(pod, metadata=metadata)


def many(scene, count):
    """The names of `count` more pods on n1."""
    names = [f"v{number:02}" for number in range(count)]
    for name in names:
        scene.place(name, "n1", cpu="0")
    return names


async def test_nomination_and_condition_come_in_one_request_before_any_victim_is_touched(scene):
    await preempt(scene)
    assert scene.api.order() == [("PATCH", "p"), ("PATCH", "low-n1"), ("DELETE", "low-n1")]
    (patch,) = scene.api.bodies("PATCH", "p")
    (condition,) = patch["status"]["conditions"]
    assert patch["status"]["nominatedNodeName"] == "n1"
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")


async def test_a_victim_is_told_why_and_ends_with_its_own_grace_period(scene):
    await preempt(scene)
    (patch,) = scene.api.bodies("PATCH", "low-n1")
    (condition,) = patch["status"]["conditions"]
    assert condition.pop("lastTransitionTime")
    assert (condition, patch["metadata"]) == (SAID, {"uid": "low-n1"})
    assert scene.api.bodies("DELETE", "low-n1") == [
        {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "low-n1"}}
    ]
    assert scene.recorder.preemptions == [("low-n1", "p", "n1", False)]
    assert (scene.metrics.victims, scene.metrics.attempts_at_preemption) == ([1], 1)
    assert (scene.metrics.executed, scene.metrics.budgets) == (["success"], [])


async def test_the_nomination_counts_at_once_and_the_pod_is_not_tried_while_calls_are_made(scene):
    scene.api.close("DELETE", "low-n1")
    await preempt(scene)
    assert scene.nominated() == "n1"
    scene.assigned.on_delete(scene.placed["low-n2"])
    scene.queue.flush(scene.now)
    assert scene.sub_queue_of() is None
    assert scene.queue.pop() is None
    scene.api.open("DELETE", "low-n1")
    await scene.work()
    # The event that came meanwhile is not lost.
    assert scene.sub_queue_of() is SubQueue.BACKOFF


async def test_the_pod_waits_for_its_victim_and_is_woken_by_its_end(scene):
    await preempt(scene)
    assert scene.sub_queue_of() is SubQueue.UNSCHEDULABLE
    scene.assigned.on_update(scene.placed["low-n1"], terminating(scene.placed["low-n1"]))
    assert scene.sub_queue_of() is SubQueue.UNSCHEDULABLE
    scene.assigned.on_delete(scene.placed["low-n1"])
    await scene.attempt()
    assert scene.binder.bindings == [("p", "n1")]
    assert scene.nominated() is None


async def test_other_pods_bind_while_victims_are_being_ended(scene):
    scene.api.close("DELETE", "low-n1")
    await preempt(scene)
    scene.node("n3", cpu="1")
    scene.pod("other", priority=0)
    await scene.attempt()
    assert scene.binder.bindings == [("other", "n3")]


async def test_victims_end_although_no_event_is_ever_answered(scene):
    scene.api.close("EVENT", "")
    for number in range(50):
        path = "/apis/events.k8s.io/v1/namespaces/default/events"
        scene.dispatcher.send(f"u{number}", ApiCall("POST", path, "an event", b"{}"))
    await scene.work()
    await preempt(scene)
    assert scene.api.deleted() == ["low-n1"]
    assert "EVENT" not in {kind for kind, _ in scene.api.order()}


async def test_victims_end_although_no_condition_of_another_pod_is_ever_answered(scene):
    others = [f"other{number}" for number in range(50)]
    scene.api.close("PATCH", *others)
    for name in others:
        scene.pod(name, cpu="64")
        scene.step()
    await scene.work()
    await preempt(scene)
    assert scene.api.deleted() == ["low-n1"]
    assert scene.api.order()[0] == ("PATCH", "p")


async def test_victims_that_end_already_are_not_ended_again(scene):
    scene.place("low-b", "n1", cpu="0")
    scene.assigned.on_update(scene.placed["low-n1"], terminating(scene.placed["low-n1"]))
    await preempt(scene, "low-n1", "low-b")
    assert scene.api.order() == [("PATCH", "p"), ("PATCH", "low-b"), ("DELETE", "low-b")]
    assert scene.metrics.victims == [2]


async def test_a_nomination_without_victims_left_to_end_is_only_written(scene):
    scene.assigned.on_update(scene.placed["low-n1"], terminating(scene.placed["low-n1"]))
    await preempt(scene)
    assert scene.api.order() == [("PATCH", "p")]
    assert scene.metrics.victims == []
    assert scene.sub_queue_of() is SubQueue.UNSCHEDULABLE


OTHER_UID = json.dumps({"kind": "Status", "details": {"causes": [{"field": "metadata.uid"}]}}).encode()
"""What a real API server answers to a patch with another UID than the pod's, in short."""


@pytest.mark.parametrize(
    ("call", "answer"),
    [("PATCH", 404), ("PATCH", 409), ("PATCH", (422, OTHER_UID)), ("DELETE", 404), ("DELETE", 409)],
)
async def test_a_victim_that_is_gone_or_was_recreated_counts_as_ended(scene, call, answer):
    scene.api.answers[call, "low-n1"] = [answer] * 9
    await preempt(scene)
    assert scene.nominated() == "n1"
    assert scene.recorder.preemptions == []
    assert scene.sub_queue_of() is SubQueue.UNSCHEDULABLE


@pytest.mark.parametrize("call", ["PATCH", "DELETE"])
@pytest.mark.parametrize("answer", [403, 422, 500, AmbiguousError("lost")], ids=repr)
async def test_a_victim_that_cannot_be_ended_costs_the_nomination_and_the_pod_backs_off(scene, call, answer):
    scene.api.answers[call, "low-n1"] = [answer] * 9
    await preempt(scene)
    assert scene.nominated() is None
    assert scene.sub_queue_of() is SubQueue.ERROR_BACKOFF
    last = scene.api.bodies("PATCH", "p")[-1]["status"]
    assert last["nominatedNodeName"] is None
    assert last["conditions"][0]["reason"] == "Unschedulable"
    assert scene.recorder.preemptions == []


async def test_victims_end_several_at_once_but_not_all(scene):
    victims = many(scene, 30)
    await preempt(scene, *victims)
    assert sorted(scene.api.deleted()) == victims
    assert scene.api.most == 8


async def test_a_preemptor_that_is_deleted_spares_the_victims_not_begun(scene):
    victims = many(scene, 20)
    scene.api.close("PATCH", *victims)
    await preempt(scene, *victims)
    scene.pending.gone("p")
    scene.api.open("PATCH", *victims)
    await scene.work()
    assert len(scene.api.deleted()) == 8
    assert (scene.queue.uids(), scene.nominated()) == (set(), None)


async def test_a_victim_of_two_preemptors_ends_once(scene):
    scene.api.close("DELETE", "low-n1")
    await preempt(scene, "low-n1")
    await preempt(scene, "low-n1", uid="q")
    assert scene.sub_queue_of("q") is None
    scene.api.open("DELETE", "low-n1")
    await scene.work()
    assert scene.api.deleted() == ["low-n1"]
    assert (scene.nominated("p"), scene.nominated("q")) == ("n1", "n1")
    assert scene.sub_queue_of("q") is SubQueue.UNSCHEDULABLE


def going(**metadata):
    """The answer to a deletion: the victim as it is now."""
    metadata = {"name": "low-n1", "uid": "low-n1", "deletionTimestamp": "2026-01-01", **metadata}
    return json.dumps({"metadata": metadata, "spec": {"nodeName": "n1"}}).encode()


GRACE_IS_OVER = {"deletionGracePeriodSeconds": 0}


async def test_a_victim_that_is_gone_with_the_answer_makes_room_before_the_watch_tells(scene):
    old = scene.placed["low-n1"]
    scene.api.answers["DELETE", "low-n1"] = [(200, going(**GRACE_IS_OVER))]
    await preempt(scene)
    assert scene.cache.node_of("low-n1") is None
    assert scene.sub_queue_of("p") in (SubQueue.BACKOFF, SubQueue.ACTIVE)
    scene.assigned.on_update(old, terminating(old))
    assert scene.cache.node_of("low-n1") is None, "what the watch still tells is old"
    scene.after(2.0)
    await scene.attempt()
    assert scene.binder.bindings == [("p", "n1")]
    scene.assigned.on_delete(terminating(old))
    scene.place("low-n1", "n2", cpu="0")
    assert scene.cache.node_of("low-n1") == "n2", "after its end nothing is held against a uid"


@pytest.mark.parametrize(
    "metadata",
    [{}, {"deletionGracePeriodSeconds": 1}, {**GRACE_IS_OVER, "finalizers": ["example.com/keep"]}],
    ids=["no word of grace", "grace", "finalizer"],
)
async def test_a_victim_that_is_only_going_terminates_before_the_watch_tells_and_keeps_its_room(scene, metadata):
    scene.api.answers["DELETE", "low-n1"] = [(200, going(**metadata))]
    await preempt(scene)
    assert scene.cache.node_of("low-n1") == "n1"
    assert scene.cache.pod("low-n1").pod.metadata.deletion_timestamp


async def test_a_victim_that_no_watch_has_shown_yet_stays_assumed_whatever_the_answer_tells(scene):
    """Else nobody would ask about a victim that ends in a gap of the watch, and its room would be held for ever."""
    scene.cache.forget_pod("low-n1")
    scene.assigned.on_delete(scene.placed["low-n1"])
    scene.cache.assume_pod(PodInfo(scene.placed["low-n1"]), "n1")
    scene.api.answers["DELETE", "low-n1"] = [(200, going())]
    await preempt(scene)
    assert scene.cache.pod("low-n1").pod.metadata.deletion_timestamp
    assert scene.cache.is_assumed("low-n1")


@pytest.mark.parametrize("reply", [b"", b"{", b"[]", b'{"kind":"Status"}', b'{"metadata":{"uid":"other"}}'])
async def test_an_answer_that_says_nothing_of_the_victim_changes_nothing(scene, reply):
    before = scene.cache.pod("low-n1")
    scene.api.answers["DELETE", "low-n1"] = [(200, reply)]
    await preempt(scene)
    assert scene.cache.pod("low-n1") is before


def preempt_unbound(scene):
    """A pod makes room where another one, "young", is assumed and not bound yet."""
    scene.node("n3", cpu="1")
    scene.pod("young", priority=0)
    scene.step()
    assert scene.cache.is_assumed("young")
    scene.chooser.nominations["p"] = ("n3", "young")
    scene.pod()
    scene.step()


async def test_a_victim_not_bound_yet_gives_its_room_back_without_being_deleted(scene):
    preempt_unbound(scene)
    await scene.work()
    assert (scene.binder.bindings, scene.cache.node_of("young")) == ([], None)
    assert scene.sub_queue_of("young") is SubQueue.ERROR_BACKOFF
    assert scene.recorder.preemptions == [("young", "p", "n3", True)]
    assert scene.api.deleted() == []
    await scene.attempt()
    assert scene.binder.bindings == [("p", "n3")]


async def test_a_rejected_bind_that_was_placed_anew_is_posted_once(scene):
    preempt_unbound(scene)
    scene.pending.gone("p")
    scene.after(15)
    await scene.attempt()
    assert scene.binder.bindings == [("young", "n3")]


async def test_a_condition_a_victim_carries_already_is_not_written_again(scene):
    scene.place("v", "n1", cpu="0", conditions=[Condition(**SAID)])
    await preempt(scene, "v")
    assert scene.api.order() == [("PATCH", "p"), ("DELETE", "v")]


async def test_under_strict_budgets_victims_are_evicted_one_by_one_and_told_why_afterwards(scene):
    scene.chooser.evicts = True
    scene.place("v", "n1", cpu="0")
    await preempt(scene, "low-n1", "v")
    ends = [("EVICT", "low-n1"), ("PATCH", "low-n1"), ("EVICT", "v"), ("PATCH", "v")]
    assert scene.api.order() == [("PATCH", "p"), *ends]
    (eviction,) = scene.api.bodies("EVICT", "v")
    assert eviction == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "v", "namespace": "default"},
        "deleteOptions": {"preconditions": {"uid": "v"}},
    }
    assert [uid for uid, *_ in scene.recorder.preemptions] == ["low-n1", "v"]


async def test_an_eviction_a_budget_refuses_withdraws_the_nomination_and_spares_the_rest(scene):
    scene.chooser.evicts = True
    scene.place("v", "n1", cpu="0")
    scene.api.answers["EVICT", "low-n1"] = [429]
    await preempt(scene, "low-n1", "v")
    assert scene.api.order() == [("PATCH", "p"), ("EVICT", "low-n1"), ("PATCH", "p")]
    assert scene.metrics.executed == ["error"]
    assert scene.nominated() is None
    assert scene.sub_queue_of() is SubQueue.ERROR_BACKOFF
