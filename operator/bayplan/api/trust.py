"""Whom bayplan believes to be the other side of a connection, and as whom it shows itself."""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bayplan.api.errors import CredentialsError

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


def verifying_context(authority: bytes | None, label: str, *, server_name: str = "") -> ssl.SSLContext:
    """Return a TLS client context that trusts `authority` alone (PEM), or the system's roots when None.

    With `server_name` the certificate has to be for that name, which is also sent, instead of the address.

    Raises:
        CredentialsError: `authority` holds no certificate.
    """
    # Checks certificate and name from the start.
    context = _NamedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.server_name = server_name
    if authority is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return context
    # ssl.create_default_context would refuse CAs without a key identifier from Python 3.13 on, as many clusters have;
    # client-go takes them. Like client-go, this one also takes an intermediate authority as a root.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=authority.decode("ascii", errors="ignore") or "empty")
    except (ssl.SSLError, ValueError) as error:
        raise CredentialsError(f"{label}: not a PEM certificate") from error
    return context


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
