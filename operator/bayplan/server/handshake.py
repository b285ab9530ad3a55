"""A TLS handshake with a client that may take its time or never end it."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from bayplan.server.turns import PeerTurns

logger = logging.getLogger(__name__)
# Cuts off who connects and says nothing, or stops in the middle: a handshake takes three round trips.
HANDSHAKE_SECONDS = 10.0
# What TLS begins with: the type of a record that carries a handshake (RFC 8446, 5.1).
_FIRST_BYTE = b"\x16"
# How long a client that was answered may take to say goodbye.
_GOODBYE_SECONDS = 1.0


@dataclass(eq=False)
class Handshake:
    """A connection before it is one: it counts as one, and may have to make room for a newer one.

    HttpServer relies on it. Who says nothing costs no turn: it waits for the first byte of the client, and then for its
    turn. `on_hello` is called when a handshake begins to arrive, `on_end` once, however it ends.
    """

    peer: str
    turns: PeerTurns
    on_hello: Callable[["Handshake"], None] = field(kw_only=True)
    on_end: Callable[["Handshake"], None] = field(kw_only=True)
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    _handed_over: bool = field(default=False, init=False)
    """Whether the loop has the socket, which then closes it."""

    def begin(
        self, connection: socket.socket, context: ssl.SSLContext, connected: Callable[[], asyncio.BaseProtocol]
    ) -> None:
        """Shake hands beside whatever else goes on, for at most `HANDSHAKE_SECONDS` from its turn on.

        The client's first byte has as long to come. `connected` makes what follows.
        """
        self._task = asyncio.create_task(self._run(connection, context, connected))
        self._task.add_done_callback(lambda _: self._ended(connection))

    def give_way(self) -> None:
        """End it at once."""
        if self._task is not None:
            self._task.cancel()

    async def _run(
        self, connection: socket.socket, context: ssl.SSLContext, connected: Callable[[], asyncio.BaseProtocol]
    ) -> None:
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                await _readable(connection)
            if connection.recv(1, socket.MSG_PEEK) != _FIRST_BYTE:
                logger.debug("no handshake peer=%s error=not TLS", self.peer)
                return
            self.on_hello(self)
            # Of too many connections of a peer the oldest is closed, so a turn would be wasted on it.
            await self.turns.wait(self.peer, ahead=True)
            self._handed_over = True
            await asyncio.get_running_loop().connect_accepted_socket(
                connected,
                connection,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=_GOODBYE_SECONDS,
            )
        except OSError as error:
            # What the client said was no TLS, or none that is taken, or it went away, or never said anything.
            logger.debug("no handshake peer=%s error=%s", self.peer, error)

    def _ended(self, connection: socket.socket) -> None:
        if not self._handed_over:
            connection.close()
        self.on_end(self)


async def _readable(connection: socket.socket) -> None:
    """Wait until there is something to read, without reading it, or the other side is gone."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(connection, tell)
    try:
        await readable
    finally:
        loop.remove_reader(connection)
