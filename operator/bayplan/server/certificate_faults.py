"""What is wrong with a serving certificate and its key, in words: of most OpenSSL only says that there is a fault."""

from datetime import datetime


def pair_fault(certificate: bytes, key: bytes) -> str | None:
    """Return what is wrong with the PEM of a certificate and that of its key, None where nothing is found."""
    # Loading it takes time and memory, which is for those who serve HTTPS; so it is below.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    fault = _certificate_fault(certificate) or _key_fault(key)
    if fault is not None:
        return fault
    shown = x509.load_pem_x509_certificate(certificate).public_key()
    is_pair = load_pem_private_key(key, password=None).public_key() == shown
    return None if is_pair else "the key is not that of the certificate"


def expired_since(certificate: bytes, now: datetime) -> datetime | None:
    """Return when the first of some PEM certificates, which loads, expired, None where it is good at `now`."""
    from cryptography import x509  # noqa: PLC0415

    until = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    return until if until <= now else None


def _certificate_fault(certificate: bytes) -> str | None:
    from cryptography import x509  # noqa: PLC0415
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415

    if not certificate.strip():
        return "the certificate's file is empty"
    try:
        x509.load_pem_x509_certificate(certificate).public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "the certificate's file does not begin with a PEM certificate of a kind that is known"
    return None


def _key_fault(key: bytes) -> str | None:
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    if not key.strip():
        return "the key's file is empty"
    try:
        load_pem_private_key(key, password=None)
    except TypeError:
        return "the key is encrypted, and there is nobody to ask for its password"
    except (ValueError, UnsupportedAlgorithm):
        return "the key's file has no PEM private key of a kind that is known"
    return None
