"""Tokens and certificates from exec plugins."""

import pytest
from tests.api.credential_scene import EXEC_VERSION, Clock, kubeconfig, plugin, runs

from bayplan.api.credentials import Credentials, load_credentials
from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import Entry
from bayplan.api.token_source import ExecPlugin


async def test_an_exec_plugin_is_run_again_shortly_before_its_token_expires(tmp_path):
    user = plugin(tmp_path, {"token": "exec-token", "expirationTimestamp": "2026-01-01T00:10:00Z"})
    clock = Clock()
    entry = Entry("users[0].user", tmp_path, user)
    source = ExecPlugin(entry, wall_clock=lambda: 1767225600.0)
    credentials = Credentials(server="http://x", source=source, clock=clock)
    assert await credentials.token() == "exec-token"
    clock.now += 569
    assert await credentials.token() == "exec-token"
    assert runs(tmp_path) == 1
    clock.now += 1
    assert await credentials.token() == "exec-token"
    assert runs(tmp_path) == 2


async def test_an_exec_plugin_may_give_a_certificate_which_makes_a_new_generation(tmp_path, authority):
    certificate, key = authority.issue("bayplan", [])
    status = {"clientCertificateData": certificate.decode(), "clientKeyData": key.decode()}
    credentials = load_credentials(kubeconfig(tmp_path, user=plugin(tmp_path, status)), environment={})
    assert credentials.identity_pem is None
    assert await credentials.token() is None
    assert credentials.identity_pem.startswith(certificate)
    assert credentials.generation == 1


@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        ({"token": "topsecret"}, 3, "process returned 3"),
        (None, 0, "printed no status"),
        ({}, 0, "neither a token nor a certificate"),
        ({"clientCertificateData": "x"}, 0, "neither a token nor a certificate"),
        ({"clientCertificateData": "topsecret", "clientKeyData": "topsecret"}, 0, "PEM pair"),
        ({"token": "topsecret", "expirationTimestamp": "soon"}, 0, "expirationTimestamp is no time"),
        ({"token": "top secret"}, 0, "holds characters"),
    ],
)
async def test_a_failing_exec_plugin_is_named_and_its_output_is_not_repeated(tmp_path, status, code, text):
    credentials = load_credentials(kubeconfig(tmp_path, user=plugin(tmp_path, status, code=code)), environment={})
    with pytest.raises(CredentialsError, match=text) as caught:
        await credentials.token()
    assert "secret" not in str(caught.value)


async def test_an_exec_plugin_beside_the_kubeconfig_gets_its_arguments_and_environment(tmp_path):
    script = tmp_path / "bin.sh"
    status = """{"token":"'"$1-$SECRET"'"}"""
    answer = f'{{"apiVersion":"{EXEC_VERSION}","kind":"ExecCredential","status":{status}}}'
    script.write_text(f"#!/bin/sh\necho '{answer}'\n")
    script.chmod(0o700)
    spec = {
        "command": "./bin.sh",
        "apiVersion": EXEC_VERSION,
        "args": ["arg"],
        "env": [{"name": "SECRET", "value": "env"}],
    }
    credentials = load_credentials(kubeconfig(tmp_path, user={"exec": spec}), environment={})
    assert await credentials.token() == "arg-env"
