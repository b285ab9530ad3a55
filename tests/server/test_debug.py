import json

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bayplan.scheduler.cache_comparison import CacheComparison, Difference, ListError
from bayplan.server.debug import LARGEST_ANSWER_BYTES, cache_route


class Compared:
    """Answers as told."""

    def __init__(self):
        self.answer = CacheComparison([], {"nodes": 3})

    async def __call__(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def compared():
    return Compared()


@pytest.fixture
async def client(compared):
    app = web.Application()
    app.router.add_routes([cache_route(compared)])
    async with TestClient(TestServer(app)) as made:
        yield made


async def test_it_says_how_much_was_compared_and_that_nothing_differs(client):
    answer = await client.get("/debug/cache")
    assert answer.status == 200
    assert await answer.json() == {"differences": {}, "first": [], "compared": {"nodes": 3}}
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"


async def test_it_names_what_differs_and_both_sides(client, compared):
    compared.answer = CacheComparison([Difference("nodes", "n1", ("uid", "5"), None)], {})
    body = await (await client.get("/debug/cache")).json()
    assert body["differences"] == {"nodes": 1}
    assert body["first"] == [{"kind": "nodes", "key": "n1", "cache": "('uid', '5')", "api": None}]


async def test_the_answer_is_bounded_whatever_names_and_amounts_there_are(client, compared):
    long = "\x01'\"\\<\u202e" * 5000
    compared.answer = CacheComparison([Difference("pods", f"{n}{long}", (long,) * 50, (long,)) for n in range(500)], {})
    answer = await client.get("/debug/cache")
    body = await answer.read()
    assert len(body) <= LARGEST_ANSWER_BYTES
    assert body.isascii()
    assert json.loads(body)["differences"] == {"pods": 500}


async def test_it_says_when_the_api_server_does_not_answer(client, compared):
    compared.answer = ListError("nodes: 503 no")
    answer = await client.get("/debug/cache")
    assert answer.status == 503
    assert await answer.json() == {"error": "nodes: 503 no"}
