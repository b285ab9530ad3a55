import asyncio
import contextlib
import gc
import json
import os
import signal

import aiohttp
import kopf
import pytest
from tests.controller.kubernetes_api import NODES, PODS, KubernetesApi, node, pod
from tests.faults.faults import Delay, RequestFault, StreamBytes

from bayplan.api.credentials import Credentials
from bayplan.config.load import default_configuration
from bayplan.controller.app import App, ServeOptions

EVENTS = "/apis/events.k8s.io/v1/events"


@pytest.fixture(autouse=True)
def _as_it_was():
    """What a process does once is undone: frozen objects, signal handlers."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    gc.unfreeze()
    for number, handler in handlers.items():
        signal.signal(number, handler)


class Cluster:
    """A fake API server, and an App that runs against it."""

    def __init__(self, server):
        self.server = server
        self.app = App(default_configuration(), Credentials(server=server.url), ServeOptions("127.0.0.1", 0))
        self.running = asyncio.create_task(self.app.run())

    def node_of(self, name):
        return self.server.objects[PODS][f"default/{name}"]["spec"].get("nodeName")

    def condition_of(self, name):
        for found in self.server.objects[PODS][f"default/{name}"]["status"].get("conditions", ()):
            return found["reason"]
        return None

    def notes(self):
        posted = [seen for seen in self.server.requests if seen.method == "POST" and seen.path.endswith("/events")]
        return [json.loads(seen.body)["note"] for seen in posted]

    async def ready(self):
        """Whether readyz says so; False while nothing is served."""
        if not self.app.port:
            return False
        url = f"http://127.0.0.1:{self.app.port}/readyz"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status == 200

    async def until(self, condition):
        async with asyncio.timeout(30):
            while not condition():
                assert not self.running.done(), "it ended by itself"
                await asyncio.sleep(0.005)

    async def until_ready(self):
        async with asyncio.timeout(30):
            while not await self.ready():  # noqa: ASYNC110  asked over HTTP
                await asyncio.sleep(0.01)

    async def exit_code(self):
        async with asyncio.timeout(60):
            return await self.running


@contextlib.asynccontextmanager
async def cluster(*nodes, pods=()):
    async with KubernetesApi() as server:
        for name in nodes:
            server.put(NODES, node(name))
        for name in pods:
            server.put(PODS, pod(name))
        made = Cluster(server)
        try:
            yield made
        finally:
            made.running.cancel()
            await asyncio.gather(made.running, return_exceptions=True)


async def test_it_starts_becomes_ready_binds_and_exits_0_when_told():
    async with cluster("n1", pods=["waiting"]) as c:
        await c.until_ready()
        await c.until(lambda: c.node_of("waiting") == "n1")
        c.server.put(PODS, pod("next"))
        c.server.put(PODS, pod("huge", cpu="64"))
        c.server.put(PODS, pod("stranger", scheduler="default-scheduler"))
        await c.until(lambda: c.node_of("next") == "n1" and c.condition_of("huge") == "Unschedulable")
        c.server.put(NODES, node("big", cpu="128"))
        await c.until(lambda: c.node_of("huge") == "big")
        await c.until(lambda: c.app.parts.cache.sizes().assumed_pods == 0)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await c.exit_code() == 0
        assert c.node_of("stranger") is None
        assert {"Successfully assigned default/waiting to n1", "Successfully assigned default/huge to big"} <= set(
            c.notes()
        )
        assert any(note.startswith("0/1 nodes are available: 1 Insufficient cpu. preemption: ") for note in c.notes())
        assert c.app.parts.queue.uids() == set()
        c.app.parts.cache.validate()


async def test_a_bind_under_way_is_finished_before_it_exits():
    async with cluster("n1") as c:
        await c.until_ready()
        c.server.inject(Delay(0.3), method="POST", path="/binding")
        c.server.put(PODS, pod("a"))
        await c.until(lambda: any(seen.path.endswith("/binding") for seen in c.server.requests))
        os.kill(os.getpid(), signal.SIGINT)
        assert await c.exit_code() == 0
        assert c.node_of("a") == "n1"
        assert c.notes() == ["Successfully assigned default/a to n1"]


async def test_a_stop_before_the_caches_are_filled_is_heeded():
    async with cluster("n1") as c:
        c.server.inject(Delay(3600), path=NODES, times=100)
        await c.until(lambda: c.server.requests)
        assert not await c.ready()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await c.exit_code() == 0


@pytest.mark.parametrize(
    "error", [RuntimeError("bug"), asyncio.CancelledError(), None], ids=["raises", "is cancelled by itself", "returns"]
)
async def test_it_exits_1_when_a_part_that_must_not_end_does(monkeypatch, caplog, error):
    async with cluster("n1") as c:

        async def end():
            if error is not None:
                raise error

        monkeypatch.setattr(c.app.parts.scheduler, "run", end)
        assert await c.exit_code() == 1
        assert "ending because a part failed" in caplog.text
        assert (repr(error) if isinstance(error, Exception) else "scheduler ended") in caplog.text


async def test_a_pod_that_kopf_tells_is_gone_while_its_bind_is_under_way_keeps_its_room_and_is_bound_once():
    class Told(RequestFault):
        """The binding happens, and its answer is late: the watch tells of the pod's departure first."""

        async def serve(self, request, act):
            answer = await act()
            await asyncio.sleep(0.3)
            return answer

    async with cluster("n1", pods=["waiting"]) as c:
        c.server.inject(Told(), method="POST", path="/binding")
        await c.until(lambda: c.node_of("waiting") == "n1")
        await c.until(lambda: c.app.parts.queue.uids() == set() or c.notes())
        assert c.app.parts.cache.sizes().pods == 1
        await c.until(c.notes)
        assert c.notes() == ["Successfully assigned default/waiting to n1"]
        assert len([seen for seen in c.server.requests if seen.path.endswith("/binding")]) == 1
        assert c.app.parts.queue.uids() == set()


async def test_pods_that_waited_are_placed_by_priority_although_kopf_does_not_start(monkeypatch):
    async def hang(*, stop_flag, **_):
        while not stop_flag.is_set():  # noqa: ASYNC110  it is another thread's
            await asyncio.sleep(0.01)

    monkeypatch.setattr(kopf, "operator", hang)
    async with cluster("n1") as c:
        for number in range(20):
            c.server.put(PODS, pod(f"p{number:02}", priority=number))
        await c.until(lambda: len(c.notes()) >= 4)
        bound = {name for name in (f"p{number:02}" for number in range(20)) if c.node_of(name)}
        assert bound == {"p16", "p17", "p18", "p19"}
        assert not await c.ready()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await c.exit_code() == 0


async def test_kopf_that_ends_is_survived_and_a_deletion_meanwhile_is_found():
    async with cluster("n1", pods=["fits"]) as c:
        c.server.put(PODS, pod("huge", cpu="64"))
        await c.until(lambda: c.condition_of("huge") == "Unschedulable" and c.node_of("fits") == "n1")
        await c.until_ready()
        watches = c.server.watches(PODS)
        c.server.inject(StreamBytes(b"garbage\n"), method="WATCH", path=PODS, times=3)
        c.server.end_watches()
        await c.until(lambda: c.app.parts.operator.restarts)
        c.server.delete(PODS, "default/huge")
        await c.until(lambda: c.app.parts.queue.uids() == set() and c.server.watches(PODS) > watches)
        c.server.put(PODS, pod("next"))
        await c.until(lambda: c.node_of("next") == "n1")
