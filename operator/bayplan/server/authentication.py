"""Who a client of the secure port is (upstream: apiserver authenticatorfactory/delegating.go)."""

import ssl
import time
from collections.abc import Callable

import msgspec
from aiohttp import web

from bayplan.server.reviews import ReviewCache, Reviews, User
from bayplan.server.serving_tls import ServingTls

AUTHENTICATED = "system:authenticated"
"""The group of everybody who is somebody."""
# In certificates: RFC 4514's uid is another thing (upstream: pkg/authentication/request/x509/x509.go).
_UID = "1.3.6.1.4.1.57683.2"


class Authenticator:
    """Finds out who sent a request: by the certificate of the connection, otherwise by a bearer token.

    Access relies on it. A token is asked about once in `token_seconds`, whether it is somebody's or not. Whoever shows
    neither is nobody, where kube-scheduler makes it `system:anonymous`: no stranger has the API server asked anything.
    """

    def __init__(self, tls: ServingTls, reviews: Reviews, *, token_seconds: float) -> None:
        self._tls = tls
        self._reviews = reviews
        self._users: ReviewCache[User | None] = ReviewCache(lambda _: token_seconds, _size_of)

    async def user_of(self, request: web.Request) -> User | None:
        """Return who sent it, None for nobody; raises ReviewError where the API server does not say."""
        transport = request.transport
        if transport is not None:
            peer, tls = transport.get_extra_info("peercert"), transport.get_extra_info("ssl_object")
            if peer and tls is not None and self._tls.believes(tls.context) and (user := user_of_certificate(peer)):
                return user
        token = bearer_token(request.headers.get("Authorization", ""))
        if token is None:
            return None
        user = await self._users.get(token.encode(), lambda: self._reviews.user_of(token))
        return None if user is None else _authenticated(user)


def user_of_certificate(peer: dict[str, object], now: Callable[[], float] = time.time) -> User | None:
    """Return whom a certificate stands for that was checked, as `ssl` describes it: None without a common name.

    Its subject's common name is the user, its organisations are the groups. One that ended while its connection went on
    stands for nobody. `now` gives seconds since the epoch.
    """
    if ssl.cert_time_to_seconds(str(peer["notAfter"])) < now():
        return None
    subject = [pair for part in peer.get("subject", ()) for pair in part]  # type: ignore[attr-defined]  # tuples of pairs
    names = [value for key, value in subject if key == "commonName"]
    if not names or not names[-1]:
        return None
    uid = next((value for key, value in subject if key == _UID), "")
    groups = tuple(value for key, value in subject if key == "organizationName")
    return _authenticated(User(username=names[-1], uid=uid, groups=groups))


def bearer_token(header: str) -> str | None:
    """Return the token of an `Authorization` header, or None where it has none that could be one."""
    scheme, _, rest = header.strip().partition(" ")
    token = rest.strip()
    is_token = scheme.lower() == "bearer" and token.isascii() and token.isprintable() and " " not in token
    return token if token and is_token else None


def _authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups:
        return user
    return msgspec.structs.replace(user, groups=(*user.groups, AUTHENTICATED))


def _size_of(user: User | None) -> int:
    return 0 if user is None else 8 * len(msgspec.json.encode(user))
