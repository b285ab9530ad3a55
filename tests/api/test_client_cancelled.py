import asyncio

from tests.api.clients import POD, calling

from bayplan.api.credentials import Credentials


async def test_a_request_that_is_cancelled_as_its_answer_comes_ends_cancelled(server):
    """A cancellation that got lost had its task go on for ever, and the process with it."""
    lost = 0
    async with calling(Credentials(server=server.url)) as client:
        await client.request("GET", POD)
        for number in range(400):
            task = asyncio.create_task(client.request("GET", POD))
            answered = len(server.requests)
            while len(server.requests) == answered:  # noqa: ASYNC110  the moments right after are what matters
                await asyncio.sleep(0)
            for _ in range(number % 40):
                await asyncio.sleep(0)
            if task.cancel():
                await asyncio.wait([task])
                lost += not task.cancelled()
    assert lost == 0
