"""The ports of the running process, from its options to whoever is let in."""

import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials, load_credentials
from bayplan.api.kubeconfig import PemSource
from bayplan.server.access import Authenticator, Authorizer, Security
from bayplan.server.http import HttpServer
from bayplan.server.options import ServingOptions
from bayplan.server.reloaded_files import ClusterAuthorities, ReloadedFiles
from bayplan.server.reviews import Reviews
from bayplan.server.serving_tls import ServingTls, checked_authorities, checked_identity, expired_since

logger = logging.getLogger(__name__)

# What strangers with made-up tokens can have the API server asked is bounded by the port's rate; this only is more.
REVIEWS_PER_SECOND = 50.0
LOCAL = "127.0.0.1"

MakeClient = Callable[[Credentials, float], ApiClient]
"""Makes a client that passes no gate, with so many requests a second."""


@dataclass(slots=True)
class SecurePort:
    """Who is let in by the secure port, and what that needs."""

    security: Security
    reviews: Reviews
    authorities: ClusterAuthorities | None
    tolerates_failed_lookup: bool


class Serving:
    """Opens the ports, in the order in which they can be used, and closes them.

    The process relies on it. `port` is that of plain HTTP and `secure_port` that of HTTPS, 0 while there is none.
    """

    def __init__(self, server: HttpServer, options: ServingOptions, secure: SecurePort | None) -> None:
        self.server = server
        self.port = self.secure_port = 0
        self._options = options
        self._secure = secure

    async def start(self) -> None:
        """Listen at both ports.

        Raises:
            OSError: a port is taken; its file name is the address.
            CredentialsError: the cluster's authorities cannot be looked up, and have to be.
        """
        options, secure = self._options, self._secure
        if secure is not None and secure.authorities is not None and not secure.tolerates_failed_lookup:
            await secure.authorities.look_up()
        if secure is not None and options.secure_port is not None:
            with _named(options.bind_address, options.secure_port):
                self.secure_port = await self.server.start(
                    options.bind_address, options.secure_port, secure.security, shares_port=options.shares_port
                )
        if options.http_port is not None:
            with _named(LOCAL, options.http_port):
                self.port = await self.server.start(LOCAL, options.http_port)

    def work(self) -> dict[str, Coroutine[Any, Any, None]]:
        """What has to run while the ports are open, by name."""
        if self._secure is None or self._secure.authorities is None:
            return {}
        return {"client authorities": self._secure.authorities.run()}

    async def stop(self) -> None:
        """Close the ports, then the connections that told who asks."""
        await self.server.stop()
        if self._secure is not None:
            await self._secure.reviews.close()


def build_secure_port(options: ServingOptions, credentials: Credentials, make_client: MakeClient) -> SecurePort | None:
    """Make what the secure port needs, None where there is to be none; certificates are read, and nobody is asked.

    Raises:
        CredentialsError: a certificate or a kubeconfig does not work.
    """
    if options.secure_port is None:
        return None
    authentication, authorization = options.authentication, options.authorization
    asked = make_client(_credentials(authentication.kubeconfig, credentials), REVIEWS_PER_SECOND)
    reviews = Reviews(asked, make_client(_credentials(authorization.kubeconfig, credentials), REVIEWS_PER_SECOND))
    authorities: ClusterAuthorities | None = None
    client_pem: Callable[[], bytes | None] = _nobody
    if authentication.client_authorities is not None:
        client_pem = ReloadedFiles([authentication.client_authorities], checked_authorities).current
    elif not authentication.skips_lookup:
        authorities = ClusterAuthorities(asked)
        client_pem = authorities.pem
    pair = _serving_pair(options)

    def identity_of(certificate: bytes, key: bytes) -> bytes:
        made = checked_identity(certificate, key)
        if (expired := expired_since(certificate, datetime.now(UTC))) is not None:
            logger.warning(
                "serving with a certificate that has expired certificate=%s expired=%s",
                pair[0].name,
                expired.isoformat(),
            )
        return made

    identity = ReloadedFiles(pair, identity_of)
    tls = ServingTls(identity.current, client_pem, options.tls)
    return SecurePort(
        Security(
            tls,
            Authenticator(tls, reviews, token_seconds=authentication.token_seconds),
            Authorizer(
                reviews,
                authorization.always_allow_paths,
                allowed_seconds=authorization.allowed_seconds,
                denied_seconds=authorization.denied_seconds,
            ),
        ),
        reviews,
        authorities,
        authentication.tolerates_failed_lookup,
    )


def _serving_pair(options: ServingOptions) -> tuple[PemSource, PemSource]:
    if options.certificate is not None and options.key is not None:
        return options.certificate, options.key
    # Imported here: only who has no certificate needs to know how one is made.
    from bayplan.server.serving_tls import pair_in, self_signed  # noqa: PLC0415

    if options.certificate_directory is not None:
        return pair_in(options.certificate_directory, options.bind_address)
    certificate, key = self_signed(options.bind_address)
    logger.info("serving with a certificate of its own, which nobody can check; --tls-cert-file names another")
    return PemSource("certificate", data=certificate), PemSource("key", data=key)


def _credentials(kubeconfig: Path | None, scheduled: Credentials) -> Credentials:
    return scheduled if kubeconfig is None else load_credentials(kubeconfig)


def _nobody() -> None:
    return None


@contextmanager
def _named(address: str, port: int) -> Iterator[None]:
    """Have an error say which of the two ports it is about."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), f"{address or '*'}:{port}") from error
