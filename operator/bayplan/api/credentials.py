"""Who bayplan is to the API server, and how it knows that it talks to the right one."""

import asyncio
import logging
import math
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import (
    PemSource,
    checked_url,
    is_address,
    proxy_from_environment,
    read_context,
    without_userinfo,
)
from bayplan.api.token_source import StaticToken, TokenFile, TokenSource, token_source
from bayplan.api.trust import ReloadedFiles, client_context, load_identity

logger = logging.getLogger(__name__)

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
FILE_CHECK_SECONDS = 60.0
RETRY_SECONDS = 10.0


@dataclass(eq=False, repr=False, kw_only=True)
class Credentials:
    """A server's address, the trust in it, and a token that is always current.

    Relied on by every connection to the API server. Everything is read at construction, so that a broken file
    is an error at start; later changes of files are picked up within a minute, and a change that cannot be
    read keeps what worked. `generation` grows when anything but the token changed: sessions built on an older
    one are to be rebuilt. Secrets never show in its repr or in its messages.
    """

    server: str
    source: TokenSource = field(default_factory=lambda: StaticToken(None))
    ca: PemSource | None = None
    certificate: PemSource | None = None
    key: PemSource | None = None
    tls_server_name: str = ""
    insecure: bool = False
    proxy: str | None = None
    clock: Callable[[], float] = time.monotonic
    generation: int = field(default=-1, init=False)
    ca_pem: bytes | None = field(default=None, init=False)
    """The certificates to trust, PEM; None means the system's."""
    _file_identity: bytes | None = field(default=None, init=False)
    _issued_identity: bytes | None = field(default=None, init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _token: str | None = field(default=None, init=False)
    _rejected: bool = field(default=False, init=False)
    _failure: CredentialsError | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Read all files, and refuse what does not go together."""
        # client-go, too, drops what follows the path (rest.NewRESTClient); it may hold a secret.
        used = re.split("[?#]", checked_url(self.server, "server"), maxsplit=1)[0].rstrip("/")
        self.server = without_userinfo(used)
        if self.server != used:
            logger.warning("server: the user and password in its URL are not used; API servers dropped them")
        self.proxy = checked_url(self.proxy, "proxy") if self.proxy else None
        if (self.certificate is None) != (self.key is None):
            raise CredentialsError("client-certificate and client-key: one is given without the other")
        if is_address(self.tls_server_name):
            raise CredentialsError("tls-server-name: expected a host name, not an address")
        if self.proxy and self.tls_server_name:
            raise CredentialsError("proxy-url and tls-server-name: not supported together")
        self._token_due = self._files_due = self._next_check = self._issued_at = -math.inf
        sources = self.ca, self.certificate, self.key
        self._files = ReloadedFiles(
            sources, self._take, self._tell_reload, names=False, look_seconds=0.0, clock=self.clock
        )

    def __repr__(self) -> str:
        return f"Credentials(server={self.server!r}, generation={self.generation})"

    @property
    def identity_pem(self) -> bytes | None:
        """The client certificate and its key in one PEM, or None."""
        return self._issued_identity or self._file_identity

    def twin(self) -> "Credentials":
        """Return credentials of the same identity, with a token of their own, for use on another event loop."""
        return replace(self)

    def ssl_context(self) -> ssl.SSLContext:
        """Return the TLS context of this generation, checked for changed files first; for aiohttp.

        It asks for the tls-server-name by itself, if there is one.
        """
        self._files.current()
        return self._context

    async def token(self) -> str | None:
        """Return the bearer token to use now, or None when the identity is a certificate or nobody.

        Raises:
            CredentialsError: there has never been a token, and none can be had now.
        """
        if self.clock() < self._next_check:
            return self._known_token()
        if self._lock.locked() and self._token is not None and not self._rejected:
            return self._token
        async with self._lock:
            now = self.clock()
            if now >= self._files_due:
                self._files.current()
                self._files_due = now + FILE_CHECK_SECONDS
            if now >= self._token_due:
                await self._renew_token()
            self._next_check = min(self._token_due, self._files_due)
        return self._known_token()

    def invalidate(self, token: str | None = None) -> None:
        """Have another token fetched at once: the server answered 401 to `token`, unless that is old news."""
        if token is not None and token != self._token:
            return
        self._rejected = True
        self._token_due = min(self._token_due, self._issued_at + self.source.min_interval)
        self._next_check = -math.inf

    def _known_token(self) -> str | None:
        if self._token is None and self._failure is not None:
            raise self._failure
        return self._token

    async def _renew_token(self) -> None:
        try:
            issued = await self.source.issue()
            identity_changed = issued.identity != self._issued_identity
            if identity_changed:
                self._context = self._build_context(self.ca_pem, issued.identity or self._file_identity)
        except CredentialsError as error:
            self._failure = error
            self._token_due = self.clock() + RETRY_SECONDS
            logger.warning("token not renewed, the last one stays in use reason=%s", error)
            return
        if identity_changed:
            self._issued_identity = issued.identity
            self.generation += 1
        self._token, self._failure, self._rejected = issued.token, None, False
        self._issued_at = self.clock()
        self._token_due = self._issued_at + max(issued.lifetime, self.source.min_interval)

    def _take(self, ca: bytes | None, certificate: bytes | None, key: bytes | None) -> None:
        identity = certificate + b"\n" + key + b"\n" if certificate is not None and key is not None else None
        self._context = self._build_context(ca, self._issued_identity or identity)
        self.ca_pem, self._file_identity = ca, identity
        self.generation += 1

    def _tell_reload(self, error: Exception | None) -> None:
        if error is None:
            logger.info("certificates reloaded generation=%d", self.generation)
        else:
            logger.warning("certificates not reloaded, the last ones stay in use reason=%s", error)

    def _build_context(self, ca: bytes | None, identity: bytes | None) -> ssl.SSLContext:
        label = self.ca.label if self.ca else "certificate-authority"
        context = client_context(ca, label, server_name=self.tls_server_name, insecure=self.insecure)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if identity is not None:
            load_identity(context, identity, "client certificate and key")
        return context


def load_credentials(
    kubeconfig: Path | None,
    context: str | None = None,
    *,
    master: str | None = None,
    environment: Mapping[str, str] = os.environ,
    service_account_folder: Path = SERVICE_ACCOUNT_FOLDER,
) -> Credentials:
    """Find the API server and a way to log in; used once, at start.

    The first that is given: `kubeconfig`, $KUBECONFIG (a colon list, merged), the pod's service account
    (unless a context is asked for), ~/.kube/config. `master` is the URL of the API server in place of a kubeconfig's.

    Raises:
        CredentialsError: with the file and field that is missing or malformed.
    """
    parts = environment.get("KUBECONFIG", "").split(os.pathsep)
    listed = [Path(part).expanduser() for part in parts if part] if kubeconfig is None else [kubeconfig]
    if not listed and environment.get("KUBERNETES_SERVICE_HOST") and context is None:
        if master is not None:
            raise CredentialsError("--master: needs a kubeconfig: the token of a pod is for its own cluster")
        return _in_cluster(environment, service_account_folder)
    return _from_kubeconfig(listed or [Path("~/.kube/config").expanduser()], context, environment, master)


def _in_cluster(environment: Mapping[str, str], folder: Path) -> Credentials:
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT") or "443"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    source = TokenFile(folder / "token")
    source.read()
    return Credentials(
        server=server,
        source=source,
        ca=PemSource("service account CA", path=folder / "ca.crt"),
        proxy=proxy_from_environment(server, environment),
    )


def _from_kubeconfig(
    paths: list[Path], context: str | None, environment: Mapping[str, str], master: str | None
) -> Credentials:
    cluster, user = read_context(paths, context)
    named, where = cluster.text("server"), f"{cluster.where}.server"
    server, where = (named, where) if master is None else (master, "--master")
    if not server:
        raise CredentialsError(f"{where}: required")
    insecure = cluster.fields.get("insecure-skip-tls-verify") is True
    source = token_source(user)
    if isinstance(source, TokenFile):
        source.read()
    return Credentials(
        server=checked_url(server, where),
        source=source,
        ca=None if insecure else cluster.pem("certificate-authority"),
        certificate=user.pem("client-certificate"),
        key=user.pem("client-key"),
        tls_server_name=cluster.text("tls-server-name"),
        insecure=insecure,
        proxy=cluster.text("proxy-url") or proxy_from_environment(server, environment),
    )
