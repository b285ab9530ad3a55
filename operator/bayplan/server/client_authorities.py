"""Who signs the certificates of clients that the secure port believes."""

import ssl

from bayplan.api.trust import trust_authorities


class ServingContext(ssl.SSLContext):
    """A TLS server context that remembers whose client certificates it takes."""

    client_authorities: bytes | None = None


def trust_client_authorities(context: ServingContext, authorities: bytes) -> None:
    """Have `context` ask for a client certificate, and end the handshake for one that `authorities` did not sign.

    Raises:
        CredentialsError: they are no PEM certificates.
    """
    context.verify_mode = ssl.CERT_OPTIONAL
    trust_authorities(context, authorities, "the authorities of client certificates are not PEM certificates")
    context.client_authorities = authorities


def checked_authorities(authorities: bytes) -> bytes:
    """Return `authorities` if they are PEM certificates; raises CredentialsError otherwise."""
    trust_client_authorities(ServingContext(ssl.PROTOCOL_TLS_SERVER), authorities)
    return authorities
