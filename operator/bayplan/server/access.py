"""Lets in who may: the middleware of the secure port, and that of a port that only this machine reaches."""

import ipaddress
import json
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

from bayplan.server.answers import plain
from bayplan.server.authentication import Authenticator
from bayplan.server.authorization import Authorizer
from bayplan.server.reviews import ReviewError
from bayplan.server.serving_tls import ServingTls

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Security:
    """What makes a port a secure one."""

    tls: ServingTls
    authenticator: Authenticator
    authorizer: Authorizer


def only_who_may(security: Security) -> Middleware:
    """Return what answers 401 to nobody and 403 to who may not; paths that are open wait for nothing.

    Where the API server does not say who a client is, the answer is 401; where it does not say what it may, 500.
    """

    @web.middleware
    async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
        if security.authorizer.is_open(request.path):
            return await handler(request)
        try:
            user = await security.authenticator.user_of(request)
        except ReviewError:
            user = None
        if user is None:
            return plain(HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": "Bearer"})
        verb = request.method.lower()
        try:
            allowed = await security.authorizer.may(user, verb, request.path)
        except ReviewError:
            return plain(HTTPStatus.INTERNAL_SERVER_ERROR)
        if not allowed:
            said = f"User {json.dumps(user.username)} cannot {verb} path {json.dumps(request.path)}"
            return plain(HTTPStatus.FORBIDDEN, text=f"Forbidden: {said}\n")
        return await handler(request)

    return guard


def only_this_machine(resources: Collection[web.AbstractResource | None]) -> Middleware:
    """Return what answers 403 at `resources` to all but clients of the machine that ask by a local name.

    Resources may be added later. For a port without authentication: no web page can have a browser ask, and as from
    the pod's own network `kubectl port-forward` gets through.
    """

    @web.middleware
    async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
        is_ours = is_local(request.remote) and is_local(urlsplit(f"//{request.host}").hostname)
        # The resource itself: how a pattern is written is not how a resource says it.
        if request.match_info.route.resource in resources and not is_ours:
            return plain(HTTPStatus.FORBIDDEN, text="only for clients on the same machine\n")
        return await handler(request)

    return guard


def is_local(host: str | None) -> bool:
    """Whether a host or an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return host is not None and ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
