"""The ports: metrics for Prometheus, health for the kubelet, and no patience for misuse."""

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import partial
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import CollectorRegistry

from bayplan.api.backoff import TokenBucket
from bayplan.api.errors import CredentialsError
from bayplan.server.access import Security, only_this_machine, only_who_may
from bayplan.server.answers import answer, plain
from bayplan.server.connection import DRAIN_SECONDS, Connection, Connections, Open, RequestTurns, peer_of
from bayplan.server.handshake import Handshake
from bayplan.server.health import HealthChecks, HealthReport, LoopTicker
from bayplan.server.live import MAX_BODY_BYTES
from bayplan.server.metrics import OPENMETRICS_TYPE, AtScrape, Scrapes, sli_metrics
from bayplan.server.turns import PeerTurns

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 128
MAX_CONNECTIONS_PER_PEER = 32
# Clients that have said nothing yet. They cost a place and no time, and who speaks goes before them.
MAX_SILENT = 512
# What the port may cost the scheduler whoever asks for whatever: a connection or an answer takes some 0.2 ms.
CONNECTIONS_PER_SECOND = 200.0
# Without handshakes they all get to ask, so they are fewer than the answers to probes: a probe is the newest one.
PLAIN_CONNECTIONS_PER_SECOND = 50.0
# With a key on P-256; a larger one has fewer, so that all of them together take no more of the loop.
HANDSHAKES_PER_SECOND = 50.0
PROBES_PER_SECOND = 100.0
OTHERS_PER_SECOND = 20.0
# Heads that do not come in one piece.
PIECES_PER_SECOND = 50.0
_TROUBLE_PAUSE_SECONDS = 0.2

PUBLIC_PATHS = ("/metrics", "/metrics/slis", "/livez", "/readyz", "/healthz")
"""What names no object."""


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
        slis.register(AtScrape(partial(sli_metrics, health)))
        self._scrapes = {
            "/metrics": Scrapes(registry, disabled=disabled_metrics),
            "/metrics/slis": Scrapes(slis, disabled=disabled_metrics),
        }
        self._health = health
        self._ticker = ticker or LoopTicker()
        health.add_liveness("event-loop", self._ticker.check)
        self._routes = tuple(routes)
        self._turns = RequestTurns(probes=PROBES_PER_SECOND, others=OTHERS_PER_SECOND, pieces=PIECES_PER_SECOND)
        self._connections: Open = Connections(per_peer=MAX_CONNECTIONS_PER_PEER, total=MAX_CONNECTIONS)
        self._ports: list[_Port] = []
        self._ticking: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int, security: Security | None = None, *, shares_port: bool = False) -> int:
        """Listen, and return the port (the one chosen, if `port` is 0); raises OSError if it is taken.

        With `security` it is HTTPS for clients that may, otherwise plain HTTP. Another call adds another port.
        """
        naming: set[web.AbstractResource | None] = set()
        guard = only_this_machine(naming) if security is None else only_who_may(security)
        app = web.Application(middlewares=[_plain_errors, guard], client_max_size=MAX_BODY_BYTES + 1)
        for path in self._scrapes:
            app.router.add_get(path, self._metrics)
        app.router.add_get("/{endpoint:healthz|livez|readyz}", self._report)
        app.router.add_get("/{endpoint:healthz|livez|readyz}/{check}", self._single)
        naming.update(route.resource for route in app.router.add_routes(self._routes))
        made = _Port(app, self._connections, self._turns, security)
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
    """One port and the connections that come by it, at a bounded rate.

    asyncio's own servers take all that wait at once, each time the loop turns, so whoever connects in a loop would have
    the loop. Here the next ones wait in the kernel.
    """

    def __init__(self, app: web.Application, connections: Open, turns: RequestTurns, security: Security | None) -> None:
        # Who hangs up gives up his place in the queue for an answer.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=DRAIN_SECONDS, handler_cancellation=True)
        self._connections = connections
        self._turns = turns
        self._security = security
        self._silent: Connections[Handshake] = Connections(per_peer=MAX_CONNECTIONS_PER_PEER, total=MAX_SILENT)
        self._handshakes: set[Handshake] = set()
        if security is not None:
            self._handshake_turns = PeerTurns(HANDSHAKES_PER_SECOND, security.tls.cost)
        connections_per_second = PLAIN_CONNECTIONS_PER_SECOND if security is None else CONNECTIONS_PER_SECOND
        self._pace = TokenBucket(qps=connections_per_second, burst=int(connections_per_second / 4))
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []

    async def start(self, host: str, port: int, *, shares_port: bool) -> int:
        await self._runner.setup()
        try:
            self._sockets = await listening_sockets(host, port, shares_port=shares_port)
        except OSError:
            await self._runner.cleanup()
            raise
        self._accepting = [asyncio.create_task(self._accept(each)) for each in self._sockets]
        chosen: int = self._sockets[0].getsockname()[1]
        return chosen

    async def stop(self) -> None:
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for each in self._sockets:
            each.close()
        for handshake in list(self._handshakes):
            handshake.give_way()
        await self._runner.cleanup()

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            await self._pace.wait()
            try:
                connection, address = await asyncio.get_running_loop().sock_accept(listening)
                await self._take(connection, str(address[0]))
            except OSError as error:
                # The client is gone already, or there are no descriptors left.
                logger.debug("connection not accepted error=%s", error)
                await asyncio.sleep(_TROUBLE_PAUSE_SECONDS)

    async def _take(self, connection: socket.socket, address: str) -> None:
        if self._security is None:
            await asyncio.get_running_loop().connect_accepted_socket(self._connection, connection)
            return
        peer = peer_of(address)
        try:
            context = self._security.tls.context()
        except CredentialsError as error:
            logger.warning("connection refused, there is no certificate for it reason=%s", error)
            connection.close()
            return

        def spoke(handshake: Handshake) -> None:
            self._silent.remove(peer, handshake)
            _make_room(self._connections.add(peer, handshake))

        def ended(handshake: Handshake) -> None:
            self._silent.remove(peer, handshake)
            self._connections.remove(peer, handshake)
            self._handshakes.discard(handshake)

        handshake = Handshake(peer, self._handshake_turns, on_hello=spoke, on_end=ended)
        self._handshakes.add(handshake)
        _make_room(self._silent.add(peer, handshake))
        handshake.begin(connection, context, self._connection)

    def _connection(self) -> asyncio.BaseProtocol:
        assert self._runner.server is not None  # it listens no longer than the runner is set up
        return Connection(self._runner.server, self._connections, self._turns)


def _make_room(oldest: Handshake | Connection | None) -> None:
    if oldest is not None:
        oldest.give_way()


@web.middleware
async def _plain_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
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


BACKLOG = 128
# What the kernel keeps for a connection, and so what is read of it at once: a long head of a request.
RECEIVE_BYTES = 32 * 1024


async def listening_sockets(host: str, port: int, *, shares_port: bool = False) -> list[socket.socket]:
    """Listen at every address of `host`, at a free port if `port` is 0; HttpServer relies on it.

    Nothing, `0.0.0.0` and `::` stand for all addresses, of IPv6 as well where there is IPv6. With `shares_port`
    several processes may listen at the same port.

    Raises:
        OSError: an address cannot be found or listened at; nothing is left open.
    """
    sockets: list[socket.socket] = []
    try:
        if _is_all(host) and socket.has_dualstack_ipv6():
            everywhere = socket.create_server(
                ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG, reuse_port=shares_port
            )
            sockets.append(everywhere)
        else:
            asked = "0.0.0.0" if _is_all(host) else host  # noqa: S104  what was asked for
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(asked, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, *_, address in dict.fromkeys(found):
                listening = socket.create_server(
                    (str(address[0]), port), family=family, backlog=BACKLOG, reuse_port=shares_port
                )
                sockets.append(listening)
                port = listening.getsockname()[1]
    except OSError:
        for each in sockets:
            each.close()
        raise
    for each in sockets:
        each.setblocking(False)
        # Connections have it from the socket that listens.
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    return sockets


def _is_all(host: str) -> bool:
    try:
        return host == "" or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
