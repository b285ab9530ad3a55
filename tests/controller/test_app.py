import asyncio
import contextlib
import gc
import json
import logging
import os
import signal

import aiohttp
import pytest
from tests.controller.kubernetes_api import NODES, PODS, KubernetesApi, node, pod
from tests.faults.faults import Delay

from bayplan.api.credentials import Credentials
from bayplan.config.load import default_configuration
from bayplan.controller.app import App, ServeOptions

EVENTS = "/apis/events.k8s.io/v1/events"


@pytest.fixture(autouse=True)
def _as_it_was():
    """What a process does once is undone: frozen objects, log levels, signal handlers."""
    names = ("kopf", "kopf.objects", "kopf.activities")
    levels = {name: logging.getLogger(name).level for name in names}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    gc.unfreeze()
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
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
        listener = self.app._server._listener
        if listener is None:
            return False
        port = listener.sockets[0].getsockname()[1]
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/readyz") as answer:
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
            await made.app._operator.join(10)


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
        await c.until(lambda: c.app.cache.sizes().assumed_pods == 0)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await c.exit_code() == 0
        assert c.node_of("stranger") is None
        assert {"Successfully assigned default/waiting to n1", "Successfully assigned default/huge to big"} <= set(
            c.notes()
        )
        assert any(note.startswith("0/1 nodes are available: 1 Insufficient cpu. preemption: ") for note in c.notes())
        assert c.app.queue.uids() == set()
        c.app.cache.validate()


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


@pytest.mark.parametrize("error", [RuntimeError("bug"), None], ids=["raises", "returns"])
async def test_it_exits_1_when_a_part_that_must_not_end_does(monkeypatch, caplog, error):
    async with cluster("n1") as c:

        async def end():
            if error is not None:
                raise error

        monkeypatch.setattr(c.app.scheduler, "run", end)
        assert await c.exit_code() == 1
        assert "ending because a part failed" in caplog.text
        assert (repr(error) if error else "scheduler ended") in caplog.text


async def test_the_departure_of_a_pod_is_kopfs_to_tell_until_the_pod_has_a_node():
    async with cluster("n1", pods=["waiting"]) as c:
        uid = c.server.objects[PODS]["default/waiting"]["metadata"]["uid"]
        assert not c.app._pending.departed(uid)
        c.server.inject(Delay(0.3), method="POST", path="/binding")
        await c.until(lambda: any(seen.path.endswith("/binding") for seen in c.server.requests))
        assert c.app._pending.departed(uid), "while its bind is under way"
        await c.until(lambda: c.node_of("waiting") == "n1" and c.app.cache.sizes().assumed_pods == 0)
        assert c.app._pending.departed(uid)
        assert c.app.queue.uids() == set()
