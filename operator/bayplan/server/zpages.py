"""`/configz`, `/flagz` and `/statusz`: what runs here, with which flags and which configuration, for people."""

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
from aiohttp import web

from bayplan import __version__
from bayplan.server.answers import answer, plain

_NOTE = "For people who look for a fault. The format may change; no program should read it."


def configz_route(configuration: Callable[[], Mapping[str, object]]) -> web.RouteDef:
    """Return the route of `/configz`: what `configuration` gives, as JSON.

    The key is upstream's (component-base: configz). It is asked at each request, as a configuration may be taken over.
    """

    async def configz(_: web.Request) -> web.Response:
        body = msgspec.json.encode({"componentconfig": configuration()})
        return answer(body, "application/json; charset=utf-8")

    return web.get("/configz", configz)


def flagz_route(flags: Mapping[str, str]) -> web.RouteDef:
    """Return the route of `/flagz`: each flag that has a value, a line each (upstream: apiserver server/flagz)."""

    async def flagz(_: web.Request) -> web.Response:
        lines = [f"{name}={value!r}" if not value.isprintable() else f"{name}={value}" for name, value in flags.items()]
        return plain(200, text="\n".join(["", "bayplan flagz", _NOTE, "", *sorted(lines), ""]))

    return web.get("/flagz", flagz)


def statusz_route(
    paths: Sequence[str], kubernetes: str, *, started_at: float | None = None, now: Callable[[], float] = time.time
) -> web.RouteDef:
    """Return the route of `/statusz`: since when what runs, and where else to look.

    Upstream: apiserver server/statusz. `kubernetes` is the version whose behaviour it has. Times are in seconds since
    the epoch.
    """
    started = now() if started_at is None else started_at

    async def statusz(_: web.Request) -> web.Response:
        minutes, seconds = divmod(int(now() - started), 60)
        hours, minutes = divmod(minutes, 60)
        lines = [
            f"Started: {datetime.fromtimestamp(started, UTC):%Y-%m-%dT%H:%M:%SZ}",
            f"Up: {hours} hr {minutes:02} min {seconds:02} sec",
            f"Python version: {platform.python_version()}",
            f"Binary version: {__version__}",
            f"Emulation version: {kubernetes}",
            f"Paths: {' '.join(sorted(paths))}",
        ]
        return plain(200, text="\n".join(["", "bayplan statusz", _NOTE, "", *lines, ""]))

    return web.get("/statusz", statusz)
