import asyncio

import pytest
from tests.api.clients import POD, calling
from tests.faults.api_server import FakeApiServer
from tests.faults.certificates import Authority
from tests.faults.faults import Delay

from bayplan.api.credentials import Credentials
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.kubeconfig import PemSource


def trusting(server, authority, **options):
    return Credentials(server=server.url, ca=PemSource("ca", data=authority.pem), **options)


async def status(credentials):
    """The status of one request by a client of its own."""
    async with calling(credentials) as client:
        return (await client.request("GET", POD)).status


async def test_a_server_certificate_of_the_authority_is_accepted_and_others_are_not(tmp_path, authority):
    async with FakeApiServer(tls=authority.server_context(tmp_path, ["127.0.0.1"])) as server:
        assert await status(trusting(server, authority)) == 404
        with pytest.raises(UnreachableError, match="certificate"):
            await status(trusting(server, Authority("other")))
        with pytest.raises(UnreachableError, match="certificate"):
            await status(Credentials(server=server.url))
        assert len(server.requests) == 1
        assert await status(Credentials(server=server.url, insecure=True)) == 404


async def test_a_client_certificate_is_presented(tmp_path, authority):
    certificate, key = authority.issue("bayplan", [])
    context = authority.server_context(tmp_path, ["127.0.0.1"], ask_client=True)
    async with FakeApiServer(tls=context) as server:
        identity = {"certificate": PemSource("c", data=certificate), "key": PemSource("k", data=key)}
        assert await status(trusting(server, authority, **identity)) == 404
        with pytest.raises((AmbiguousError, UnreachableError)):
            await status(trusting(server, authority))


async def test_a_new_authority_is_trusted_from_the_next_request_on(tmp_path, authority):
    file = tmp_path / "ca.pem"
    file.write_bytes(Authority("old").pem)
    async with FakeApiServer(tls=authority.server_context(tmp_path, ["127.0.0.1"])) as server:
        credentials = Credentials(server=server.url, ca=PemSource("ca", path=file))
        async with calling(credentials) as client:
            with pytest.raises(UnreachableError):
                await client.request("GET", POD)
            file.write_bytes(authority.pem)
            credentials.ssl_context()
            assert (await client.request("GET", POD)).status == 404


async def test_a_request_in_flight_survives_a_change_of_certificates(tmp_path, authority):
    file = tmp_path / "ca.pem"
    file.write_bytes(authority.pem)
    async with FakeApiServer(tls=authority.server_context(tmp_path, ["127.0.0.1"])) as server:
        credentials = Credentials(server=server.url, ca=PemSource("ca", path=file))
        async with calling(credentials) as client:
            server.inject(Delay(0.1))
            slow = asyncio.create_task(client.request("GET", POD))
            while not server.requests:  # noqa: ASYNC110 - the server's state is the condition
                await asyncio.sleep(0.001)
            file.write_bytes(authority.pem + Authority("next").pem)
            credentials.ssl_context()
            assert (await client.request("GET", POD)).status == 404
            assert credentials.generation == 1
            assert (await slow).status == 404
