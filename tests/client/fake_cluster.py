"""An API server with a Lease, pods, a ServiceAccount's tokens and port-forwards to a scheduler's port."""

import asyncio
import json
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web

LEASE = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/bayplan"
TOKEN = "/api/v1/namespaces/{}/serviceaccounts/bayplan-reader/token"
POD = "/api/v1/namespaces/{}/pods/{}"
FORWARD = "/api/v1/namespaces/{}/pods/{}/portforward"


@dataclass
class FakeCluster:
    """`answers` are status and object by path; `port` is where a port-forward leads. It remembers what was asked."""

    port: int = 0
    answers: dict = field(default_factory=dict)
    forward_status: int = 101
    tokens: list = field(default_factory=list)
    forwards: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    url: str = ""

    def lease(self, holder, namespace="bayplan-system", account="bayplan", **spec):
        """A Lease, and the pod that holds it."""
        self.answers[LEASE.format(namespace)] = (200, {"spec": {"holderIdentity": holder, **spec}})
        pod = POD.format(namespace, holder.rpartition("_")[0])
        self.answers[pod] = (200, {"spec": {"serviceAccountName": account}})

    def account(self, token, namespace="bayplan-system"):
        self.answers[TOKEN.format(namespace)] = (201, {"status": {"token": token}})

    async def __aenter__(self):
        app = web.Application()
        app.router.add_get("/api/v1/namespaces/{ns}/pods/{pod}/portforward", self._forward)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_):
        await self._runner.cleanup()

    async def _answer(self, request):
        self.asked.append((request.method, request.path, await request.text()))
        status, body = self.answers.get(request.path, (404, {"reason": "NotFound", "message": "not found"}))
        if request.path.endswith("/token"):
            self.tokens.append(json.loads(self.asked[-1][2]))
        return web.json_response(body, status=status)

    async def _forward(self, request):
        self.forwards.append((request.match_info["ns"], request.match_info["pod"], request.query["ports"]))
        if self.forward_status != 101:
            return web.json_response({"message": "no"}, status=self.forward_status)
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        for channel in (0, 1):
            await socket.send_bytes(bytes([channel]) + (10259).to_bytes(2, "little"))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError as error:
            await socket.send_bytes(b"\x01" + f"error forwarding port: {error}".encode())
            await socket.close()
            return socket

        async def down():
            while data := await reader.read(65536):
                await socket.send_bytes(b"\0" + data)
            await socket.close()

        pumping = asyncio.create_task(down())
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                writer.write(message.data[1:])
                await writer.drain()
        pumping.cancel()
        writer.close()
        return socket
