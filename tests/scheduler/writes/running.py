"""All parts of `bayplan run` but kopf, on an API server that may be slow, and the writes it saw of each pod."""

import asyncio
import json
from collections import defaultdict
from contextlib import asynccontextmanager

from tests.controller.kubernetes_api import NODES, PODS, KubernetesApi, node, pod
from tests.waiting import until

from bayplan.api.credentials import Credentials
from bayplan.config.load import default_configuration
from bayplan.controller import build


class Running:
    """A scheduler at work; `server` is its API server."""

    def __init__(self, server):
        self.server = server
        self.parts = build.build(default_configuration(), Credentials(server=server.url))
        self.queue, self.cache = self.parts.scheduler.queue, self.parts.scheduler.cache
        self.dispatcher = self.parts.scheduler.dispatcher

    def node(self, name, cpu):
        self.server.put(NODES, node(name, cpu=cpu))

    def pod(self, name, **spec):
        return self.server.put(PODS, pod(name, **spec))

    async def pods(self, *names, **spec):
        """Pods come, as the intake's list finds them."""
        for name in names:
            self.pod(name, **spec)
        assert await self.parts.intake_list.fill()

    def node_of(self, name):
        return self.server.objects[PODS][f"default/{name}"]["spec"].get("nodeName")

    def bound(self):
        return {
            stored["metadata"]["name"]
            for stored in self.server.objects[PODS].values()
            if stored["spec"].get("nodeName")
        }

    def patches(self):
        return [seen for seen in self.server.requests if seen.method == "PATCH" and seen.path.endswith("/status")]

    def events(self):
        return [seen for seen in self.server.requests if seen.method == "POST" and seen.path.endswith("/events")]

    def writes_by_pod(self):
        """What was written about each pod, in order of arrival: "bind", "condition", or the reason of an Event."""
        writes = defaultdict(list)
        for seen in self.server.requests:
            if seen.method == "POST" and seen.path.endswith("/events"):
                event = json.loads(seen.body)
                writes[event["regarding"]["name"]].append(event["reason"])
            elif "/pods/" in seen.path and seen.method in {"POST", "PATCH"}:
                name = seen.path.split("/pods/")[1].split("/")[0]
                writes[name].append("bind" if seen.method == "POST" else "condition")
        return writes


@asynccontextmanager
async def running(*faults, nodes=()):
    """A scheduler whose caches are filled; `faults` are (fault, options of `inject`), `nodes` (name, cpu)."""
    async with KubernetesApi() as server:
        made = Running(server)
        for fault, options in faults:
            server.inject(fault, **{"times": 10**9, **options})
        for name, cpu in nodes:
            made.node(name, cpu)
        work = [asyncio.create_task(each) for each in made.parts.watches.work().values()]
        await until(lambda: made.parts.watches.synced)
        work.append(asyncio.create_task(made.parts.scheduler.run()))
        try:
            yield made
        finally:
            made.parts.scheduler.stop()
            await made.dispatcher.drain(binds_seconds=0.1, calls_seconds=0.1)
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            for client in made.parts.clients:
                await client.close()
