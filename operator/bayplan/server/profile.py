"""`/debug/profile`: where the process spends its time, sampled while it works."""

import asyncio
import sys
import threading
import time
from collections import Counter
from http import HTTPStatus
from types import FrameType

from aiohttp import web

from bayplan.server.answers import plain

DEFAULT_SECONDS = 10.0
LONGEST_SECONDS = 60.0
_INTERVAL_SECONDS = 0.01
_DEEPEST = 100
_MOST_STACKS = 10_000


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
