"""The connections of the HTTP port, what each may send, and which one goes when there are too many."""

import asyncio
import ipaddress
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, Generic, TypeAlias, TypeVar

from aiohttp import web

from bayplan.api.live_paths import SIMULATE
from bayplan.server.answers import bare, plain
from bayplan.server.handshake import Handshake
from bayplan.server.live import MAX_BODY_BYTES
from bayplan.server.request_heads import HEAD_BYTES, HeadRefusedError, RequestHeads, target_of
from bayplan.server.turns import PeerTurns

Connected = TypeVar("Connected")

_V6_SITE_BITS = 64
logger = logging.getLogger(__name__)
MAX_HEADERS: Final = 64
_PROBES: Final = (b"/livez", b"/readyz", b"/healthz")
# Cuts off idle connections and those that never finish a request's head. Prometheus just opens a new one.
_TAKING_BODIES: Final = (f"POST {SIMULATE} ".encode(), f"POST {SIMULATE}?".encode())
IDLE_SECONDS = 30.0
DRAIN_SECONDS: Final = 5.0
# How long who is refused has to read why: closing at once what has more to read takes the answer from it.
REFUSAL_SECONDS = 1.0
Open: TypeAlias = "Connections[Connection | Handshake]"


class Connections(Generic[Connected]):
    """Bounds the open connections, in all and of each peer, so that whoever comes next always finds room.

    HttpServer relies on it: a probe is a new connection, and is never the one that has to go. `per_peer` and `total`
    are numbers of connections.
    """

    def __init__(self, *, per_peer: int, total: int) -> None:
        self._per_peer = per_peer
        self._total = total
        # Dictionaries keep the order of coming.
        self._by_peer: dict[str, dict[Connected, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, peer: str, connection: Connected) -> Connected | None:
        """Count a new connection, and return the one that the caller has to close for it, which counts no longer.

        It is the oldest of the peer, if that has too many. Otherwise, of too many in all, the oldest of the peer that
        has most; of peers with equally many, the one that came first.
        """
        own = self._by_peer.setdefault(peer, {})
        own[connection] = None
        self._count += 1
        if len(own) > self._per_peer:
            greediest = peer
        elif self._count > self._total:
            greediest = max(self._by_peer, key=lambda each: len(self._by_peer[each]))
        else:
            return None
        oldest = next(iter(self._by_peer[greediest]))
        self.remove(greediest, oldest)
        return oldest

    def remove(self, peer: str, connection: Connected) -> None:
        """Forget a connection that ended; one that is not counted is none of its business."""
        own = self._by_peer.get(peer, {})
        if connection not in own:
            return
        del own[connection]
        self._count -= 1
        if not own:
            del self._by_peer[peer]


def peer_of(address: str) -> str:
    """Return what the connections from an address are counted under: the address, or of IPv6 its network of 64 bits.

    One machine has all the addresses of such a network. An IPv4 address that came to an IPv6 socket is one of IPv4.
    What is no address is returned as it is.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _V6_SITE_BITS), strict=False))


class RequestTurns:
    """What reading and answering may cost the scheduler, whoever asks for whatever, for all connections together.

    Connection relies on it. An answer takes some 0.2 ms, and so does to read a piece of a head that came in many
    records of TLS.
    """

    def __init__(self, *, probes: float, others: float, pieces: float) -> None:
        self._probes, self._others = PeerTurns(probes), PeerTurns(others)
        self.pieces = PeerTurns(pieces)
        """To read on where a head was not complete."""

    def of(self, head: bytes) -> PeerTurns:
        """Return whose turns a request takes: probes wait for probes only, all others for one another."""
        return self._probes if target_of(head).startswith(_PROBES) else self._others


class Connection(web.RequestHandler):
    """Reads one request, waits for its turn, answers it and only then looks at the next; it may have to make room.

    HttpServer relies on it. The parser of HTTP gets whole heads, one at a time, and a body only where one is taken.
    While a request waits or is answered, what its client sends next is read once, and the rest stays with the kernel.
    So all reading is paid for by a turn: that of the handshake, of an answer with its body, or of a piece of a head. An
    unreadable request gets a bare status, not an echo and a traceback.
    """

    __slots__ = ("_heads", "_is_new", "_is_reading_body", "_open", "_peer", "_turn", "_turns")

    def __init__(self, server: web.Server, connections: Open, turns: RequestTurns) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # aiohttp's own way to turn it off
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=REFUSAL_SECONDS,
            max_headers=MAX_HEADERS,
            max_line_size=HEAD_BYTES,
            max_field_size=HEAD_BYTES,
        )
        self._open = connections
        self._turns = turns
        self._heads = RequestHeads(taking_bodies=_TAKING_BODIES, largest_body=MAX_BODY_BYTES)
        self._peer = ""
        self._is_new = True
        self._is_reading_body = False
        self._turn: asyncio.Task[None] | asyncio.TimerHandle | None = None
        """What has to happen before anything else is taken; None while there is nothing."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection, and end another one if there are too many."""
        super().connection_made(transport)
        # TLS keeps 256 KiB of what it has not decrypted, for each connection. Both loops let one say less.
        if (set_limits := getattr(transport, "set_read_buffer_limits", None)) is not None:
            set_limits(high=HEAD_BYTES, low=0)
        address = transport.get_extra_info("peername")
        self._peer = peer_of(str(address[0])) if address else ""
        oldest = self._open.add(self._peer, self)
        if oldest is not None:
            oldest.give_way()

    def data_received(self, data: bytes) -> None:
        """Take what was read, and read no more before it has been dealt with."""
        self._heads.add(data)
        if self._is_reading_body:
            self._hand_on_body()
        elif self._turn is None:
            self._next(self._wait_for_piece)
        else:
            self._pause()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the connection and what waits for a turn on it."""
        self._open.remove(self._peer, self)
        if self._turn is not None:
            self._turn.cancel()
        super().connection_lost(exc)

    async def shutdown(self, timeout: float | None = DRAIN_SECONDS) -> None:  # noqa: ASYNC109  as aiohttp has it
        """Let an answer under way finish, for at most `timeout` seconds, and close the connection."""
        transport = self.transport
        await super().shutdown(timeout)
        if transport is not None and not transport.is_reading():
            # What its client sent is not going to be read, so there is nothing to wait for in closing TLS.
            transport.abort()

    def give_way(self) -> None:
        """End the connection at once, whatever it still has to send."""
        if self.transport is not None:
            self.transport.abort()
        self.force_close()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer, then go on to the next request."""
        if self._is_reading_body:
            # Who was refused is still sending: that is read for a moment and thrown away, and nothing after it.
            resp.force_close()
        sent = await super().finish_response(request, resp, start_time)
        if resp.keep_alive:
            self._turn = None
            # The answer has paid for one look at what comes next.
            self._next(self._resume)
        return sent

    def log_exception(self, *args: Any, **details: Any) -> None:  # noqa: ANN401  as aiohttp has it
        """Say so for those who look for it."""
        # Defects of ours end in the middleware. What comes here is a client that went away while it was answered.
        logger.debug("connection failed peer=%s", self._peer, exc_info=details.get("exc_info"))

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return a bare status, the last answer of its connection."""
        logger.debug("request refused status=%d cause=%s message=%r", status, type(exc).__name__, message)
        response = plain(status)
        response.force_close()
        return response

    def _next(self, read_on: Callable[[], None]) -> None:
        try:
            head = self._heads.take()
        except HeadRefusedError as refusal:
            self._refuse(refusal.status)
            return
        if head is not None:
            self._turn = asyncio.create_task(self._hand_on(head))
        else:
            read_on()

    async def _hand_on(self, head: bytes) -> None:
        # As with handshakes: the newest connection is the last to be closed, and a probe is one.
        ahead, self._is_new = self._is_new, False
        await self._turns.of(head).wait(self._peer, ahead=ahead)
        self._is_reading_body = self._heads.body_left > 0
        super().data_received(head)
        if self._is_reading_body:
            self._resume()
            self._hand_on_body()

    def _hand_on_body(self) -> None:
        # The handler asks for it once it is known who sends it; until then aiohttp holds back what it has no use for.
        super().data_received(self._heads.take_body())
        if not self._heads.body_left:
            self._is_reading_body = False
            self._pause()

    def _wait_for_piece(self) -> None:
        self._pause()
        self._turn = asyncio.create_task(self._read_piece())

    async def _read_piece(self) -> None:
        await self._turns.pieces.wait(self._peer)
        self._turn = None
        self._resume()

    def _refuse(self, status: HTTPStatus) -> None:
        logger.debug("request refused status=%d", status)
        self._pause()
        if self.transport is not None:
            self.transport.write(bare(status))
            self._turn = asyncio.get_running_loop().call_later(REFUSAL_SECONDS, self.give_way)

    def _pause(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def _resume(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()
