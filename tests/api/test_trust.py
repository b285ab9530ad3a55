"""Only the authority that is configured counts, whichever connection it is, and nobody else is sent the token."""

import os
import ssl

import aiohttp
import pytest
from tests.api.clients import POD, calling
from tests.faults.api_server import FakeApiServer
from tests.faults.certificates import Authority

from bayplan.api.credentials import Credentials
from bayplan.api.errors import CredentialsError, UnreachableError
from bayplan.api.kubeconfig import PemSource
from bayplan.api.token_source import StaticToken
from bayplan.api.watch_source import WatchSource


@pytest.fixture
def systems(tmp_path, monkeypatch):
    """An authority that the system trusts, and that nobody configured."""
    authority = Authority("the system's")
    file = tmp_path / "system.pem"
    file.write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    return authority


async def write(credentials):
    async with calling(credentials) as client:
        return (await client.request("GET", POD)).status


async def read(credentials):
    source = WatchSource(credentials, "/api/v1/pods", list_timeout=30, inactivity=30)
    try:
        await source.page({})
    finally:
        await source.close()
    return 200


WAYS = {"write": (write, 404), "read": (read, 200)}


def credentials_for(server, authority, **options):
    ca = PemSource("ca", data=authority.pem) if authority else None
    return Credentials(server=server.url, ca=ca, source=StaticToken("secret"), **options)


@pytest.mark.parametrize("way", WAYS)
async def test_the_systems_authorities_do_not_count_beside_the_configured_one(tmp_path, authority, systems, way):
    connect, answered = WAYS[way]
    async with FakeApiServer(tls=systems.server_context(tmp_path, ["127.0.0.1"])) as impostor:
        with pytest.raises((UnreachableError, aiohttp.ClientConnectorCertificateError), match="certificate"):
            await connect(credentials_for(impostor, authority))
        assert impostor.requests == [], "nobody else is sent the token"
    async with FakeApiServer(tls=authority.server_context(tmp_path, ["127.0.0.1"])) as server:
        assert await connect(credentials_for(server, authority)) == answered
        assert server.requests[0].headers["authorization"] == "Bearer secret"


@pytest.mark.parametrize("way", WAYS)
async def test_without_a_configured_authority_the_systems_count(tmp_path, authority, systems, way):
    connect, answered = WAYS[way]
    async with FakeApiServer(tls=systems.server_context(tmp_path, ["127.0.0.1"])) as server:
        assert await connect(credentials_for(server, None)) == answered
    async with FakeApiServer(tls=authority.server_context(tmp_path, ["127.0.0.1"])) as impostor:
        with pytest.raises((UnreachableError, aiohttp.ClientConnectorCertificateError), match="certificate"):
            await connect(credentials_for(impostor, None))


async def test_what_others_trust_is_left_as_it_was(tmp_path, authority, systems, monkeypatch):
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    before = dict(os.environ)
    async with FakeApiServer(tls=authority.server_context(tmp_path, ["127.0.0.1"])) as server:
        await write(credentials_for(server, authority))
    assert dict(os.environ) == before
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.delenv("SSL_CERT_DIR")
    async with FakeApiServer(tls=authority.server_context(tmp_path, ["127.0.0.1"])) as server:
        await write(credentials_for(server, authority))
    assert not os.environ.keys() & {"SSL_CERT_FILE", "SSL_CERT_DIR"}


@pytest.mark.parametrize("way", WAYS)
async def test_the_tls_server_name_is_what_the_certificate_must_be_for(tmp_path, authority, way):
    connect, answered = WAYS[way]
    async with FakeApiServer(tls=authority.server_context(tmp_path, ["api.test"])) as server:
        for wrong in ("", "other.test"):
            with pytest.raises((UnreachableError, aiohttp.ClientConnectorCertificateError), match="certificate"):
                await connect(credentials_for(server, authority, tls_server_name=wrong))
        assert server.requests == []
        assert await connect(credentials_for(server, authority, tls_server_name="api.test")) == answered


def test_the_context_asks_for_the_tls_server_name_whoever_uses_it(authority):
    credentials = Credentials(
        server="https://127.0.0.1:1", ca=PemSource("ca", data=authority.pem), tls_server_name="api.test"
    )
    made = credentials.ssl_context().wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="127.0.0.1")
    assert made.server_hostname == "api.test"


def test_an_address_is_no_tls_server_name():
    with pytest.raises(CredentialsError, match=r"^tls-server-name: expected a host name"):
        Credentials(server="https://127.0.0.1:1", tls_server_name="10.9.8.7")


def test_an_intermediate_authority_may_be_the_root(authority):
    context = Credentials(server="https://127.0.0.1:1", ca=PemSource("ca", data=authority.pem)).ssl_context()
    assert context.verify_flags & ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
