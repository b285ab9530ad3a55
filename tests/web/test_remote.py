"""A scheduler that runs, as the page asks it."""

import asyncio

import pytest

from bayplan.web.sources import RemoteSource


class Client:
    """A client that nothing is asked of but whom it asks."""

    url = "https://127.0.0.1:10259"


class Following:
    """Counts how often it was told to ask again."""

    def __init__(self, enough):
        self.times = []
        self.enough = enough
        self.done = asyncio.Event()

    async def refresh(self, at, *, running):
        self.times.append((at, running))
        if len(self.times) == self.enough:
            self.done.set()


async def test_it_asks_again_and_again_until_it_is_cancelled():
    following = Following(3)
    source = RemoteSource(Client(), seconds_between=0)
    asking = asyncio.create_task(source.run(following))
    async with asyncio.timeout(10):
        await following.done.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert all(running for _, running in following.times)
    assert source.page["mode"] == "live"
