"""A TLS handshake with a client that may take its time, or never end it."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

from bayplan.server.handshake_turns import HandshakeTurns

logger = logging.getLogger(__name__)

# Cuts off who connects and says nothing: a handshake takes three round trips.
HANDSHAKE_SECONDS = 10.0
# How long a client that was answered may take to say goodbye.
_GOODBYE_SECONDS = 1.0


class Handshake:
    """A connection before it is one: it counts as one, and may have to make room for a newer one.

    HttpServer relies on it. It waits for its turn before it begins. `on_end` is called once, however it ends.
    """

    def __init__(self, peer: str, turns: HandshakeTurns, on_end: Callable[["Handshake"], None]) -> None:
        self._peer = peer
        self._turns = turns
        self._on_end = on_end
        self._task: asyncio.Task[None] | None = None
        self._handed_over = False
        """Whether the loop has the socket, which then closes it."""

    def begin(
        self, connection: socket.socket, context: ssl.SSLContext, connected: Callable[[], asyncio.BaseProtocol]
    ) -> None:
        """Shake hands beside whatever else goes on, for at most `HANDSHAKE_SECONDS` from its turn on.

        `connected` makes what follows.
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
        await self._turns.wait(self._peer)
        self._handed_over = True
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                connected,
                connection,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=_GOODBYE_SECONDS,
            )
        except OSError as error:
            # What the client said was no TLS, or none that is taken, or it went away.
            logger.debug("no handshake peer=%s error=%s", self._peer, error)

    def _ended(self, connection: socket.socket) -> None:
        if not self._handed_over:
            connection.close()
        self._on_end(self)
