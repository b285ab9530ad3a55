"""Serves the page on loopback until that is interrupted, opens it in a browser, and lets that one alone in."""

import asyncio
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol

import click
import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bayplan.api.live_paths import RefusedQuestionError
from bayplan.live.answers import ExplanationAnswer
from bayplan.server.answers import plain
from bayplan.server.live import MAX_BODY_BYTES, Inspector, answered, count_asked, live_routes
from bayplan.web.updates import Updates, told_placement, told_pod

LOOPBACK: Final = "127.0.0.1"
OPEN: Final = "/open"
"""Where the page exchanges the token."""
PAGE: Final = "/"
"""The page itself. It and what is below `/static/` tell nothing of a cluster, and are for everybody."""
PAGE_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
"""Nothing inline, nothing from elsewhere, and in nobody's frame."""
_HEADERS: Final = {
    "Content-Security-Policy": PAGE_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_OWN: Final = ("same-origin", "none")
"""What `Sec-Fetch-Site` says of the page itself, and of an address that was typed in."""
_SAFE: Final = ("GET", "HEAD")


class Guard:
    """Tells of the cluster whoever brings the token once, and the browser that did from then on; the routes rely on it.

    Every request must name this server by the address it listens at, so that no other site reaches it by a name of its
    own, and must not come from another site's page, which may lead to the page and no further. The token is good for
    one browser and is then forgotten. What that gets for it is another secret, which the page keeps for itself and
    shows in a header: a cookie would be sent to all servers of this machine, whichever port and user they are of.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._hosts = {f"{LOOPBACK}:{port}", f"localhost:{port}"}
        self._token: str | None = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)

    @property
    def address(self) -> str:
        """Where a browser gets in, once."""
        return f"http://{LOOPBACK}:{self._port}{PAGE}?token={self._token or ''}"

    def install(self, app: web.Application) -> None:
        """Have all of the application's answers pass this guard."""
        app.middlewares.append(self._middleware())
        app.on_response_prepare.append(_harden)
        app.router.add_post(OPEN, self._open)

    def _middleware(self) -> Middleware:
        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            refusal = self._refusal(request)
            return await handler(request) if refusal is None else plain(*refusal)

        return guarded

    def _refusal(self, request: web.Request) -> tuple[int, None, str] | None:
        headers = request.headers
        host = headers.get("Host", "")
        if host not in self._hosts:
            return HTTPStatus.FORBIDDEN, None, f"this page is at http://{LOOPBACK}:{self._port} and nowhere else\n"
        origin = headers.get("Origin")
        if origin is None and request.method not in _SAFE:
            return HTTPStatus.FORBIDDEN, None, "a request that asks for work must say where it comes from\n"
        own = headers.get("Sec-Fetch-Site", "none") in _OWN
        led_here = request.path == PAGE and headers.get("Sec-Fetch-Mode") == "navigate"
        if (origin is not None and origin != f"http://{host}") or not (own or led_here):
            return HTTPStatus.FORBIDDEN, None, "another site's page may not ask here\n"
        if request.path in {PAGE, OPEN} or request.path.startswith("/static/"):
            return None
        if _same(headers.get("Authorization", ""), f"Bearer {self._session}"):
            return None
        return HTTPStatus.UNAUTHORIZED, None, "open the address that bayplan web printed; it is good for one browser\n"

    async def _open(self, request: web.Request) -> web.StreamResponse:
        if self._token is None or not _same(await request.text(), self._token):
            text = "this address was used before, or is not the one that was printed: start bayplan web again\n"
            return plain(HTTPStatus.FORBIDDEN, text=text)
        self._token = None
        return web.Response(text=self._session)


def _same(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode(errors="replace"), secret.encode())


async def _harden(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers["Server"] = "bayplan"


_STATIC: Final = Path(__file__).parent / "static"
_TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

_SHUTDOWN_SECONDS: Final = 1.0


def make_app(source: Inspector, updates: Updates, guard: Guard) -> web.Application:
    """Return the application that serves the page and what it asks of `source`, to whoever `guard` lets in."""
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    guard.install(app)
    app.router.add_routes(live_routes(source))
    for path, file in _page_files().items():
        app.router.add_get(path, _file(file))

    async def events(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        async for event in updates.events():
            await response.write(event)
        return response

    async def told(request: web.Request) -> bytes:
        query = request.query
        explained = await source.explanation(query.get("namespace", ""), query.get("name", ""))
        return msgspec.json.encode(told_pod(msgspec.json.decode(explained, type=ExplanationAnswer)))

    async def asked(request: web.Request) -> bytes:
        count = count_asked(request)
        try:
            text = await request.read()
        except web.HTTPRequestEntityTooLarge:
            most = f"it is larger than the {MAX_BODY_BYTES // 1024} KiB of one question"
            raise RefusedQuestionError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, most) from None
        return msgspec.json.encode(await told_placement(source, text, count))

    app.router.add_get("/events", events)
    app.router.add_get("/told", answered(told))
    app.router.add_post("/asked", answered(asked))

    async def end_streams(_: web.Application) -> None:
        await updates.close()

    app.on_shutdown.append(end_streams)
    return app


def _page_files() -> dict[str, Path]:
    found = {f"/static/{each.relative_to(_STATIC)}": each for each in _STATIC.rglob("*") if each.is_file()}
    return {PAGE: _STATIC / "index.html", **found}


def _file(path: Path) -> Handler:
    body = path.read_bytes()
    kind = f"{_TYPES.get(path.suffix, 'text/plain')}; charset=utf-8"

    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, headers={"Content-Type": kind, "Cache-Control": "no-cache"})

    return handler


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
) -> None:
    """Serve the page of `source`, of which `inspector` answers questions, until SIGINT or SIGTERM.

    `opened` is called with the address once the page can be had.
    """
    ended = asyncio.Event()
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


@contextmanager
def opener(command: str, *, browser: bool) -> Iterator[Callable[[str], None]]:
    """Give what prints the address of a page, and opens it if `browser` and there is one outside of terminals.

    The address lets its first visitor in, and the arguments of a program are for every user to read. So the browser is
    told of a file that leads there, which this user alone may read, and which is there until the block ends.
    """
    with TemporaryDirectory(prefix="bayplan-", ignore_cleanup_errors=True) as folder:

        def opened(address: str) -> None:
            click.echo(f"{command}: {address}")
            click.echo("The address is good for one browser, once. Ctrl-C ends it.")
            sys.stdout.flush()
            if browser:
                leading = Path(folder) / "open.html"
                leading.touch(0o600)
                leading.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">\n')
                # The browser may want the page before it returns, so the server does not wait for it.
                threading.Thread(target=_open, args=(leading.as_uri(),), daemon=True).start()

        yield opened


def _open(address: str) -> None:
    # Raised where there is none: the address is printed.
    with suppress(webbrowser.Error):
        found = webbrowser.get()
        # One that runs in this terminal would take it over.
        if isinstance(found, webbrowser.BackgroundBrowser) or not isinstance(found, webbrowser.GenericBrowser):
            found.open(address)
