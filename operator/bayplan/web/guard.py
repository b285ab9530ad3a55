"""Who may see the page: the person who started it, in one browser, and no other site."""

import secrets
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bayplan.server.answers import plain

LOOPBACK: Final = "127.0.0.1"
OPEN: Final = "/open"
"""The path that takes the token."""
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
    """Lets in whoever brings the token once, and the browser that did from then on; the routes rely on it.

    Every request must name this server by the address it listens at, so that no other site reaches it by a name of its
    own, and must not come from another site's page. The token is good for one browser and is then forgotten; what the
    browser keeps is another secret, in a cookie that scripts cannot read and that no other site's request carries.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._hosts = {f"{LOOPBACK}:{port}", f"localhost:{port}"}
        self._token: str | None = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        # Cookies are not kept apart by port.
        self._cookie = f"bayplan-{port}"

    @property
    def address(self) -> str:
        """Where a browser gets in, once."""
        return f"http://{LOOPBACK}:{self._port}{OPEN}?token={self._token or ''}"

    def install(self, app: web.Application) -> None:
        """Have all of the application's answers pass this guard."""
        app.middlewares.append(self._middleware())
        app.on_response_prepare.append(_harden)
        app.router.add_get(OPEN, self._open, allow_head=False)

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
        if (origin is not None and origin != f"http://{host}") or headers.get("Sec-Fetch-Site", "none") not in _OWN:
            return HTTPStatus.FORBIDDEN, None, "another site's page may not ask here\n"
        if request.path == OPEN or _same(request.cookies.get(self._cookie), self._session):
            return None
        return HTTPStatus.UNAUTHORIZED, None, "open the address that bayplan web printed; it is good for one browser\n"

    async def _open(self, request: web.Request) -> web.StreamResponse:
        if self._token is None or not _same(request.query.get("token"), self._token):
            text = "this address was used before, or is not the one that was printed: start bayplan web again\n"
            return plain(HTTPStatus.FORBIDDEN, text=text)
        self._token = None
        response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": "/"})
        response.set_cookie(self._cookie, self._session, httponly=True, samesite="Strict", path="/")
        return response


def _same(given: str | None, secret: str) -> bool:
    return given is not None and secrets.compare_digest(given.encode(errors="replace"), secret.encode())


async def _harden(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers["Server"] = "bayplan"
