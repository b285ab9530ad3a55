"""Tokens and certificates from exec plugins, and tokens from an OpenID provider."""

import base64
import json

import pytest
from aiohttp import web
from tests.api.credential_scene import EXEC_VERSION, kubeconfig, plugin, runs
from tests.clock import Clock

from bayplan.api.credentials import Credentials, load_credentials
from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import Entry
from bayplan.api.token_source import ExecPlugin, OidcToken


async def test_an_exec_plugin_is_run_again_shortly_before_its_token_expires(tmp_path):
    user = plugin(tmp_path, {"token": "exec-token", "expirationTimestamp": "2026-01-01T00:10:00Z"})
    clock = Clock(1000.0)
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


def jwt(expires):
    encode = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")  # noqa: E731
    return f"{encode({'alg': 'none'})}.{encode({'exp': expires})}.sig"


@pytest.fixture
async def provider(tmp_path, authority):
    """An OpenID provider over TLS of its own authority: its url, and the refresh tokens it saw."""
    app = web.Application()
    grants = []

    async def discover(request):
        return web.json_response({"token_endpoint": f"https://127.0.0.1:{request.url.port}/token"})

    async def token(request):
        form = await request.post()
        grants.append((form["refresh_token"], request.headers["Authorization"]))
        return web.json_response({"id_token": jwt(2000), "refresh_token": f"r{len(grants) + 1}"})

    app.router.add_get("/.well-known/openid-configuration", discover)
    app.router.add_post("/token", token)
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=authority.server_context(tmp_path, ["127.0.0.1"]))
    await site.start()
    yield {"url": f"https://127.0.0.1:{runner.addresses[0][1]}", "grants": grants}
    await runner.cleanup()


def oidc(provider, authority, **config):
    return {
        "client-id": "me",
        "client-secret": "topsecret",
        "idp-issuer-url": provider["url"] + "/",
        "refresh-token": "r1",
        **({"idp-certificate-authority-data": base64.b64encode(authority.pem).decode()} if authority else {}),
        **config,
    }


async def test_an_openid_token_is_used_until_it_expires_and_then_refreshed_over_verified_tls(
    tmp_path, authority, provider
):
    wall = 1000.0
    entry = Entry("user", tmp_path, {})
    config = oidc(provider, authority, **{"id-token": jwt(1100)})
    source = OidcToken(entry, config, wall_clock=lambda: wall)
    assert (await source.issue()).token == jwt(1100)
    assert provider["grants"] == []
    wall = 1071.0
    issued = await source.issue()
    assert (issued.token, issued.lifetime) == (jwt(2000), 899.0)
    wall = 1990.0
    await source.issue()
    assert [grant for grant, _ in provider["grants"]] == ["r1", "r2"]
    assert provider["grants"][0][1].startswith("Basic ")


async def test_an_openid_provider_with_an_unknown_certificate_gets_no_secret(tmp_path, provider):
    source = OidcToken(Entry("user", tmp_path, {}), oidc(provider, None))
    with pytest.raises(CredentialsError, match=r"refresh at .* failed: ClientConnectorCertificateError") as caught:
        await source.issue()
    assert provider["grants"] == []
    assert "topsecret" not in str(caught.value)


@pytest.mark.parametrize("token", ["topsecret", "a.b.c", "a.e30=.c", "a.W10.c", "a.eyJleHAiOltdfQ.c"])
async def test_an_openid_token_that_is_no_json_web_token_is_refused(tmp_path, token):
    source = OidcToken(Entry("user", tmp_path, {}), {"id-token": token}, wall_clock=lambda: 0.0)
    if token == "a.e30=.c":
        assert (await source.issue()).lifetime == float("inf")
        return
    with pytest.raises(CredentialsError, match="not a JSON web token"):
        await source.issue()
