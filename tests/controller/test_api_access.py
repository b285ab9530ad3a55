import asyncio

import aiohttp
import pytest
from tests.controller.kubernetes_api import PODS
from tests.faults.api_server import FakeApiServer
from tests.faults.certificates import Authority

from bayplan.api.credentials import Credentials
from bayplan.api.kubeconfig import PemSource
from bayplan.controller.operator_thread import KopfSessions


async def test_each_login_of_kopf_gets_a_new_token_asked_for_on_the_credentials_own_loop():
    refused, asked_on = [], []

    class Renewing(Credentials):
        async def token(self):
            asked_on.append(asyncio.get_running_loop())
            return f"token-{len(refused)}"

        def invalidate(self, token):
            refused.append(token)

    home = asyncio.get_running_loop()
    sessions = KopfSessions(Renewing(server="https://127.0.0.1:1"))

    async def log_in():
        session = await sessions.open(home)
        await session.close()
        return session.headers["Authorization"], asyncio.get_running_loop()

    for number in range(2):
        authorization, kopfs_loop = await asyncio.to_thread(asyncio.run, log_in())
        assert authorization == f"Bearer token-{number}"
        assert kopfs_loop is not home
    assert (refused, asked_on) == (["token-0"], [home, home])


@pytest.mark.parametrize(("name", "certified"), [("", "127.0.0.1"), ("api.test", "api.test")])
async def test_kopfs_session_trusts_the_configured_authority_for_the_configured_name(tmp_path, name, certified):
    authority, stranger = Authority(), Authority("stranger")
    async with FakeApiServer(tls=authority.server_context(tmp_path, [certified])) as server:
        for trusted, expected in ((authority, name), (stranger, name), (authority, "other.test")):
            credentials = Credentials(server=server.url, ca=PemSource("ca", data=trusted.pem), tls_server_name=expected)
            sessions = KopfSessions(credentials)
            async with await sessions.open(asyncio.get_running_loop()) as session:
                if (trusted, expected) == (authority, name):
                    async with session.get(f"{sessions.server}{PODS}") as answer:
                        assert answer.status == 200
                else:
                    with pytest.raises(aiohttp.ClientConnectorCertificateError):
                        await session.get(f"{sessions.server}{PODS}")
        assert len(server.requests) == 1
