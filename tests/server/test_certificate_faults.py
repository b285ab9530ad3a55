from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.faults.certificates import PEM, Authority

from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import PemSource
from bayplan.api.trust import ReloadedFiles
from bayplan.server.serving_tls import checked_identity, expired_since, signed

CERTIFICATE, KEY = Authority().issue("a", [])


def private_key(encoding=serialization.PrivateFormat.PKCS8, encryption=None):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(PEM, encoding, encryption or serialization.NoEncryption())


PASSWORD = serialization.BestAvailableEncryption(b"secret")
FAULTS = {
    "an empty certificate": (b"", KEY, "the certificate's file is empty"),
    "no certificate": (b"junk\n", KEY, "the certificate's file does not begin with a PEM certificate"),
    "a key in the certificate's place": (KEY, KEY, "the certificate's file does not begin with a PEM certificate"),
    "an empty key": (CERTIFICATE, b"\n", "the key's file is empty"),
    "no key": (CERTIFICATE, b"junk\n", "the key's file has no PEM private key"),
    "a certificate in the key's place": (CERTIFICATE, CERTIFICATE, "the key's file has no PEM private key"),
    "an encrypted key": (CERTIFICATE, private_key(encryption=PASSWORD), "the key is encrypted"),
    "a key encrypted the old way": (
        CERTIFICATE,
        private_key(serialization.PrivateFormat.TraditionalOpenSSL, PASSWORD),
        "the key is encrypted",
    ),
    "a key of another certificate": (CERTIFICATE, Authority().issue("b", [])[1], "the key is not that of the certif"),
    "a key of another kind": (CERTIFICATE, private_key(), "the key is not that of the certificate"),
}


def load(folder, certificate, key):
    files = (folder / "tls.crt", folder / "tls.key")
    for path, content in zip(files, (certificate, key), strict=True):
        path.write_bytes(content)
    flags = ("--tls-cert-file", "--tls-private-key-file")
    sources = [PemSource(flag, path=path) for flag, path in zip(flags, files, strict=True)]
    return ReloadedFiles(sources, checked_identity)


@pytest.mark.parametrize(("certificate", "key", "fault"), FAULTS.values(), ids=FAULTS.keys())
def test_what_is_wrong_is_said_in_one_line_with_the_flags_and_the_files(tmp_path, certificate, key, fault):
    with pytest.raises(CredentialsError) as caught:
        load(tmp_path, certificate, key)
    message = str(caught.value)
    named = f"--tls-cert-file {tmp_path}/tls.crt, --tls-private-key-file {tmp_path}/tls.key: {fault}"
    assert message.startswith(named)
    assert "\n" not in message
    assert "PRIVATE" not in message


def test_what_only_openssl_refuses_is_said_in_its_words(tmp_path):
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    with pytest.raises(CredentialsError, match="OpenSSL does not take them: EE_KEY_TOO_SMALL"):
        load(tmp_path, *signed(key, "127.0.0.1"))


def test_when_a_certificate_expired_is_known():
    certificate, _ = Authority().issue("a", [])
    until = datetime.now(UTC) + timedelta(days=1)
    assert expired_since(certificate, until - timedelta(minutes=5)) is None
    expired = expired_since(certificate, until + timedelta(minutes=5))
    assert abs(expired - until) < timedelta(minutes=5)
