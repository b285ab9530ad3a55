"""The ports: metrics for Prometheus, health for the kubelet, and no patience for misuse."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Middleware
from prometheus_client import CollectorRegistry

from bayplan.api.client import TokenBucket
from bayplan.api.errors import CredentialsError
from bayplan.server.access import Security, only_this_machine, only_who_may
from bayplan.server.answers import answer, plain
from bayplan.server.connections import Connections
from bayplan.server.handshake import Handshake
from bayplan.server.handshake_turns import HandshakeTurns
from bayplan.server.health import HealthChecks, HealthReport, LoopTicker
from bayplan.server.listener import Listener
from bayplan.server.scrapes import OPENMETRICS_TYPE, Scrapes
from bayplan.server.slis import SliCollector

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 128
MAX_CONNECTIONS_PER_PEER = 32
# What the port may cost the scheduler whoever asks for whatever: a connection or an answer takes some 0.2 ms.
CONNECTIONS_PER_SECOND = 200.0
# With a key on P-256; a larger one has fewer, so that all of them together take no more of the loop.
HANDSHAKES_PER_SECOND = 50.0
PROBES_PER_SECOND = 100.0
OTHERS_PER_SECOND = 20.0
MAX_HEADERS = 64
# Cuts off idle connections and those that never finish a request's head. Prometheus just opens a new one.
IDLE_SECONDS = 30.0
DRAIN_SECONDS = 5.0

PUBLIC_PATHS = ("/metrics", "/metrics/slis", "/livez", "/readyz", "/healthz")
"""What names no object."""

_PROBES = ("/livez", "/readyz", "/healthz")

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HttpServer:
    """Serves metrics, health and what `routes` add, at one port or two; the run command stops it last.

    It answers on the scheduler's own event loop, so a stalled loop fails its liveness probe in any case. Whatever
    clients do, connections and answers stay within rates that leave the loop to the scheduler, a newcomer finds room,
    and probes wait for no scrape. That holds for all ports together.
    What a port without `Security` serves names no pod, no namespace and no user's text, but for `routes`, which answer
    the machine itself there. Every refusal is a plain 4xx.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        health: HealthChecks,
        ticker: LoopTicker | None = None,
        routes: Iterable[web.RouteDef] = (),
        *,
        disabled_metrics: Collection[str] = (),
    ) -> None:
        slis = CollectorRegistry()
        slis.register(SliCollector(health))
        self._scrapes = {
            "/metrics": Scrapes(registry, disabled=disabled_metrics),
            "/metrics/slis": Scrapes(slis, disabled=disabled_metrics),
        }
        self._health = health
        self._ticker = ticker or LoopTicker()
        health.add_liveness("event-loop", self._ticker.check)
        self._routes = tuple(routes)
        self._pace = _paced(_bucket(PROBES_PER_SECOND), _bucket(OTHERS_PER_SECOND))
        self._connections: Connections[Handshake | _Connection] = Connections(
            per_peer=MAX_CONNECTIONS_PER_PEER, total=MAX_CONNECTIONS
        )
        self._ports: list[_Port] = []
        self._ticking: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int, security: Security | None = None, *, shares_port: bool = False) -> int:
        """Listen, and return the port (the one chosen, if `port` is 0); raises OSError if it is taken.

        With `security` it is HTTPS for clients that may, otherwise plain HTTP. Another call adds another port.
        """
        guard = (
            only_this_machine({route.path for route in self._routes}) if security is None else only_who_may(security)
        )
        app = web.Application(middlewares=[_plain_errors, self._pace, guard])
        for path in self._scrapes:
            app.router.add_get(path, self._metrics)
        app.router.add_get("/{endpoint:healthz|livez|readyz}", self._report)
        app.router.add_get("/{endpoint:healthz|livez|readyz}/{check}", self._single)
        app.router.add_routes(self._routes)
        made = _Port(app, self._connections, security)
        bound = await made.start(host, port, shares_port=shares_port)
        self._ports.append(made)
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._ticker.run())
        scheme = "http" if security is None else "https"
        logger.info("serving metrics and health scheme=%s host=%s port=%d", scheme, host, bound)
        return bound

    async def stop(self) -> None:
        """Stop listening and let answers under way finish, for at most five seconds."""
        if self._ticking is not None:
            self._ticking.cancel()
            with suppress(asyncio.CancelledError):
                await self._ticking
            self._ticking = None
        await asyncio.gather(*(port.stop() for port in self._ports))
        self._ports = []

    async def _metrics(self, request: web.Request) -> web.Response:
        # Only the media type is taken from the request: its parameters are free text.
        accepted = (part.partition(";")[0].strip() for part in request.headers.get("Accept", "").split(","))
        body, content_type = await self._scrapes[request.path].text(openmetrics=OPENMETRICS_TYPE in accepted)
        return answer(body, content_type)

    async def _report(self, request: web.Request) -> web.Response:
        report = self._health.report(request.match_info["endpoint"], request.query.getall("exclude", []))
        return _answer(report, quiet="verbose" not in request.query)

    async def _single(self, request: web.Request) -> web.Response:
        report = self._health.single(request.match_info["endpoint"], request.match_info["check"])
        return plain(HTTPStatus.NOT_FOUND) if report is None else _answer(report)


class _Port:
    """One port and the connections that come by it."""

    def __init__(
        self, app: web.Application, connections: "Connections[Handshake | _Connection]", security: Security | None
    ) -> None:
        # Who hangs up gives up his place in the queue for an answer.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=DRAIN_SECONDS, handler_cancellation=True)
        self._connections = connections
        self._security = security
        self._handshakes: set[Handshake] = set()
        if security is not None:
            self._turns = HandshakeTurns(HANDSHAKES_PER_SECOND, security.tls.cost)
        self._listener = Listener(self._take, _bucket(CONNECTIONS_PER_SECOND))

    async def start(self, host: str, port: int, *, shares_port: bool) -> int:
        await self._runner.setup()
        try:
            return await self._listener.start(host, port, shares_port=shares_port)
        except OSError:
            await self._runner.cleanup()
            raise

    async def stop(self) -> None:
        await self._listener.stop()
        for handshake in list(self._handshakes):
            handshake.give_way()
        await self._runner.cleanup()

    async def _take(self, connection: socket.socket, peer: str) -> None:
        if self._security is None:
            await asyncio.get_running_loop().connect_accepted_socket(self._connection, connection)
            return
        try:
            context = self._security.tls.context()
        except CredentialsError as error:
            logger.warning("connection refused, there is no certificate for it reason=%s", error)
            connection.close()
            return

        def ended(handshake: Handshake) -> None:
            self._connections.remove(peer, handshake)
            self._handshakes.discard(handshake)

        handshake = Handshake(peer, self._turns, ended)
        self._handshakes.add(handshake)
        if (oldest := self._connections.add(peer, handshake)) is not None:
            oldest.give_way()
        handshake.begin(connection, context, self._connection)

    def _connection(self) -> asyncio.BaseProtocol:
        assert self._runner.server is not None  # it listens no longer than the runner is set up
        return _Connection(
            self._runner.server,
            self._connections,
            loop=asyncio.get_running_loop(),
            access_log=None,  # aiohttp's own way to turn it off
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=1.0,
            max_headers=MAX_HEADERS,
        )


class _Connection(web.RequestHandler):
    """One client's connection, which may have to make room for a newer one.

    An unreadable request gets a bare status, not an echo and a traceback.
    """

    __slots__ = ("_all", "_peer")

    def __init__(self, server: web.Server, connections: "Connections[Handshake | _Connection]", **options: Any) -> None:  # noqa: ANN401  as aiohttp takes them
        super().__init__(server, **options)
        self._all = connections
        self._peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        address = transport.get_extra_info("peername")
        self._peer = str(address[0]) if address else ""
        oldest = self._all.add(self._peer, self)
        if oldest is not None:
            oldest.give_way()

    def give_way(self) -> None:
        """End the connection at once, whatever it still has to send."""
        if self.transport is not None:
            self.transport.abort()
        self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._all.remove(self._peer, self)
        super().connection_lost(exc)

    def log_exception(self, *args: Any, **details: Any) -> None:  # noqa: ANN401  as aiohttp has it
        # Defects of ours end in the middleware. What comes here is a client that went away while it was answered.
        logger.debug("connection failed peer=%s", self._peer, exc_info=details.get("exc_info"))

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        logger.debug("request refused status=%d cause=%s message=%r", status, type(exc).__name__, message)
        response = plain(status)
        response.force_close()
        return response


def _bucket(per_second: float) -> TokenBucket:
    return TokenBucket(qps=per_second, burst=int(per_second / 4))


def _paced(probes: TokenBucket, others: TokenBucket) -> Middleware:
    """Have each answer wait for its turn: probes for probes only, all others for one another."""

    @web.middleware
    async def paced(request: web.Request, handler: _Handler) -> web.StreamResponse:
        await (probes if request.path.startswith(_PROBES) else others).wait()
        return await handler(request)

    return paced


@web.middleware
async def _plain_errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as refusal:
        allowed = refusal.headers.get("Allow")
        return plain(refusal.status, {"Allow": allowed} if allowed else {})
    except Exception:  # a defect is logged here and shown to nobody
        logger.exception("request failed method=%s path=%r", request.method, request.path)
        return plain(HTTPStatus.INTERNAL_SERVER_ERROR)


def _answer(report: HealthReport, *, quiet: bool = False) -> web.Response:
    if not report.healthy:
        return plain(HTTPStatus.INTERNAL_SERVER_ERROR, text=report.text)
    return plain(HTTPStatus.OK, text="ok" if quiet else report.text)
