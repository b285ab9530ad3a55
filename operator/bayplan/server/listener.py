"""Takes connections of the HTTP port, no faster than the scheduling loop can bear."""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress

from bayplan.api.client import TokenBucket

logger = logging.getLogger(__name__)

BACKLOG = 128
_TROUBLE_PAUSE_SECONDS = 0.2


class Listener:
    """Accepts connections at a bounded rate; HttpServer relies on it.

    asyncio's own servers take all that wait at once, each time the loop turns, so whoever connects in a loop would have
    the loop. Here the next ones wait in the kernel. `factory` makes the protocol of a connection. `pace` is the rate.
    """

    def __init__(self, factory: Callable[[], asyncio.BaseProtocol], pace: TokenBucket) -> None:
        self._factory = factory
        self._pace = pace
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []

    async def start(self, host: str, port: int) -> int:
        """Listen at every address of `host`; return the port, the one chosen if `port` is 0.

        Raises:
            OSError: an address cannot be found or listened at; nothing is left open.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, *_, address in dict.fromkeys(found):
                listening = socket.create_server((str(address[0]), port), family=family, backlog=BACKLOG)
                self._sockets.append(listening)
                listening.setblocking(False)
                port = listening.getsockname()[1]
        except OSError:
            self._close()
            raise
        self._accepting = [loop.create_task(self._accept(each)) for each in self._sockets]
        return port

    async def stop(self) -> None:
        """Accept no more, and close the port; connections that are open are left alone."""
        for task in self._accepting:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._accepting = []
        self._close()

    def _close(self) -> None:
        for listening in self._sockets:
            listening.close()
        self._sockets = []

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._pace.wait()
            try:
                connection, _ = await loop.sock_accept(listening)
                await loop.connect_accepted_socket(self._factory, connection)
            except OSError as error:
                # The client is gone already, or there are no descriptors left.
                logger.debug("connection not accepted error=%s", error)
                await asyncio.sleep(_TROUBLE_PAUSE_SECONDS)
