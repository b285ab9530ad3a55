import asyncio

from bayplan.api.credentials import Credentials
from bayplan.controller.operator_thread import KopfSessions


async def test_kopf_is_given_a_new_token_when_it_logs_in_again():
    refused = []

    class Renewing(Credentials):
        async def token(self):
            return f"token-{len(refused)}"

        def invalidate(self, token):
            refused.append(token)

    sessions = KopfSessions(Renewing(server="https://127.0.0.1:1"))
    for number in range(2):
        session = await sessions.open(asyncio.get_running_loop())
        assert session.headers["Authorization"] == f"Bearer token-{number}"
        await session.close()
    assert refused == ["token-0"]


async def test_credentials_are_asked_on_their_own_loop_and_the_session_belongs_to_kopfs():
    asked_on = []

    class Asked(Credentials):
        async def token(self):
            asked_on.append(asyncio.get_running_loop())
            return "t"

    home = asyncio.get_running_loop()
    sessions = KopfSessions(Asked(server="https://127.0.0.1:1"))

    async def log_in():
        session = await sessions.open(home)
        await session.close()
        return asyncio.get_running_loop()

    assert await asyncio.to_thread(asyncio.run, log_in()) is not home
    assert asked_on == [home]
