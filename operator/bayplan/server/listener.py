"""Takes connections of a port, no faster than the scheduling loop can bear."""

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

from bayplan.api.token_bucket import TokenBucket

logger = logging.getLogger(__name__)

BACKLOG = 128
# What the kernel keeps for a connection, and so what is read of it at once: a long head of a request.
RECEIVE_BYTES = 32 * 1024
_TROUBLE_PAUSE_SECONDS = 0.2


class Listener:
    """Accepts connections at a bounded rate; HttpServer relies on it.

    asyncio's own servers take all that wait at once, each time the loop turns, so whoever connects in a loop would have
    the loop. Here the next ones wait in the kernel. `take` is given each connection with the address of its peer, and
    owns it from then on. `pace` is the rate.
    """

    def __init__(self, take: Callable[[socket.socket, str], Awaitable[None]], pace: TokenBucket) -> None:
        self._take = take
        self._pace = pace
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []

    async def start(self, host: str, port: int, *, shares_port: bool = False) -> int:
        """Listen at every address of `host`; return the port, the one chosen if `port` is 0.

        Nothing, `0.0.0.0` and `::` stand for all addresses, of IPv6 as well where there is IPv6. With `shares_port`
        several processes may listen at the same port.

        Raises:
            OSError: an address cannot be found or listened at; nothing is left open.
        """
        loop = asyncio.get_running_loop()
        try:
            if _is_all(host) and socket.has_dualstack_ipv6():
                everywhere = socket.create_server(
                    ("::", port),
                    family=socket.AF_INET6,
                    dualstack_ipv6=True,
                    backlog=BACKLOG,
                    reuse_port=shares_port,
                )
                self._sockets.append(everywhere)
            else:
                asked = "0.0.0.0" if _is_all(host) else host  # noqa: S104  what was asked for
                found = await loop.getaddrinfo(asked, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
                for family, *_, address in dict.fromkeys(found):
                    listening = socket.create_server(
                        (str(address[0]), port), family=family, backlog=BACKLOG, reuse_port=shares_port
                    )
                    self._sockets.append(listening)
                    port = listening.getsockname()[1]
        except OSError:
            self._close()
            raise
        for each in self._sockets:
            each.setblocking(False)
            # Connections have it from the socket that listens.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self._accepting = [loop.create_task(self._accept(each)) for each in self._sockets]
        chosen: int = self._sockets[0].getsockname()[1]
        return chosen

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
                connection, address = await loop.sock_accept(listening)
                await self._take(connection, str(address[0]))
            except OSError as error:
                # The client is gone already, or there are no descriptors left.
                logger.debug("connection not accepted error=%s", error)
                await asyncio.sleep(_TROUBLE_PAUSE_SECONDS)


def _is_all(host: str) -> bool:
    try:
        return host == "" or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
