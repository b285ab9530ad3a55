from bayplan.api.credentials import Credentials
from bayplan.controller.api_access import KopfSessions


async def test_kopf_is_given_a_new_token_when_it_logs_in_again():
    refused = []

    class Renewing(Credentials):
        async def token(self):
            return f"token-{len(refused)}"

        def invalidate(self, token):
            refused.append(token)

    sessions = KopfSessions(Renewing(server="https://127.0.0.1:1"))
    for number in range(2):
        session = await sessions.open()
        assert session.headers["Authorization"] == f"Bearer token-{number}"
        await session.close()
    assert refused == ["token-0"]
