import asyncio
from types import SimpleNamespace

import msgspec
import pytest
from tests.controller.kubernetes_api import PODS, Meanwhile, pod
from tests.faults.faults import BlackHole, Garbage, Refuse, Reset
from tests.scheduler.writes.running import running
from tests.waiting import until

from bayplan.api.objects import Pod
from bayplan.cache.pod_info import PodInfo
from bayplan.controller.assumed_pods import LONGEST_BIND_SECONDS, AssumedPods


class Scene:
    """A check between a server and a dict that stands for the assumed pods."""

    def __init__(self, server, client):
        self.server = server
        self.assumed = {}
        self.ended, self.unbound, self.now = [], [], 0.0
        self.looked_through = 0
        self.check = AssumedPods(
            client,
            SimpleNamespace(assumed_pods=self._assumed, is_assumed=lambda uid: uid in self.assumed),
            SimpleNamespace(is_binding=lambda uid: False, never_bound=lambda pod: self.unbound.append(pod.name)),
            SimpleNamespace(changed=lambda pod: None),
            remove=self._ended,
            clock=lambda: self.now,
        )

    def _assumed(self):
        self.looked_through += 1
        return list(self.assumed.values())

    def _ended(self, gone):
        self.ended.append(gone.metadata.name)
        del self.assumed[gone.metadata.uid]

    def bound(self, name):
        stored = self.server.put(PODS, pod(name, nodeName="n1"))
        info = PodInfo(msgspec.convert(stored, Pod))
        self.assumed[info.uid] = info

    def bind(self, name, node):
        stored = self.server.objects[PODS][f"default/{name}"]
        self.server.put(PODS, {**stored, "spec": {**stored["spec"], "nodeName": node}})

    def finish(self, name, phase="Succeeded"):
        stored = self.server.objects[PODS][f"default/{name}"]
        self.server.put(PODS, {**stored, "status": {"phase": phase}})

    async def rounds(self, count, seconds=0.0):
        """So many checks, `seconds` after each other."""
        for _ in range(count):
            self.now += seconds
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


async def test_all_assumed_pods_are_looked_through_once_a_round_however_many_there_are(scene):
    for number in range(20):
        scene.bound(f"p{number}")
    await scene.rounds(3)
    assert len(scene.server.requests) == 40
    assert scene.looked_through == 3


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


async def test_a_pod_shown_without_a_node_for_longer_than_a_bind_can_take_is_given_back(scene):
    scene.bound("a")
    scene.bind("a", "")
    await scene.rounds(10, 20.0)
    assert scene.unbound == [], "a bind may still land"
    await scene.rounds(1, 20.0)
    assert (scene.unbound, scene.ended) == (["a"], [])


async def test_a_bind_that_lands_late_keeps_its_room(scene):
    scene.bound("a")
    scene.bind("a", "")
    await scene.rounds(9, 20.0)
    scene.bind("a", "n1")
    await scene.rounds(1, 20.0)
    scene.bind("a", "")
    await scene.rounds(9, 20.0)
    assert scene.unbound == []


@pytest.mark.parametrize("fault", [Refuse(500), Garbage(b"{}")], ids=repr)
async def test_no_answer_is_none_that_shows_the_pod_without_a_node(scene, fault):
    scene.bound("a")
    scene.server.inject(fault, path="/pods/a", times=100)
    await scene.rounds(30, 20.0)
    assert scene.unbound == []


@pytest.mark.parametrize("in_flight", [False, True], ids=["known to nobody", "in flight"])
async def test_a_pod_that_nobody_binds_is_scheduled_again(in_flight):
    async with running(nodes=[("n1", "1")]) as scene:
        check = scene.parts.assumed_pods
        # As if its bind had been lost: it is counted on the node, and nobody sees it through.
        lost = PodInfo(msgspec.convert(scene.pod("lost"), Pod))
        if in_flight:
            scene.queue.add(lost)
            scene.queue.pop()
        scene.cache.assume_pod(lost, "n1")
        await scene.pods("waits")
        now = 0.0
        check.clock = lambda: now
        for _ in range(3):
            await check.once()
        assert (scene.node_of("lost"), scene.node_of("waits")) == (None, None)
        now += LONGEST_BIND_SECONDS
        await check.once()
        await until(lambda: len(scene.bound()) == 1)
        # The node has room for one of them; the other waits.
        await until(lambda: len(scene.queue.uids()) == 1)


async def test_a_pod_whose_bind_is_under_way_is_left_to_it():
    async with running((BlackHole(), {"path": "/binding"}), nodes=[("n1", "1")]) as scene:
        await scene.pods("slow")
        await until(scene.cache.assumed_pods)
        check, now = scene.parts.assumed_pods, 0.0
        check.clock = lambda: now
        for _ in range(3):
            await check.once()
            now += LONGEST_BIND_SECONDS
        assert [pod.name for pod in scene.cache.assumed_pods()] == ["slow"]
