"""An extender to test against: a real HTTP(S) server that answers what it is told to."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Self

from aiohttp import web


class ExtenderServer:
    """Answers each verb with what its function makes of the body; remembers every call as (verb, body)."""

    def __init__(self, ssl_context=None) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.answers: dict[str, Callable[[Any], Any]] = {}
        self.status = 200
        self.delay = 0.0
        self.peers: list[Any] = []
        self._ssl = ssl_context
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/{verb:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._ssl)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"{'https' if self._ssl else 'http'}://127.0.0.1:{port}/scheduler/"
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        verb = request.match_info["verb"].removeprefix("scheduler/")
        assert request.headers["Content-Type"] == "application/json"
        body = json.loads(await request.read())
        self.calls.append((verb, body))
        self.peers.append(request.get_extra_info("peercert"))
        await asyncio.sleep(self.delay)
        answer = self.answers[verb](body) if verb in self.answers else None
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return web.Response(status=self.status, text=text)


def keep(*names: str, failed=None, unresolvable=None) -> Callable[[Any], Any]:
    """A filter that leaves those of the given nodes that are in `names`, whichever way it was told of them."""

    def answer(body: Any) -> Any:
        given = body["NodeNames"]
        if given is not None:
            return {
                "NodeNames": [name for name in given if name in names],
                "FailedNodes": failed,
                "FailedAndUnresolvableNodes": unresolvable,
            }
        items = [item for item in body["Nodes"]["items"] if item["metadata"]["name"] in names]
        return {"nodes": {"items": items}, "failedNodes": failed, "failedAndUnresolvableNodes": unresolvable}

    return answer


def points(**scores: int) -> Callable[[Any], Any]:
    """A prioritizer with fixed scores."""
    return lambda body: [{"Host": name, "Score": score} for name, score in scores.items()]
