"""Who signs the certificates of clients that the secure port believes."""

import ssl

from bayplan.api.errors import CredentialsError


class ServingContext(ssl.SSLContext):
    """A TLS server context that remembers whose client certificates it takes."""

    client_authorities: bytes | None = None


def trust_client_authorities(context: ServingContext, authorities: bytes) -> None:
    """Have `context` ask for a client certificate, and end the handshake for one that `authorities` did not sign.

    Raises:
        CredentialsError: they are no PEM certificates.
    """
    # As a client's context does: clusters have authorities without a key identifier, and intermediate ones as roots.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    context.verify_mode = ssl.CERT_OPTIONAL
    try:
        context.load_verify_locations(cadata=authorities.decode("ascii", errors="ignore") or "empty")
    except (ssl.SSLError, ValueError) as error:
        raise CredentialsError("the authorities of client certificates are not PEM certificates") from error
    context.client_authorities = authorities


def checked_authorities(authorities: bytes) -> bytes:
    """Return `authorities` if they are PEM certificates; raises CredentialsError otherwise."""
    trust_client_authorities(ServingContext(ssl.PROTOCOL_TLS_SERVER), authorities)
    return authorities
