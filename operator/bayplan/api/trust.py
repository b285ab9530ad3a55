"""Whom bayplan believes to be the other side of a connection, as whom it shows itself, and by files that may change."""

import os
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import PemSource

_ROOTS_OF_THE_SYSTEM = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class _NamedContext(ssl.SSLContext):
    """A TLS client context that asks for one server name, whatever address its user connects to.

    kopf gives its session no way to name the server, so the name has to come with the context.
    """

    server_name = ""

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Begin TLS over buffers, as asyncio and uvloop do for every connection."""
        return super().wrap_bio(incoming, outgoing, server_side, self.server_name or server_hostname, session)


def client_context(
    authority: bytes | None, label: str, *, server_name: str = "", insecure: bool = False
) -> ssl.SSLContext:
    """Return a TLS client context that trusts `authority` alone (PEM), or the system's roots when None.

    With `server_name` the certificate has to be for that name, which is also sent, instead of the address. With
    `insecure` any certificate will do.

    Raises:
        CredentialsError: `authority` holds no certificate.
    """
    # Checks certificate and name from the start.
    context = _NamedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.server_name = server_name
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if authority is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        trust_authorities(context, authority, f"{label}: not a PEM certificate")
    return context


def trust_authorities(context: ssl.SSLContext, authorities: bytes, problem: str) -> None:
    """Have `context` trust PEM certificates as client-go does; raises CredentialsError with `problem` for others."""
    # ssl.create_default_context would refuse CAs without a key identifier from Python 3.13 on, as many clusters have;
    # client-go takes them, and an intermediate authority as a root.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=authorities.decode("ascii", errors="ignore") or "empty")
    except (ssl.SSLError, ValueError) as error:
        raise CredentialsError(problem) from error


def load_identity(context: ssl.SSLContext, identity: bytes, label: str) -> None:
    """Have `context` identify itself by `identity`: certificates, its own first, and the key to it, in one PEM.

    Raises:
        CredentialsError: they are not that; `label` names the fields they came from.
    """
    # The ssl module only reads files. One in memory keeps the key off the disk where the system has such
    # files.
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("identity")
        path = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(identity)
            file.flush()
            # An encrypted key would make OpenSSL ask on the terminal; the empty answer makes it an error.
            context.load_cert_chain(path, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        raise CredentialsError(f"{label}: not a matching, unencrypted PEM pair") from error
    finally:
        if not path.startswith("/proc/"):
            Path(path).unlink()


@contextmanager
def without_system_roots() -> Iterator[None]:
    """Have a client of pyreqwest that is built in the block trust the roots that it is given, and no others.

    Its builder can only add roots to the system's, which rustls-native-certs finds by two variables of the environment
    (ADR 14). They are back when the block ends: the children of the process and OpenSSL read them, too. The block must
    not await.
    """
    before = {name: os.environ.pop(name, None) for name in _ROOTS_OF_THE_SYSTEM}
    os.environ["SSL_CERT_FILE"] = os.devnull
    try:
        yield
    finally:
        del os.environ["SSL_CERT_FILE"]
        os.environ.update({name: value for name, value in before.items() if value is not None})


LOOK_SECONDS = 1.0

T = TypeVar("T")


@dataclass(eq=False)
class ReloadedFiles(Generic[T]):
    """Holds what `make` returns for the content of `sources`, at most `look_seconds` behind the files when asked.

    Credentials and ServingTls rely on it. What was made stays where a file cannot be read or `make` raises
    CredentialsError, as between the two halves of a rotation. That is told once for each state of the files, and tried
    again at each look, for it may have been the process that was short of something. `tell` gets the error, None where
    something new was made. Nobody looks at the files until `current` is called. A source that is None has no content.
    `clock` is monotonic, in seconds.

    Raises:
        CredentialsError: the first time; with `names` it begins with the flags and the files.
    """

    sources: Sequence[PemSource | None]
    make: Callable[..., T]
    tell: Callable[[Exception | None], None] = lambda error: None
    names: bool = field(default=True, kw_only=True)
    look_seconds: float = field(default=LOOK_SECONDS, kw_only=True)
    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)

    def __post_init__(self) -> None:
        """Make it of the files as they are."""
        self._signatures = self._look()
        self._content = self._read()
        self._made = self._make_of(self._content)
        self._failed = False
        self._next_look = self.clock() + self.look_seconds

    def current(self) -> T:
        """Return what the files make now; the same object as before while their content is the same."""
        now = self.clock()
        if now >= self._next_look:
            self._next_look = now + self.look_seconds
            signatures = self._look()
            is_news = signatures != self._signatures
            if is_news or self._failed:
                self._signatures = signatures
                self._reload(is_news=is_news)
        return self._made

    def _reload(self, *, is_news: bool) -> None:
        try:
            content = self._read()
            is_changed = content != self._content
            if is_changed:
                self._made = self._make_of(content)
        except (CredentialsError, OSError) as error:
            self._failed = True
            if is_news:
                self.tell(error)
            return
        self._failed = False
        if is_changed:
            self._content = content
            self.tell(None)

    def _make_of(self, content: Sequence[bytes | None]) -> T:
        try:
            return self.make(*content)
        except CredentialsError as error:
            if not self.names:
                raise
            names = ", ".join(each.name for each in self.sources if each is not None)
            raise CredentialsError(f"{names}: {error}") from error

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [None if each is None else each.signature() for each in self.sources]

    def _read(self) -> list[bytes | None]:
        return [None if each is None else each.read() for each in self.sources]
