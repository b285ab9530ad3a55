"""The keys, certificates and kubeconfig files of one control plane."""

import datetime as dt
import ipaddress
import json
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = dt.timedelta(days=2)
_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


def _write_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    path.touch(mode=0o600)
    path.write_bytes(pem)
    return key


def write_signing_key(private: Path, public: Path) -> None:
    """Writes the key pair that signs and checks service account tokens."""
    key = _write_key(private)
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


class CertificateAuthority:
    """Issues the serving certificate and any number of client certificates; lives in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.certificate_file = folder / "ca.crt"
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bayplan-test-ca")])
        self._key = _write_key(folder / "ca.key")
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(authority=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def serving(self) -> tuple[Path, Path]:
        """Writes a certificate for 127.0.0.1 and the in-cluster names; returns its file and its key's."""
        addresses = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        names = x509.SubjectAlternativeName([*addresses, *(x509.DNSName(name) for name in _SERVER_NAMES)])
        return self._issue("serving", _subject("kube-apiserver", ()), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, user: str, groups: Sequence[str]) -> tuple[Path, Path]:
        """Writes a certificate the API server takes for `user` in `groups`; returns its file and the key's."""
        files = f"client-{user.replace(':', '-').replace('/', '-')}"
        return self._issue(files, _subject(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self,
        files: str,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
    ) -> tuple[Path, Path]:
        certificate_file, key_file = self._folder / f"{files}.crt", self._folder / f"{files}.key"
        key = _write_key(key_file)
        builder = (
            self._builder(subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return certificate_file, key_file

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        issuer_key = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_key), critical=False)
        )


def _subject(user: str, groups: Sequence[str]) -> x509.Name:
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def write_kubeconfig(path: Path, *, url: str, ca_file: Path, user: dict[str, object], name: str = "test") -> Path:
    """Writes a kubeconfig with one cluster and one user; `user` is the user's entry as kubectl reads it.

    `name` is what cluster, user and context are called.
    """
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority": str(ca_file)}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=2))  # JSON is YAML, and needs no library to write
    return path
