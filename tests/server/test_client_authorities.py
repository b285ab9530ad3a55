import asyncio

import pytest
from tests.faults.api_server import FakeApiServer
from tests.faults.certificates import Authority
from tests.faults.faults import DropReply, Garbage, Refuse
from tests.waiting import until

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.api.errors import CredentialsError
from bayplan.server.access import ClusterAuthorities

CONFIG_MAPS = "/api/v1/configmaps"


@pytest.fixture
async def api():
    async with FakeApiServer() as running:
        yield running


@pytest.fixture
async def authorities(api):
    client = ApiClient(Credentials(server=api.url))
    yield ClusterAuthorities(client)
    await client.close()


def publish(api, pem):
    name = {"namespace": "kube-system", "name": "extension-apiserver-authentication"}
    data = {} if pem is None else {"client-ca-file": pem.decode()}
    api.put(CONFIG_MAPS, {"metadata": name, "data": data})


async def test_they_are_those_that_the_cluster_publishes_and_follow_it(api, authorities):
    assert authorities.pem() is None
    for pem in (Authority("a").pem, Authority("b").pem, None):
        publish(api, pem)
        await authorities.look_up()
        assert authorities.pem() == pem


@pytest.mark.parametrize("fault", [Refuse(403), Refuse(500), Garbage(), DropReply()])
async def test_what_was_read_stays_while_it_cannot_be_read(api, authorities, fault):
    publish(api, Authority().pem)
    await authorities.look_up()
    before = authorities.pem()
    api.inject(fault)
    with pytest.raises(CredentialsError, match="kube-system/extension-apiserver-authentication: "):
        await authorities.look_up()
    assert authorities.pem() == before


async def test_what_is_no_certificate_is_not_taken(api, authorities):
    publish(api, b"nonsense")
    with pytest.raises(CredentialsError, match="not PEM certificates"):
        await authorities.look_up()
    assert authorities.pem() is None


async def test_it_reads_on_until_it_ends_and_tells_once_why_it_cannot(api, authorities, caplog):
    running = asyncio.create_task(authorities.run())
    await until(lambda: caplog.records)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    assert "404" in caplog.text
