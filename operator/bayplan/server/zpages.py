"""`/configz`, `/flagz` and `/statusz`: what runs here, with which flags and which configuration."""

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from bayplan import __version__
from bayplan.server.answers import answer, plain
from bayplan.server.metrics import process_start_seconds

_NOTE: Final = "Warning: for people who look for a fault. The format may change; no program should read it."


def configz_route(configuration: Callable[[], Mapping[str, object]]) -> web.RouteDef:
    """Return the route of `/configz`: what `configuration` gives, as JSON.

    The key is upstream's (component-base: configz). It is asked at each request, as a configuration may be taken over.
    """

    async def configz(_: web.Request) -> web.Response:
        body = msgspec.json.encode({"componentconfig": configuration()})
        return answer(body, "application/json; charset=utf-8")

    return web.get("/configz", configz)


def flagz_route(flags: Mapping[str, str]) -> web.RouteDef:
    """Return the route of `/flagz`: each flag that has a value (upstream: apiserver server/flagz)."""
    lines = [f"{name}={value if value.isprintable() else repr(value)}" for name, value in sorted(flags.items())]
    return _text_route("flagz", lambda: lines)


def statusz_route(
    paths: Sequence[str], kubernetes: str, *, started_at: float | None = None, now: Callable[[], float] = time.time
) -> web.RouteDef:
    """Return the route of `/statusz`: since when what runs, and below which of `paths` else to look.

    Upstream: apiserver server/statusz. `kubernetes` is the version whose behaviour it has. Times are in seconds since
    the epoch; without `started_at` it is when the process began.
    """
    started = process_start_seconds() if started_at is None else started_at
    moment = datetime.fromtimestamp(int(started), UTC)
    folders = sorted({"/" + path.split("/")[1] for path in paths})

    def lines() -> list[str]:
        minutes, seconds = divmod(max(0, int(now() - started)), 60)
        hours, minutes = divmod(minutes, 60)
        return [
            "",
            f"Started: {moment:%a %b %e %H:%M:%S UTC %Y}",
            f"Up: {hours} hr {minutes:02} min {seconds:02} sec",
            f"Python version: {platform.python_version()}",
            f"Binary version: {__version__}",
            f"Emulation version: {kubernetes}",
            f"Paths: {' '.join(folders)}",
        ]

    return _text_route("statusz", lines)


def _text_route(name: str, lines: Callable[[], Sequence[str]]) -> web.RouteDef:
    """The route of a page that people read; it is text, whatever the Accept header asks for."""

    async def page(_: web.Request) -> web.Response:
        return plain(HTTPStatus.OK, text="\n".join(["", f"bayplan {name}", _NOTE, *lines(), ""]))

    return web.get(f"/{name}", page)
