import asyncio

import msgspec
import pytest
from tests.controller.kubernetes_api import PODS, Meanwhile, pod
from tests.faults.faults import Garbage, Refuse, Reset
from tests.waiting import until

from bayplan.api.objects import Pod
from bayplan.cache.pod_info import PodInfo
from bayplan.controller.assumed_pods import AssumedPods


class Scene:
    """A check between a server and a dict that stands for the assumed pods."""

    def __init__(self, server, client):
        self.server = server
        self.assumed = {}
        self.ended = []
        self.check = AssumedPods(client, assumed=lambda: list(self.assumed.values()), ended=self._ended)

    def _ended(self, gone):
        self.ended.append(gone.metadata.name)
        del self.assumed[gone.metadata.uid]

    def bound(self, name):
        stored = self.server.put(PODS, pod(name, nodeName="n1"))
        info = PodInfo(msgspec.convert(stored, Pod))
        self.assumed[info.uid] = info

    def finish(self, name, phase="Succeeded"):
        stored = self.server.objects[PODS][f"default/{name}"]
        self.server.put(PODS, {**stored, "status": {"phase": phase}})

    async def rounds(self, count):
        for _ in range(count):
            await self.check.once()


@pytest.fixture
def scene(server, client):
    return Scene(server, client)


async def test_a_pod_that_runs_is_left_to_the_watch(scene):
    scene.bound("a")
    await scene.rounds(3)
    assert scene.ended == []


async def test_a_pod_is_asked_about_once_it_stayed_assumed_for_a_round(scene):
    scene.bound("a")
    scene.server.delete(PODS, "default/a")
    await scene.rounds(1)
    assert (scene.ended, scene.server.requests) == ([], [])
    await scene.rounds(2)
    assert scene.ended == ["a"]


@pytest.mark.parametrize("end", ["Succeeded", "Failed", "recreated"])
async def test_a_pod_that_ended_unseen_gives_its_room_back(scene, end):
    scene.bound("a")
    if end == "recreated":
        scene.server.delete(PODS, "default/a")
        scene.server.put(PODS, pod("a"))
    else:
        scene.finish("a", end)
    await scene.rounds(2)
    assert scene.ended == ["a"]


@pytest.mark.parametrize("fault", [Refuse(500), Refuse(403), Reset(), Garbage(), Garbage(b"{}")], ids=repr)
async def test_no_answer_leaves_a_pod_as_it_is(scene, fault):
    scene.bound("a")
    scene.server.delete(PODS, "default/a")
    scene.server.inject(fault, path="/pods/a")
    await scene.rounds(2)
    assert scene.ended == []
    await scene.rounds(1)
    assert scene.ended == ["a"]


async def test_a_pod_the_watch_shows_while_the_answer_is_on_its_way_is_the_watchs(scene):
    scene.bound("a")
    scene.finish("a")
    scene.server.inject(Meanwhile(scene.assumed.clear), path="/pods/a")
    await scene.rounds(2)
    assert scene.ended == []


async def test_a_name_no_path_can_hold_does_not_raise(scene):
    scene.bound("..")
    await scene.rounds(3)
    assert scene.ended == []


async def test_it_goes_on_for_ever(scene):
    scene.bound("a")
    scene.finish("a")
    running = asyncio.create_task(scene.check.run(0.001))
    await until(lambda: scene.ended)
    running.cancel()
