"""Room that a group makes: its victims end after the round, and the group is bound whole when they are gone."""

import pytest
from tests.group_builders import make_pod_group
from tests.scheduler.preemption.scene import Scene

from bayplan.api.objects import Condition
from bayplan.cache.group_members import GroupSource
from bayplan.queue.queued_pod import SubQueue

GROUP = make_pod_group(least=2, priority=10, uid="uid-of-g")


class GangScene(Scene):
    """A gang of two pods that need both nodes."""

    def __init__(self):
        super().__init__()
        self.framework.post_filters = [self.framework.plugins["DefaultPreemption"]]
        self.groups.serve(GroupSource.NATIVE)
        self.queue.set_group(GROUP)
        for name in ("a", "b"):
            self.pod(name, group="g")

    async def round(self):
        self.scheduler.schedule_one()
        while not self.scheduler.rounds.go_on(0):
            pass
        await self.work()

    def gone(self, name):
        self.assigned.on_delete(self.placed[name])


@pytest.fixture
async def scene():
    made = GangScene()
    yield made
    await made.dispatcher.drain(binds_seconds=0.0, calls_seconds=0.0)


async def test_victims_end_members_are_nominated_and_the_gang_runs_whole_once_they_are_gone(scene):
    await scene.round()
    assert sorted(scene.api.deleted()) == ["low-n1", "low-n2"]
    assert {scene.nominated("a"), scene.nominated("b")} == {"n1", "n2"}
    (written,) = scene.api.bodies("PATCH", "a")
    assert written["status"]["nominatedNodeName"] == scene.nominated("a")
    scene.gone("low-n1")
    assert scene.queue.pop() is None
    scene.gone("low-n2")
    await scene.round()
    assert sorted(uid for uid, _ in scene.binder.bindings) == ["a", "b"]


async def test_a_victim_is_told_that_a_group_needs_its_room_and_which(scene):
    await scene.round()
    (condition,) = scene.api.bodies("PATCH", "low-n1")[0]["status"]["conditions"]
    assert condition["message"] == "bayplan: preempting to accommodate a higher priority podgroup"
    assert ("low-n1", "uid-of-g", "cluster", False) in scene.recorder.preemptions


async def test_the_group_is_held_while_its_victims_are_told_to_end(scene):
    scene.api.close("DELETE", "low-n1")
    await scene.round()
    assert scene.queue.get("a").sub_queue is SubQueue.GATED
    scene.api.open("DELETE", "low-n1")
    await scene.work()
    assert scene.queue.get("a").sub_queue is SubQueue.ERROR_BACKOFF


async def test_victims_that_are_refused_give_the_room_back_and_the_group_backs_off(scene):
    scene.api.refuses["low-n1"] = 403
    await scene.round()
    assert (scene.nominated("a"), scene.nominated("b")) == (None, None)
    assert scene.queue.get("a").sub_queue is SubQueue.ERROR_BACKOFF
    assert scene.api.bodies("PATCH", "a")[-1]["status"]["nominatedNodeName"] is None


async def test_members_that_are_gone_spare_the_victims(scene):
    scene.api.close("PATCH", "low-n1", "low-n2")
    scene.scheduler.schedule_one()
    while not scene.scheduler.rounds.go_on(0):
        pass
    for name in ("a", "b"):
        scene.queue.delete(name)
    await scene.work()
    assert scene.api.deleted() == []


async def test_a_round_under_way_waits_for_victims_that_end_and_evicts_nobody_else(scene):
    await scene.round()
    ending = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    for node in ("n1", "n2"):
        scene.place(f"low-{node}", node, deleting=True, conditions=[ending])
    scene.after(3)
    await scene.round()
    assert {scene.nominated("a"), scene.nominated("b")} == {"n1", "n2"}
    assert sorted(scene.api.deleted()) == ["low-n1", "low-n2"]
