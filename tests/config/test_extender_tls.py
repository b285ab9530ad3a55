"""What keeps an extender's tlsConfig from being used."""

import os
import ssl
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import serialization
from tests.config.configurations import V1, complaints, load
from tests.faults.certificates import PEM, Authority

from bayplan.config.connections import Extender, ExtenderTLSConfig, extender_tls_errors, tls_context
from bayplan.config.errors import ConfigurationError

AUTHORITY = Authority()
CERTIFICATE, KEY = AUTHORITY.issue("bayplan", [])


def locked(key):
    """The key with a password on it."""
    encryption = serialization.BestAvailableEncryption(b"secret")
    private = serialization.load_pem_private_key(key, None)
    return private.private_bytes(PEM, serialization.PrivateFormat.PKCS8, encryption)


def problems(**fields):
    with pytest.raises(ConfigurationError) as caught:
        tls_context(Extender(tls_config=ExtenderTLSConfig(**fields)))
    return str(caught.value).split("\n")


def test_certificates_are_taken_from_data_or_files_and_data_goes_before_a_file(tmp_path):
    for name, content in (("ca", AUTHORITY.pem), ("cert", CERTIFICATE), ("key", KEY)):
        (tmp_path / name).write_bytes(content)
    files = ExtenderTLSConfig(
        ca_file=str(tmp_path / "ca"), cert_file=str(tmp_path / "cert"), key_file=str(tmp_path / "key")
    )
    data = replace(files, ca_file="/nowhere", ca_data=AUTHORITY.pem)
    for tls in (files, data):
        context = tls_context(Extender(tls_config=tls))
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert len(context.get_ca_certs()) == 1


def test_a_bundle_may_have_comments_in_any_encoding():
    context = tls_context(
        Extender(tls_config=ExtenderTLSConfig(ca_data="# Autorité\n".encode("latin-1") + AUTHORITY.pem))
    )
    assert len(context.get_ca_certs()) == 1


BAD_PAIR = "tlsConfig: certificate and key must be in PEM, without a password, and belong together"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"ca_file": "/nowhere"}, "tlsConfig.caFile: cannot be read: No such file or directory"),
        ({"ca_data": b"hunter2"}, "tlsConfig.caData: holds no certificates in PEM"),
        ({"ca_data": b"\xff"}, "tlsConfig.caData: holds no certificates in PEM"),
        ({"ca_data": KEY}, "tlsConfig.caData: holds no certificates in PEM"),
        (
            {"ca_data": AUTHORITY.pem, "insecure": True},
            "tlsConfig: specifying a root certificates file with the insecure flag is not allowed",
        ),
        ({"cert_data": CERTIFICATE}, "tlsConfig: certificate and key: one is given without the other"),
        ({"cert_data": CERTIFICATE, "key_data": Authority().issue("x", [])[1]}, BAD_PAIR),
        ({"cert_data": CERTIFICATE, "key_data": locked(KEY)}, BAD_PAIR),
        ({"cert_data": b"hunter2", "key_data": b"hunter2"}, BAD_PAIR),
    ],
)
def test_what_cannot_work_is_an_error_at_its_field_without_the_key(fields, expected):
    assert problems(**fields) == [expected]


def test_what_is_no_file_of_certificates_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    (tmp_path / "large").write_bytes(bytes(2**20 + 1))
    assert problems(ca_file=str(tmp_path / "pipe")) == ["tlsConfig.caFile: is no regular file"]
    assert problems(ca_file=str(tmp_path / "empty")) == ["tlsConfig.caFile: is empty"]
    assert problems(ca_file=str(tmp_path / "large")) == ["tlsConfig.caFile: is larger than 1048576 bytes"]


def test_all_that_is_wrong_comes_at_once():
    assert [line.split(": ")[0] for line in problems(ca_file="/nowhere", cert_file="/nowhere", insecure=True)] == [
        "tlsConfig.caFile",
        "tlsConfig.certFile",
        "tlsConfig",
        "tlsConfig",
    ]


def test_errors_name_the_extender():
    broken = Extender(tls_config=ExtenderTLSConfig(ca_data=b"x"))
    (error,) = extender_tls_errors((Extender(), broken))
    assert str(error) == "extenders[1].tlsConfig.caData: holds no certificates in PEM"


def test_a_file_is_loaded_without_them_unless_they_are_asked_for(tmp_path):
    content = V1 | {"extenders": [{"urlPrefix": "https://x", "tlsConfig": {"caFile": "/nowhere"}}]}
    assert load(tmp_path, content)
    told = "extenders[0].tlsConfig.caFile: cannot be read: No such file or directory"
    assert complaints(tmp_path, content, reads_certificates=True) == [told]
    assert complaints(tmp_path, content | {"parallelism": 0}, reads_certificates=True)[1:] == [told]
