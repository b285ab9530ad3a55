"""Lists whose objects are large, from a fake API server."""

from contextlib import aclosing

import pytest
from tests.faults.api_server import FakeApiServer

from bayplan.api import watch_source
from bayplan.api.credentials import Credentials
from bayplan.api.watch_source import AnswerError, WatchSource, list_pages

PODS = "/api/v1/pods"
BOUND = watch_source.MAX_PAGE_BYTES


class Scene:
    """A server with pods of some sizes, and what a list of them brings."""

    def __init__(self, server):
        self.server = server
        self.sizes = []
        self.firsts = []

    def put(self, count, size, prefix="p"):
        for number in range(count):
            metadata = {"name": f"{prefix}{number:05}", "annotations": {"bulk": "x" * size}}
            self.server.put(PODS, {"metadata": metadata})

    async def names(self, **options):
        source = WatchSource(Credentials(server=self.server.url), PODS, list_timeout=30.0, inactivity=30.0)
        found = []
        try:
            async with aclosing(list_pages(source.page, **options)) as pages:
                async for is_first, page in pages:
                    self.firsts.append(is_first)
                    self.sizes.append(sum(memoryview(raw).nbytes for raw in page.items))
                    if is_first:
                        found.clear()
                    found += [bytes(raw).partition(b'"name": "')[2].partition(b'"')[0].decode() for raw in page.items]
        finally:
            await source.close()
        return found

    def limits(self):
        return [int(seen.query.get("limit", "0")) for seen in self.server.requests]

    def stored(self):
        return sorted(self.server.objects[PODS])


@pytest.fixture
async def scene():
    async with FakeApiServer() as server:
        yield Scene(server)


async def test_small_objects_come_in_pages_of_five_hundred(scene):
    scene.put(1100, 1)
    assert await scene.names() == scene.stored()
    assert scene.limits() == [500, 500, 500]
    assert scene.firsts == [True, False, False]


async def test_no_page_of_large_objects_is_larger_than_its_bound(scene):
    scene.put(60, 1_200_000)
    assert await scene.names() == scene.stored()
    assert max(scene.sizes) <= BOUND
    assert len(scene.sizes) <= 15, "nor are they so small that there are many"


async def test_large_objects_behind_small_ones_are_bounded_as_well(scene):
    scene.put(1000, 1, prefix="a")
    scene.put(20, 1_200_000, prefix="b")
    scene.put(1000, 1, prefix="c")
    assert await scene.names() == scene.stored()
    assert max(scene.sizes) <= BOUND
    assert len(scene.sizes) <= 20, "pages grow again"


async def test_an_object_larger_than_the_bound_is_a_page(scene):
    scene.put(1, BOUND + 1)
    assert await scene.names() == scene.stored()


async def test_a_list_that_outlives_its_version_is_begun_anew_and_at_last_comes_in_one_piece(scene):
    scene.put(30, 1)
    asked = []

    async def expire(query, ask):
        if "continue" in query:
            scene.server.expire_continue_tokens()
        asked.append(query.get("limit"))
        return await ask(query)

    source = WatchSource(Credentials(server=scene.server.url), PODS, list_timeout=30.0, inactivity=30.0)
    try:
        firsts = [first async for first, _ in list_pages(lambda q: expire(q, source.page), page_size=10, restarts=2)]
        with pytest.raises(AnswerError):
            _ = [first async for first, _ in list_pages(lambda q: expire(q, source.page), page_size=10)]
    finally:
        await source.close()
    assert firsts == [True, True, True]
    assert asked[:5] == ["10", "10", "10", "10", None]
