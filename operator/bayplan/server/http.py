"""The HTTP port: metrics for Prometheus, health for the kubelet, nothing else, and no patience for misuse."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from bayplan.server.health import HealthChecks, HealthReport, LoopTicker

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 128
MAX_HEADERS = 64
# Cuts off idle connections and those that never finish a request's head. Prometheus just opens a new one.
IDLE_SECONDS = 30.0
DRAIN_SECONDS = 5.0

TEXT_FORMAT = "text/plain; version=0.0.4"
OPENMETRICS_TYPE = "application/openmetrics-text"
OPENMETRICS_FORMAT = f"{OPENMETRICS_TYPE}; version=1.0.0"
PLAIN_TEXT = "text/plain; charset=utf-8"

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'",
    "Server": "bayplan",
    "X-Content-Type-Options": "nosniff",
}

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HttpServer:
    """Serves `/metrics`, `/livez`, `/readyz`, `/healthz`; the run command starts it first and stops it last.

    It answers on the scheduler's own event loop, so a stalled loop fails its liveness probe in any case.
    Nothing served names a pod, a namespace or a user's text, but for `routes` that guard themselves (server/debug.py).
    Every refusal is a plain 4xx without details.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        health: HealthChecks,
        ticker: LoopTicker | None = None,
        routes: Iterable[web.RouteDef] = (),
    ) -> None:
        self._registry = registry
        self._health = health
        self._ticker = ticker or LoopTicker()
        health.add_liveness("event-loop", self._ticker.check)
        app = web.Application(middlewares=[_plain_errors])
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/{endpoint:healthz|livez|readyz}", self._report)
        app.router.add_get("/{endpoint:healthz|livez|readyz}/{check}", self._single)
        app.router.add_routes(routes)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=DRAIN_SECONDS)
        self._listener: asyncio.Server | None = None
        self._ticking: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port (the one chosen, if `port` is 0); raises OSError if it is taken."""
        loop = asyncio.get_running_loop()
        await self._runner.setup()
        try:
            self._listener = await loop.create_server(self._connection, host, port)
        except OSError:
            await self._runner.cleanup()
            raise
        self._ticking = loop.create_task(self._ticker.run())
        bound: int = self._listener.sockets[0].getsockname()[1]
        logger.info("serving metrics and health host=%s port=%d", host, bound)
        return bound

    async def stop(self) -> None:
        """Stop listening and let answers under way finish, for at most five seconds."""
        if self._ticking is not None:
            self._ticking.cancel()
            with suppress(asyncio.CancelledError):
                await self._ticking
            self._ticking = None
        if self._listener is not None:
            self._listener.close()
            await self._runner.cleanup()
            await self._listener.wait_closed()
            self._listener = None

    def _connection(self) -> asyncio.BaseProtocol:
        server = self._runner.server
        if server is None or len(server.connections) >= MAX_CONNECTIONS:
            return _Refusal()
        return _Connection(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # aiohttp's own way to turn it off
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=1.0,
            max_headers=MAX_HEADERS,
        )

    async def _metrics(self, request: web.Request) -> web.Response:
        # Only the media type is taken from the request: its parameters are free text.
        accepted = (part.partition(";")[0].strip() for part in request.headers.get("Accept", "").split(","))
        encode, content_type = choose_encoder(OPENMETRICS_FORMAT if OPENMETRICS_TYPE in accepted else TEXT_FORMAT)
        return web.Response(body=encode(self._registry), headers=_HEADERS | {"Content-Type": content_type})

    async def _report(self, request: web.Request) -> web.Response:
        report = self._health.report(request.match_info["endpoint"], request.query.getall("exclude", []))
        return _answer(report, quiet="verbose" not in request.query)

    async def _single(self, request: web.Request) -> web.Response:
        report = self._health.single(request.match_info["endpoint"], request.match_info["check"])
        return _plain(HTTPStatus.NOT_FOUND) if report is None else _answer(report)


class _Connection(web.RequestHandler):
    """One client's connection; an unreadable request gets a bare status, not an echo and a traceback."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        logger.debug("request refused status=%d cause=%s message=%r", status, type(exc).__name__, message)
        response = _plain(status)
        response.force_close()
        return response


class _Refusal(asyncio.Protocol):
    """Closes a connection beyond the limit: strangers must not use up the descriptors that binds need."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


@web.middleware
async def _plain_errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as refusal:
        allowed = refusal.headers.get("Allow")
        return _plain(refusal.status, {"Allow": allowed} if allowed else {})
    except Exception:  # a defect is logged here and shown to nobody
        logger.exception("request failed method=%s path=%r", request.method, request.path)
        return _plain(HTTPStatus.INTERNAL_SERVER_ERROR)


def _plain(status: int, headers: dict[str, str] | None = None, text: str | None = None) -> web.Response:
    return web.Response(
        status=status,
        body=(text if text is not None else f"{HTTPStatus(status).phrase}\n").encode(),
        headers=_HEADERS | {"Content-Type": PLAIN_TEXT} | (headers or {}),
    )


def _answer(report: HealthReport, *, quiet: bool = False) -> web.Response:
    if not report.healthy:
        return _plain(HTTPStatus.INTERNAL_SERVER_ERROR, text=report.text)
    return _plain(HTTPStatus.OK, text="ok" if quiet else report.text)
