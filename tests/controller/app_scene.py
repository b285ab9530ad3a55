"""A fake API server and a whole scheduler process that runs against it."""

import asyncio
import json

import aiohttp
from tests.controller.kubernetes_api import NODES, PODS, node, pod

from bayplan.api.credentials import Credentials
from bayplan.config.load import default_configuration
from bayplan.controller.app import App
from bayplan.controller.build import build
from bayplan.server.options import ServingOptions


class Cluster:
    """A fake API server, and an App that runs against it."""

    def __init__(self, server):
        self.server = server

    def start(self, *nodes, pods=(), configuration=None, source=None, heeds_other_leases=False, **options):
        for name in nodes:
            self.server.put(NODES, node(name))
        for name in pods:
            self.server.put(PODS, pod(name))
        configuration, credentials = configuration or default_configuration(), Credentials(server=self.server.url)
        serving = ServingOptions(secure_port=None, http_port=0)
        self.app = App(
            build(configuration, credentials, source, serving=serving, heeds_other_leases=heeds_other_leases, **options)
        )
        self.running = asyncio.create_task(self.app.run())

    def node_of(self, name):
        return self.server.objects[PODS][f"default/{name}"]["spec"].get("nodeName")

    def condition_of(self, name):
        for found in self.server.objects[PODS][f"default/{name}"]["status"].get("conditions", ()):
            return found["reason"]
        return None

    def bindings(self):
        return [seen for seen in self.server.requests if seen.path.endswith("/binding")]

    def notes(self):
        posted = [seen for seen in self.server.requests if seen.method == "POST" and seen.path.endswith("/events")]
        return [json.loads(seen.body)["note"] for seen in posted]

    async def get(self, path):
        """The status and the text of an endpoint."""
        url = f"http://127.0.0.1:{self.app.parts.serving.port}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status, await answer.text()

    async def ready(self):
        """Whether readyz says so; False while nothing is served."""
        return bool(self.app.parts.serving.port) and (await self.get("/readyz"))[0] == 200

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
