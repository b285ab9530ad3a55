"""Certificates for tests: an authority, and what it signs."""

import datetime as dt
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM


class Authority:
    """A certificate authority of its own; `pem` is its certificate."""

    def __init__(self, name: str = "test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.pem = self._sign(self._name, self._key.public_key(), authority=True, names=[]).public_bytes(PEM)

    def issue(
        self, common_name: str, names: list[str], *, organisations: Sequence[str] = (), days: float = 1
    ) -> tuple[bytes, bytes]:
        """Return (certificate, key), PEM, good for the DNS names and IP addresses in `names` until `days` from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organisations]
        if common_name:
            attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
        certificate = self._sign(x509.Name(attributes), key.public_key(), authority=False, names=names, days=days)
        private = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return certificate.public_bytes(PEM), private

    def server_context(self, folder: Path, names: list[str], *, ask_client: bool = False) -> ssl.SSLContext:
        """Return a server's TLS context; with `ask_client` it wants a certificate of this authority."""
        certificate, key = self.issue("server", names)
        file = folder / f"server-{id(self)}.pem"
        file.write_bytes(certificate + key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(file)
        if ask_client:
            context.load_verify_locations(cadata=self.pem.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _sign(self, subject, public_key, *, authority: bool, names: list[str], days: float = 1) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if names:
            alternatives = [_general_name(name) for name in names]
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
