import asyncio
import contextlib

import msgspec
import pytest
from tests.controller.kubernetes_api import PODS, KubernetesApi, pod
from tests.faults.faults import Garbage, Refuse, RequestFault, Reset

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
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

    def recreate(self, name):
        self.server.delete(PODS, f"default/{name}")
        self.server.put(PODS, pod(name))

    async def rounds(self, count):
        for _ in range(count):
            await self.check.once()


@contextlib.asynccontextmanager
async def scene():
    async with KubernetesApi() as server:
        client = ApiClient(Credentials(server=server.url), qps=0, burst=1)
        try:
            yield Scene(server, client)
        finally:
            await client.close()


async def test_a_pod_that_runs_is_left_to_the_watch():
    async with scene() as s:
        s.bound("a")
        await s.rounds(3)
        assert s.ended == []


async def test_a_pod_is_asked_about_once_it_stayed_assumed_for_a_round():
    async with scene() as s:
        s.bound("a")
        s.server.delete(PODS, "default/a")
        await s.rounds(1)
        assert (s.ended, s.server.requests) == ([], [])
        await s.rounds(2)
        assert s.ended == ["a"]


@pytest.mark.parametrize("end", ["Succeeded", "Failed", "recreated"])
async def test_a_pod_that_ended_unseen_gives_its_room_back(end):
    async with scene() as s:
        s.bound("a")
        if end == "recreated":
            s.recreate("a")
        else:
            s.finish("a", end)
        await s.rounds(2)
        assert s.ended == ["a"]


@pytest.mark.parametrize("fault", [Refuse(500), Refuse(403), Reset(), Garbage(), Garbage(b"{}")], ids=repr)
async def test_no_answer_leaves_a_pod_as_it_is(fault):
    async with scene() as s:
        s.bound("a")
        s.server.delete(PODS, "default/a")
        s.server.inject(fault, path="/pods/a")
        await s.rounds(2)
        assert s.ended == []
        await s.rounds(1)
        assert s.ended == ["a"]


async def test_a_pod_the_watch_shows_while_the_answer_is_on_its_way_is_the_watchs():
    class Confirmed(RequestFault):
        async def serve(self, request, act):
            s.assumed.clear()
            return await act()

    async with scene() as s:
        s.bound("a")
        s.finish("a")
        s.server.inject(Confirmed(), path="/pods/a")
        await s.rounds(2)
        assert s.ended == []


async def test_a_name_no_path_can_hold_does_not_raise():
    async with scene() as s:
        s.bound("..")
        await s.rounds(3)
        assert s.ended == []


async def test_it_goes_on_for_ever():
    async with scene() as s:
        s.bound("a")
        s.finish("a")
        running = asyncio.create_task(s.check.run(0.001))
        async with asyncio.timeout(10):
            while not s.ended:  # noqa: ASYNC110  it has no event for tests
                await asyncio.sleep(0.001)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
