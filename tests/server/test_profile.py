import asyncio
import threading

import pytest
from aiohttp import ClientTimeout, web
from aiohttp.test_utils import TestClient, TestServer

from bayplan.server.debug import profile_route


@pytest.fixture
async def client():
    app = web.Application()
    app.router.add_routes([profile_route()])
    async with TestClient(TestServer(app)) as made:
        yield made


async def test_it_says_how_often_each_stack_was_seen(client):
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait, name="waits")
    thread.start()
    try:
        text = await (await client.get("/debug/profile?seconds=0.2")).text()
    finally:
        ended.set()
        thread.join()
    lines = [line.rpartition(" ") for line in text.splitlines()]
    assert all(count.isdigit() for _, _, count in lines)
    assert any(stack.startswith("waits;") and "Event.wait" in stack for stack, _, _ in lines)


@pytest.mark.parametrize("seconds", ["0", "-1", "61", "nan", "soon", ""])
async def test_a_number_that_is_none_is_refused(client, seconds):
    assert (await client.get("/debug/profile", params={"seconds": seconds})).status == 400


async def test_one_profile_is_taken_at_a_time(client):
    statuses = await asyncio.gather(*(client.get("/debug/profile?seconds=0.3") for _ in range(2)))
    assert sorted(each.status for each in statuses) == [200, 409]


async def test_a_client_that_hangs_up_ends_its_profile(client):
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await client.get("/debug/profile?seconds=60", timeout=ClientTimeout(total=0.2))
    await asyncio.sleep(0.2)
    text = await (await client.get("/debug/profile?seconds=0.2")).text()
    assert text
    assert "sample (profile.py" not in text
