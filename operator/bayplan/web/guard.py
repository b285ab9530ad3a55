"""Who may see the page: the person who started it, in one browser, and no other site."""

import secrets
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bayplan.server.answers import plain

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
