"""The certificate of who was given none: nobody can check it, but what is said to it is encrypted."""

import datetime as dt
import ipaddress
import logging
import os
import socket
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import PemSource

logger = logging.getLogger(__name__)

PAIR_NAME = "bayplan"
"""What the files are called in `--cert-dir`, before `.crt` and `.key`."""
# Longer than any process runs: there is nobody to rotate it, and who does not check it does not check its end either.
LIFETIME = dt.timedelta(days=3650)
_LONGEST_COMMON_NAME = 64


def self_signed(bind_address: str) -> tuple[bytes, bytes]:
    """Return a new certificate for this host, in PEM, and its key; a key on P-256 costs the loop least a handshake."""
    return signed(ec.generate_private_key(ec.SECP256R1()), bind_address)


def signed(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, bind_address: str) -> tuple[bytes, bytes]:
    """Return a new certificate of `key` for this host, signed by itself, and the key, both in PEM."""
    now = dt.datetime.now(dt.UTC)
    hostname = socket.gethostname()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, (hostname or "localhost")[:_LONGEST_COMMON_NAME])])
    alternatives: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    if hostname.isascii() and hostname not in {"", "localhost"}:
        alternatives.append(x509.DNSName(hostname))
    address = _specific(bind_address)
    if address is not None and not address.is_loopback:
        alternatives.append(x509.IPAddress(address))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of clients may be behind.
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    key_pem = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(encoding), key_pem


def pair_in(directory: Path, bind_address: str) -> tuple[PemSource, PemSource]:
    """Return the pair of files in `directory`, made by `self_signed` where neither is there (upstream: serving.go).

    Raises:
        CredentialsError: one is there without the other, or they cannot be written.
    """
    certificate, key = directory / f"{PAIR_NAME}.crt", directory / f"{PAIR_NAME}.key"
    if certificate.exists() != key.exists():
        raise CredentialsError(f"--cert-dir: {certificate} and {key}: one is there without the other")
    if not certificate.exists():
        certificate_pem, key_pem = self_signed(bind_address)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            # The key first: whoever sees a certificate finds the key to it.
            _write(key, key_pem, 0o600)
            _write(certificate, certificate_pem, 0o644)
        except OSError as error:
            raise CredentialsError(f"--cert-dir: cannot write {error.filename}: {error.strerror}") from error
        logger.info("certificate made certificate=%s key=%s", certificate, key)
    return PemSource("--cert-dir", path=certificate), PemSource("--cert-dir", path=key)


def _write(path: Path, content: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


def _specific(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return None
    return None if found.is_unspecified else found
