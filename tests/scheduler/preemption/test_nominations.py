"""Nominations: when they are written, when they end, and what becomes of the pods that had them."""

import gc
import weakref

import pytest
from tests.builders import make_node, make_pod_info
from tests.scheduler.preemption.scene import preempt

from bayplan.api.errors import AmbiguousError
from bayplan.framework.candidate import Candidate
from bayplan.queue.queued_pod import SubQueue


@pytest.mark.parametrize("answer", [403, 404, AmbiguousError("lost")], ids=repr)
async def test_no_victim_ends_if_the_nomination_cannot_be_written(scene, answer):
    scene.api.answers["PATCH", "p"] = [answer] * 4
    await preempt(scene)
    assert {name for _, name in scene.api.order()} == {"p"}
    assert scene.nominated() is None
    assert scene.sub_queue_of() is SubQueue.ERROR_BACKOFF


async def test_lower_nominations_on_the_node_are_cleared_and_their_pods_woken(scene):
    await preempt(scene, uid="low", priority=1)
    await preempt(scene, uid="same", priority=10, node="n1")
    assert scene.nominated("low") is None
    assert scene.api.bodies("PATCH", "low")[-1] == {
        "metadata": {"uid": "low"},
        "status": {"nominatedNodeName": None},
    }
    assert scene.sub_queue_of("low") is SubQueue.BACKOFF
    await preempt(scene, uid="peer", priority=10, node="n1")
    assert (scene.nominated("same"), scene.nominated("peer")) == ("n1", "n1")


async def test_lower_nominations_stay_where_all_victims_end_already(scene):
    scene.place("ending", "n1", cpu="0", deleting=True)
    await preempt(scene, "ending", uid="low", priority=1)
    await preempt(scene, "ending", uid="high", priority=10)
    assert (scene.nominated("low"), scene.nominated("high")) == ("n1", "n1")
    await preempt(scene, "ending", "low-n1", uid="higher", priority=20)
    assert (scene.nominated("low"), scene.nominated("higher")) == (None, "n1")


async def test_nominations_of_other_schedulers_pods_are_not_theirs_to_clear(scene):
    scene.queue.nominator.add(make_pod_info("foreign", uid="foreign", priority=1), "n1")
    await preempt(scene)
    assert scene.nominated("foreign") == "n1"
    assert "foreign" not in {name for _, name in scene.api.order()}


async def test_a_pod_whose_node_is_taken_by_a_higher_one_spares_the_victims_not_begun(scene):
    scene.api.close("PATCH", "low")
    await preempt(scene, uid="low", priority=1)
    scene.place("another", "n1", cpu="0")
    scene.chooser.nominations["p"] = ("n1", "another")
    scene.pod()
    scene.step()
    scene.api.open("PATCH", "low")
    await scene.work()
    assert scene.api.deleted() == ["another"]
    assert [body["status"]["nominatedNodeName"] for body in scene.api.bodies("PATCH", "low")] == ["n1", None]
    assert scene.sub_queue_of("low") is SubQueue.BACKOFF


async def test_a_pod_that_time_alone_may_help_is_tried_again_at_its_time(scene):
    scene.chooser.otherwise, scene.chooser.retry_after = None, 30.0
    scene.pod()
    scene.step()
    assert scene.sub_queue_of() is SubQueue.UNSCHEDULABLE
    assert scene.queue.next_deadline() == 30


async def test_a_preemption_that_waits_for_its_turn_keeps_no_other_node_that_was_compared(scene):
    scene.api.close("PATCH", "p")
    scene.chooser.candidates = (Candidate("n2", (make_pod_info("other"),)),)
    scene.chooser.nominations["p"] = ("n1", "low-n1")
    compared = weakref.ref(scene.chooser.candidates[0])
    scene.pod()
    scene.step()
    scene.chooser.candidates = ()
    gc.collect()
    assert (compared(), scene.nominated()) == (None, "n1")
    scene.api.open("PATCH", "p")
    await scene.work()
    assert scene.api.deleted() == ["low-n1"]


def broken(*_):
    raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("chooser", "nominated", "reason", "written"),
    [
        ({"otherwise": ""}, None, "Unschedulable", {"nominatedNodeName": None}),
        ({"otherwise": None}, "n1", "Unschedulable", {}),
        ({"post_filter": broken}, None, "SchedulerError", {"nominatedNodeName": None}),
    ],
    ids=["cleared without a candidate", "left alone", "cleared by an error"],
)
async def test_an_earlier_nomination_ends_with_the_condition_unless_preemption_leaves_it_alone(
    scene, chooser, nominated, reason, written
):
    vars(scene.chooser).update(chooser)
    scene.pod(nominated="n1")
    assert scene.nominated() == "n1"
    await scene.attempt()
    assert scene.nominated() == nominated
    (body,) = scene.api.bodies("PATCH", "p")
    (condition,) = body["status"].pop("conditions")
    assert (condition["reason"], body["status"]) == (reason, written)


async def test_a_nomination_to_a_node_that_goes_away_is_cleared_and_the_pod_tried_again(scene):
    await preempt(scene)
    scene.nodes.on_delete(make_node("n1", cpu="1"))
    scene.scheduler.preemption.sweep()
    await scene.work()
    assert scene.nominated() is None
    assert scene.api.bodies("PATCH", "p")[-1]["status"] == {"nominatedNodeName": None}
    assert scene.sub_queue_of() is SubQueue.BACKOFF


async def test_a_nomination_to_a_node_that_goes_while_victims_end_is_cleared_once_the_pod_is_back(scene):
    scene.api.close("DELETE", "low-n1")
    await preempt(scene)
    scene.nodes.on_delete(make_node("n1", cpu="1"))
    scene.scheduler.preemption.sweep()
    assert (scene.nominated(), scene.sub_queue_of()) == ("n1", None)
    scene.api.open("DELETE", "low-n1")
    await scene.work()
    scene.scheduler.preemption.sweep()
    await scene.work()
    assert scene.nominated() is None
    assert scene.api.bodies("PATCH", "p")[-1]["status"] == {"nominatedNodeName": None}


async def test_a_nomination_to_a_node_that_may_still_come_is_left_alone(scene):
    """Others nominate, too; after a restart the pod's own attempt says what becomes of its nomination."""
    scene.pod("kept", nominated="n1")
    scene.pod("early", nominated="n9")
    scene.scheduler.preemption.sweep()
    await scene.work()
    assert (scene.nominated("kept"), scene.nominated("early")) == ("n1", "n9")
    assert scene.api.order() == []
    scene.node("n9", cpu="1")
    scene.scheduler.preemption.sweep()
    scene.nodes.on_delete(make_node("n9", cpu="1"))
    scene.scheduler.preemption.sweep()
    await scene.work()
    assert (scene.nominated("kept"), scene.nominated("early")) == ("n1", None)
    assert scene.api.order() == [("PATCH", "early")]


async def test_a_pod_that_gets_another_node_leaves_its_room_to_others(scene):
    await preempt(scene)
    scene.pod("waiting", priority=5)
    await scene.attempt()
    assert scene.sub_queue_of("waiting") is SubQueue.UNSCHEDULABLE
    scene.node("n3", cpu="1")
    await scene.attempt()
    assert scene.binder.bindings == [("p", "n3")]
    assert scene.nominated() is None
    assert scene.sub_queue_of("waiting") is SubQueue.BACKOFF
