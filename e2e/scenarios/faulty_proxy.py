"""A proxy in front of a real API server that fails on demand."""

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp import web
from e2e.controlplane.credentials import write_kubeconfig
from e2e.controlplane.plane import ControlPlane
from tests.faults.faults import Fault, RequestFault, StreamFault

Match = Callable[[web.BaseRequest], bool]

_START_SECONDS = 10.0
_HOP_BY_HOP = frozenset({"connection", "content-encoding", "content-length", "host", "transfer-encoding"})


@dataclass
class _Injected:
    fault: Fault
    match: Match
    left: int


class FaultyProxy:
    """Passes requests on with the caller's own credentials; `inject` and `cut` make it fail.

    Speaks plain HTTP on a loopback port and runs on a thread of its own; use it as a context manager.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self._injected: list[_Injected] = []
        self._streams: dict[asyncio.Task[None], web.BaseRequest] = {}
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="faulty-proxy")
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(_START_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join()

    def kubeconfig(self, path: Path, token: str) -> Path:
        """Writes a kubeconfig that goes through the proxy."""
        url = f"http://127.0.0.1:{self.port}"
        return write_kubeconfig(path, url=url, ca_file=self._plane.ca_file, user={"token": token})

    def inject(self, fault: Fault, match: Match, *, times: int = 1) -> None:
        """Lets the next `times` matching requests fail; a fault of streams only ever meets watches."""
        self._injected.append(_Injected(fault, match, times))

    @contextmanager
    def failing(self, fault: Fault, match: Match) -> Iterator[None]:
        """Lets all matching requests fail, and cuts matching streams that are open already."""
        injected = _Injected(fault, match, 2**31)
        self._injected.append(injected)
        self.cut(match)
        try:
            yield
        finally:
            self._injected.remove(injected)

    def cut(self, match: Match) -> None:
        """Breaks the matching streams that are open now."""

        def cut() -> None:
            for task, request in list(self._streams.items()):
                if match(request):
                    task.cancel()

        self._loop.call_soon_threadsafe(cut)

    async def _serve(self) -> None:
        self._loop, self._done = asyncio.get_running_loop(), asyncio.Event()
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as self._session:
            app = web.Application(client_max_size=64 * 1024 * 1024)
            app.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.port = runner.addresses[0][1]
            self._ready.set()
            await self._done.wait()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        watching = "watch" in request.query
        fault = self._take(request, watching=watching)
        body = await request.read()

        async def act() -> web.StreamResponse:
            return await self._forward(request, body, fault if isinstance(fault, StreamFault) else None)

        if isinstance(fault, RequestFault):
            return await fault.serve(request, act)
        return await act()

    def _take(self, request: web.Request, *, watching: bool) -> Fault | None:
        for injected in self._injected:
            fits = watching or not isinstance(injected.fault, StreamFault)
            if injected.left > 0 and fits and injected.match(request):
                injected.left -= 1
                return injected.fault
        return None

    async def _forward(self, request: web.Request, body: bytes, fault: StreamFault | None) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        headers["Accept-Encoding"] = "identity"
        timeout = aiohttp.ClientTimeout(total=None)
        url = f"{self._plane.url}{request.raw_path}"
        try:
            async with self._session.request(
                request.method, url, data=body or None, headers=headers, timeout=timeout
            ) as answer:
                kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
                if "watch" in request.query and answer.status == 200:
                    return await self._stream(request, answer, kept, fault or StreamFault())
                return web.Response(status=answer.status, body=await answer.read(), headers=kept)
        except aiohttp.ClientError:
            return web.Response(status=502)

    async def _stream(
        self, request: web.Request, answer: aiohttp.ClientResponse, headers: dict[str, str], fault: StreamFault
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        copying = asyncio.create_task(self._copy(request, answer, response, fault))
        self._streams[copying] = request
        try:
            await asyncio.wait([copying])
        finally:
            copying.cancel()
            del self._streams[copying]
        if copying.cancelled() and request.transport is not None:
            request.transport.abort()
        return response

    @staticmethod
    async def _copy(
        request: web.Request, answer: aiohttp.ClientResponse, response: web.StreamResponse, fault: StreamFault
    ) -> None:
        pending = b""
        # Either side may go away at any time; then there is nothing left to copy.
        with suppress(ConnectionError, aiohttp.ClientError):
            if not await fault.opened(request, response):
                return
            async for chunk in answer.content.iter_any():
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    if not await fault.event(request, response, line + b"\n"):
                        return
