"""Who a client of the secure port is, what it may ask for, and the middleware that lets in who may."""

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bayplan.api.client import ApiClient
from bayplan.api.errors import DECODE_ERRORS, AmbiguousError, CredentialsError, UnreachableError
from bayplan.api.kubeconfig import is_local
from bayplan.api.response import decode_status
from bayplan.server.answers import plain
from bayplan.server.client_authorities import checked_authorities
from bayplan.server.options import AuthenticationOptions, AuthorizationOptions
from bayplan.server.reviews import ReviewCache, ReviewError, Reviews, User

if TYPE_CHECKING:
    from bayplan.server.serving_tls import ServingTls

AUTHENTICATED = "system:authenticated"
"""The group of everybody who is somebody."""
# In certificates: RFC 4514's uid is another thing (upstream: pkg/authentication/request/x509/x509.go).
_UID = "1.3.6.1.4.1.57683.2"

PRIVILEGED_GROUP = "system:masters"
"""Who may do everything; API servers do not ask for it either."""

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Security:
    """What makes a port a secure one: finds out who sent a request, and says whether that user may ask for a path.

    A user is known by the certificate of the connection, otherwise by a bearer token, which the API server is asked
    about once in a while, whether it is somebody's or not. Whoever shows neither is nobody, where kube-scheduler makes
    it `system:anonymous`: no stranger has the API server asked anything. Paths that are always allowed are open to
    everybody, a client without credentials included: whole paths, or with `*` at the end all that begin so. A leading
    `/` may be left out.
    """

    tls: "ServingTls"
    reviews: Reviews
    authentication: AuthenticationOptions
    authorization: AuthorizationOptions

    def __post_init__(self) -> None:
        """Know of nobody yet."""
        self._users: ReviewCache[User | None] = ReviewCache(lambda _: self.authentication.token_seconds, _size_of)
        allowed, denied = self.authorization.allowed_seconds, self.authorization.denied_seconds
        self._answers: ReviewCache[bool] = ReviewCache(lambda may: allowed if may else denied, lambda _: 0)
        always = self.authorization.always_allow_paths
        self._open = [path if path.startswith(("/", "*")) else f"/{path}" for path in always]

    async def user_of(self, request: web.Request) -> User | None:
        """Return who sent it, None for nobody; raises ReviewError where the API server does not say."""
        transport = request.transport
        if transport is not None:
            peer, tls = transport.get_extra_info("peercert"), transport.get_extra_info("ssl_object")
            if peer and tls is not None and self.tls.believes(tls.context) and (user := user_of_certificate(peer)):
                return user
        token = bearer_token(request.headers.get("Authorization", ""))
        if token is None:
            return None
        user = await self._users.get(token.encode(), lambda: self.reviews.user_of(token))
        return None if user is None else _authenticated(user)

    def is_open(self, path: str) -> bool:
        """Whether everybody may ask for `path`, so that nobody has to be authenticated for it."""
        return any(path.startswith(each[:-1]) if each.endswith("*") else path == each for each in self._open)

    async def may(self, user: User, verb: str, path: str) -> bool:
        """Whether `user` may; raises ReviewError where the API server does not say."""
        if PRIVILEGED_GROUP in user.groups:
            return True
        try:
            key = msgspec.json.encode((user, verb, path))
        except UnicodeEncodeError:
            # No rule can name such a path.
            return False
        return await self._answers.get(key, lambda: self.reviews.may(user, verb, path))


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


def only_who_may(security: Security) -> Middleware:
    """Return what answers 401 to nobody and 403 to who may not; paths that are open wait for nothing.

    Where the API server does not say who a client is, the answer is 401; where it does not say what it may, 500.
    """

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if security.is_open(request.path):
            return await handler(request)
        try:
            user = await security.user_of(request)
        except ReviewError:
            user = None
        if user is None:
            return plain(HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": "Bearer"})
        verb = request.method.lower()
        try:
            allowed = await security.may(user, verb, request.path)
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
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        is_ours = is_local(request.remote or "") and is_local(urlsplit(f"//{request.host}").hostname or "")
        # The resource itself: how a pattern is written is not how a resource says it.
        if request.match_info.route.resource in resources and not is_ours:
            return plain(HTTPStatus.FORBIDDEN, text="only for clients on the same machine\n")
        return await handler(request)

    return guard


CONFIG_MAP = "kube-system/extension-apiserver-authentication"
AUTHORITIES_LOOK_SECONDS = 60.0
RETRY_SECONDS = 10.0
_TIMEOUT_SECONDS = 5.0
_KEY = "client-ca-file"
# From the API server's cache: how old it is matters less than what reading etcd costs.
_PATH = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication?resourceVersion=0"


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


_decoder = msgspec.json.Decoder(_ConfigMap)


class ClusterAuthorities:
    """Holds the authorities in `kube-system/extension-apiserver-authentication`, at most a minute behind it.

    ServingTls relies on it. Until they were read, and where there are none, no client certificate counts. What was
    read stays while it cannot be read.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._known: bytes | None = None
        self._problem: str | None = None

    def pem(self) -> bytes | None:
        """Return the authorities in PEM, None where none are known."""
        return self._known

    async def run(self) -> None:
        """Read them again and again until cancelled."""
        while True:
            pause = AUTHORITIES_LOOK_SECONDS
            try:
                await self.look_up()
            except CredentialsError as error:
                pause = RETRY_SECONDS
                if str(error) != self._problem:
                    logger.warning("client certificates are taken as before, or not at all reason=%s", error)
                self._problem = str(error)
            await asyncio.sleep(pause)

    async def look_up(self) -> None:
        """Read them once.

        Raises:
            CredentialsError: they cannot be read, with the reason.
        """
        try:
            answer = await self._client.request("GET", _PATH, timeout_seconds=_TIMEOUT_SECONDS)
            if answer.status != 200:
                raise CredentialsError(f"{CONFIG_MAP}: {answer.status} {decode_status(answer.body)[1]}")
            found = _decoder.decode(answer.body).data.get(_KEY, "").encode()
        except (AmbiguousError, UnreachableError) as error:
            raise CredentialsError(f"{CONFIG_MAP}: {error}") from error
        except (*DECODE_ERRORS, UnicodeEncodeError) as error:
            raise CredentialsError(f"{CONFIG_MAP}: the answer cannot be read") from error
        known = checked_authorities(found) if found else None
        if known != self._known:
            logger.info("client certificates are taken of the cluster's authorities configmap=%s", CONFIG_MAP)
        self._known, self._problem = known, None
