"""Serves the page until it is interrupted."""

import asyncio
import signal
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol

from aiohttp import web

from bayplan.server.live import Inspector
from bayplan.web.guard import LOOPBACK, Guard
from bayplan.web.pages import make_app
from bayplan.web.updates import Updates

_SHUTDOWN_SECONDS: Final = 1.0


class Source(Protocol):
    """What the page shows, and keeps asking for."""

    @property
    def page(self) -> dict[str, Any]:
        """What the page says it shows."""

    async def run(self, updates: Updates) -> None:
        """Have the updates follow the source, until there is nothing more or it is cancelled."""


def loopback_socket(port: int) -> socket.socket:
    """Return a socket that listens to this machine alone, at a free port if `port` is 0; OSError if it is taken."""
    return socket.create_server((LOOPBACK, port))


async def serve(
    source: Source,
    inspector: Inspector,
    listening: socket.socket,
    opened: Callable[[str], None],
    *,
    ended: asyncio.Event | None = None,
) -> None:
    """Serve the page of `source`, of which `inspector` answers questions, until SIGINT, SIGTERM or `ended`.

    `opened` is called with the address once the page can be had.
    """
    ended = asyncio.Event() if ended is None else ended
    guard = Guard(listening.getsockname()[1])
    updates = Updates(inspector, page=source.page)
    runner = web.AppRunner(
        make_app(inspector, updates, guard),
        access_log=None,
        shutdown_timeout=_SHUTDOWN_SECONDS,
        handler_cancellation=True,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        opened(guard.address)
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(source.run(updates))
            await ended.wait()
            following.cancel()
    finally:
        await runner.cleanup()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
