"""The certificates that the secure port shows, its own where it is given none, and what handshakes with them cost.

Loaded only where HTTPS is served, since cryptography takes eight megabytes.
"""

import datetime as dt
import ipaddress
import logging
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import PemSource
from bayplan.api.trust import load_identity
from bayplan.server.client_authorities import ServingContext, trust_client_authorities
from bayplan.server.options import ServingOptions, TlsPolicy

logger = logging.getLogger(__name__)

PAIR_NAME = "bayplan"
"""What the files are called in `--cert-dir`, before `.crt` and `.key`."""
# Longer than any process runs: there is nobody to rotate it, and who does not check it does not check its end either.
LIFETIME = dt.timedelta(days=3650)
_LONGEST_COMMON_NAME = 64
# `python -m e2e.bench.handshakes`: what is paid beside a connection with a key on P-256, which is 1.
_RSA_2048_MORE: Final = 0.4
_LARGE_CURVE_MORE: Final = 1.0
_P256_BITS: Final = 256


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


def serving_pair(options: ServingOptions) -> tuple[PemSource, PemSource]:
    """Return the certificate to show and its key: those that flags name, or one of its own.

    Raises:
        CredentialsError: files in `--cert-dir` cannot be read or written.
    """
    if options.certificate is not None and options.key is not None:
        return options.certificate, options.key
    if options.certificate_directory is not None:
        return pair_in(options.certificate_directory, options.bind_address)
    certificate, key = self_signed(options.bind_address)
    logger.info("serving with a certificate of its own, which nobody can check; --tls-cert-file names another")
    return PemSource("certificate", data=certificate), PemSource("key", data=key)


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


def pair_fault(certificate: bytes, key: bytes) -> str | None:
    """Return what is wrong with the PEM of a certificate and that of its key, None where nothing is found."""
    fault = _certificate_fault(certificate) or _key_fault(key)
    if fault is not None:
        return fault
    shown = x509.load_pem_x509_certificate(certificate).public_key()
    is_pair = load_pem_private_key(key, password=None).public_key() == shown
    return None if is_pair else "the key is not that of the certificate"


def expired_since(certificate: bytes, now: datetime) -> datetime | None:
    """Return when the first of some PEM certificates, which loads, expired, None where it is good at `now`."""
    until = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    return until if until <= now else None


def _certificate_fault(certificate: bytes) -> str | None:
    if not certificate.strip():
        return "the certificate's file is empty"
    try:
        x509.load_pem_x509_certificate(certificate).public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "the certificate's file does not begin with a PEM certificate of a kind that is known"
    return None


def _key_fault(key: bytes) -> str | None:
    if not key.strip():
        return "the key's file is empty"
    try:
        load_pem_private_key(key, password=None)
    except TypeError:
        return "the key is encrypted, and there is nobody to ask for its password"
    except (ValueError, UnsupportedAlgorithm):
        return "the key's file has no PEM private key of a kind that is known"
    return None


def handshake_cost(certificates: bytes) -> float:
    """Return what a connection costs whose server shows the first of some PEM certificates, next to one on P-256.

    Signing with RSA takes time by the third power of the key's length.

    Raises:
        CredentialsError: the certificate is of a kind that OpenSSL may know, but Go and kube-scheduler do not.
    """
    try:
        key = x509.load_pem_x509_certificate(certificates).public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CredentialsError("the serving certificate is of a kind that is not supported") from error
    if isinstance(key, rsa.RSAPublicKey):
        return 1.0 + _RSA_2048_MORE * (key.key_size / 2048) ** 3
    if isinstance(key, ec.EllipticCurvePublicKey) and key.key_size > _P256_BITS:
        return 1.0 + _LARGE_CURVE_MORE
    return 1.0


@dataclass(eq=False)
class ServingTls:
    """Gives each new connection the TLS context of the moment.

    HttpServer relies on it. `identity` gives certificates and key in one PEM, `client_authorities` the PEM of whoever
    signs clients' certificates, None for nobody; both must load, and are asked at each connection. Sessions are never
    resumed: who a client is is found out at each connection.

    Raises:
        CredentialsError: `identity` or `policy` does not work.
    """

    identity: Callable[[], bytes]
    client_authorities: Callable[[], bytes | None]
    policy: TlsPolicy = field(default_factory=TlsPolicy)

    def __post_init__(self) -> None:
        """Make the first context."""
        self._made_of = self.identity(), self.client_authorities()
        self._context = self._make(*self._made_of)
        self._cost = handshake_cost(self._made_of[0])

    def context(self) -> ServingContext:
        """Return the context for a connection that begins now; raises CredentialsError for parts that do not load."""
        parts = (self.identity(), self.client_authorities())
        if parts != self._made_of:
            self._context = self._make(*parts)
            self._cost = handshake_cost(parts[0])
            self._made_of = parts
        return self._context

    def cost(self) -> float:
        """Return what a handshake costs with the certificate that was shown last, as `handshake_cost` counts."""
        return self._cost

    def believes(self, context: ssl.SSLContext) -> bool:
        """Whether a client certificate that was checked by `context` is one that a new connection would be taken with.

        Connections outlive contexts, and an authority that was removed must not count any more.
        """
        return isinstance(context, ServingContext) and context.client_authorities == self.client_authorities()

    def _make(self, identity: bytes, client_authorities: bytes | None) -> ServingContext:
        context = ServingContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self.policy.minimum_version
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
        context.num_tickets = 0
        context.set_alpn_protocols(["http/1.1"])
        if self.policy.ciphers is not None:
            try:
                context.set_ciphers(self.policy.ciphers)
            except ssl.SSLError as error:
                raise CredentialsError("--tls-cipher-suites: OpenSSL has none of them") from error
        load_identity(context, identity, "--tls-cert-file and --tls-private-key-file")
        if client_authorities is not None:
            trust_client_authorities(context, client_authorities)
        return context


def checked_identity(certificate: bytes, key: bytes) -> bytes:
    """Return both in one PEM if they belong together and can be shown.

    Raises:
        CredentialsError: they cannot, with the reason.
    """
    identity = certificate + b"\n" + key + b"\n"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        load_identity(context, identity, "certificate and key")
    except CredentialsError as error:
        fault = pair_fault(certificate, key)
        if fault is None and isinstance(error.__cause__, ssl.SSLError):
            fault = f"OpenSSL does not take them: {error.__cause__.reason}"
        raise CredentialsError(fault or str(error)) from error
    handshake_cost(identity)
    return identity
