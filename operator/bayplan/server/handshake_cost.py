"""What a TLS handshake takes from the loop, by the key that signs it."""

from typing import Final

from bayplan.api.errors import CredentialsError

# `python -m e2e.bench.handshakes`: what is paid beside a connection with a key on P-256, which is 1.
_RSA_2048_MORE: Final = 0.4
_LARGE_CURVE_MORE: Final = 1.0
_P256_BITS: Final = 256


def handshake_cost(certificates: bytes) -> float:
    """Return what a connection costs whose server shows the first of some PEM certificates, next to one on P-256.

    Signing with RSA takes time by the third power of the key's length.

    Raises:
        CredentialsError: the certificate is of a kind that OpenSSL may know, but Go and kube-scheduler do not.
    """
    # Loading it takes time and memory, which is for those who serve HTTPS.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415

    try:
        key = x509.load_pem_x509_certificate(certificates).public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CredentialsError("the serving certificate is of a kind that is not supported") from error
    if isinstance(key, rsa.RSAPublicKey):
        return 1.0 + _RSA_2048_MORE * (key.key_size / 2048) ** 3
    if isinstance(key, ec.EllipticCurvePublicKey) and key.key_size > _P256_BITS:
        return 1.0 + _LARGE_CURVE_MORE
    return 1.0
