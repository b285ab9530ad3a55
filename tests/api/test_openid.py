"""Tokens from an OpenID provider."""

import base64
import json

import pytest
from aiohttp import web

from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import Entry
from bayplan.api.token_source import OidcToken


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
