import asyncio

from bayplan.api.credentials import Credentials
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
