"""What runs here, for whoever debugs it: `/configz`, `/flagz`, `/statusz`, `/debug/cache` and `/debug/profile`."""

import asyncio
import platform
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from types import FrameType
from typing import Final

import msgspec
from aiohttp import web

from bayplan import __version__
from bayplan.scheduler.cache_comparison import CacheComparison, Difference, ListError
from bayplan.server.answers import answer, plain
from bayplan.server.metrics import process_start_seconds
from bayplan.shown_text import shortened

LARGEST_ANSWER_BYTES = 64 * 1024
_SHOWN = 50
_LONGEST_TEXT = 200

DEFAULT_SECONDS = 10.0
LONGEST_SECONDS = 60.0
_INTERVAL_SECONDS = 0.01
_DEEPEST = 100
_MOST_STACKS = 10_000

_NOTE: Final = "Warning: for people who look for a fault. The format may change; no program should read it."


def cache_route(compare: Callable[[], Awaitable[CacheComparison]]) -> web.RouteDef:
    """Return the route of `/debug/cache`, which answers with what `compare` finds.

    It names pods and nodes, so it is for whoever HttpServer lets in. The answer is at most `LARGEST_ANSWER_BYTES`: all
    differences are counted, the first fifty shown. Answers: 200, and 503 where the API server does
    not answer with its lists.
    """

    async def cache(_: web.Request) -> web.Response:
        try:
            found = await compare()
        except ListError as error:
            return _answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": _cut(str(error))})
        shown = sorted(found.differences, key=lambda each: (each.kind, each.key))[:_SHOWN]
        body = {
            "differences": found.counts,
            "first": [_difference(each) for each in shown],
            "compared": found.compared,
        }
        return _answer(HTTPStatus.OK, body)

    return web.get("/debug/cache", cache)


def _difference(difference: Difference) -> dict[str, str | None]:
    return {
        "kind": difference.kind,
        "key": _cut(difference.key),
        "cache": None if difference.held is None else _cut(str(difference.held)),
        "api": None if difference.listed is None else _cut(str(difference.listed)),
    }


def _cut(text: str) -> str:
    """Return text of bounded length in printable ASCII: names come from users, and facts of huge pods are long."""
    return shortened(ascii(text)[1:-1], _LONGEST_TEXT)


def _answer(status: HTTPStatus, body: object) -> web.Response:
    return answer(msgspec.json.encode(body) + b"\n", "application/json; charset=utf-8", status)


def profile_route() -> web.RouteDef:
    """Return the route of `/debug/profile?seconds=N`: stacks of all threads of Python with how often each was seen.

    A line each, `thread;function (file:line);... count`, the outermost first: what flame graphs are made of, as from
    `py-spy record --format raw`. A hundred samples a second, for up to `LONGEST_SECONDS`; one profile at a time. Names
    of functions and files are all that it holds. A client that hangs up ends it. Answers: 200, 400 for a number that
    is none, 409 while another runs.
    """
    running = asyncio.Lock()

    async def profile(request: web.Request) -> web.Response:
        try:
            seconds = float(request.query.get("seconds", DEFAULT_SECONDS))
        except ValueError:
            seconds = 0.0
        if not 0.0 < seconds <= LONGEST_SECONDS:
            return plain(HTTPStatus.BAD_REQUEST, text=f"seconds: more than 0 and up to {LONGEST_SECONDS:.0f}\n")
        if running.locked():
            return plain(HTTPStatus.CONFLICT, text="another profile is being taken\n")
        async with running:
            given_up = threading.Event()
            try:
                stacks = await asyncio.to_thread(sample, seconds, given_up)
            finally:
                given_up.set()
        return plain(HTTPStatus.OK, text="".join(f"{stack} {count}\n" for stack, count in stacks.most_common()))

    return web.get("/debug/profile", profile)


def sample(seconds: float, given_up: threading.Event) -> "Counter[str]":
    """Return how often each stack was seen in `seconds`, or until it is given up; the calling thread is left out."""
    stacks: Counter[str] = Counter()
    own = threading.get_ident()
    until = time.monotonic() + seconds
    while time.monotonic() < until and not given_up.wait(_INTERVAL_SECONDS):
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():  # noqa: SLF001  documented; nothing else tells
            if ident != own:
                stack = f"{names.get(ident, ident)};{_folded(frame)}"
                if stack in stacks or len(stacks) < _MOST_STACKS:
                    stacks[stack] += 1
    return stacks


def _folded(innermost: FrameType) -> str:
    parts: list[str] = []
    frame: FrameType | None = innermost
    while frame is not None and len(parts) < _DEEPEST:
        code = frame.f_code
        parts.append(f"{code.co_qualname} ({code.co_filename.rpartition('/')[2]}:{frame.f_lineno})")
        frame = frame.f_back
    return ";".join(reversed(parts))


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
