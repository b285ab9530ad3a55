import asyncio
import contextlib
import json

import aiohttp
import pytest
from aiohttp import web

from bayplan.controller.list_intake import ListIntake


def pod(name, **fields):
    body = {"metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}"}, "spec": {"schedulerName": "bayplan"}}
    return {**body, **fields}


def page(*pods, token="", **fields):
    return json.dumps({"metadata": {"resourceVersion": "7", "continue": token}, "items": pods, **fields}).encode()


class Scene:
    """A session whose lists are handed over, against a server that answers all with `body`."""

    def __init__(self):
        self.told = []
        self.intake = ListIntake(self.told.append)
        self.body = page()
        self.status = 200

    async def answer(self, request):
        return web.Response(body=self.body, status=self.status, content_type="application/json")

    async def get(self, path="/api/v1/pods", **query):
        async with self.session.get(self.url + path, params=query) as response:
            return await response.read()

    async def listed(self, body, **query):
        self.body = body
        return json.loads(await self.get(**query))

    @property
    def names(self):
        return [told.pod.metadata.name for told in self.told]


@contextlib.asynccontextmanager
async def scene():
    made = Scene()
    app = web.Application()
    app.router.add_get("/{path:.*}", made.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with aiohttp.ClientSession(middlewares=(made.intake,)) as made.session:
            yield made
    finally:
        await runner.cleanup()


async def test_the_pods_of_a_list_are_handed_over_in_order_and_kopf_is_left_with_none():
    async with scene() as s:
        left = await s.listed(page(pod("b"), pod("a")))
        assert left == {"metadata": {"resourceVersion": "7", "continue": ""}, "items": []}
        assert [(told.uid, told.key, told.error) for told in s.told] == [
            ("uid-b", "shop/b", ""),
            ("uid-a", "shop/a", ""),
        ]
        assert s.names == ["b", "a"]


async def test_a_pod_that_cannot_be_read_is_left_to_kopf_as_it_is():
    odd = pod("odd", spec={"priority": "high", "note": "kept"})
    async with scene() as s:
        left = await s.listed(page(pod("a"), odd, pod("b"), kind="PodList", apiVersion="v1"))
        assert (left["items"], s.names) == ([odd], ["a", "b"])
        assert (left["kind"], left["apiVersion"]) == ("PodList", "v1")


async def test_a_list_is_complete_with_its_last_page():
    async with scene() as s:
        assert not s.intake.complete
        await s.listed(page(pod("a"), token="more"))
        assert not s.intake.complete
        await s.listed(page(pod("b")))
        assert s.intake.complete
        await s.listed(page(pod("c"), token="more"))
        assert s.intake.complete, "a later list changes nothing"


async def test_an_empty_list_is_complete():
    async with scene() as s:
        await s.listed(page(items=None))
        assert (s.told, s.intake.complete) == ([], True)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"7", b'{"metadata":7,"items":[]}', b'{"metadata":{},"items":7}', b'{"metadata":{"a":"\xff'],
    ids=repr,
)  # fmt: skip
async def test_what_is_no_page_is_left_to_kopf(body):
    async with scene() as s:
        s.body = body
        assert await s.get() == body
        assert (s.told, s.intake.complete) == ([], False)


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/api/v1", {}, 200),
        ("/api/v1/namespaces", {}, 200),
        ("/api/v1/pods", {"watch": "true"}, 200),
        ("/api/v1/pods", {}, 403),
    ],
)
async def test_all_but_lists_of_pods_comes_as_it_is(path, query, status):
    async with scene() as s:
        s.body, s.status = page(pod("a")), status
        assert await s.get(path, **query) == s.body
        assert (s.told, s.intake.complete) == ([], False)


async def test_a_start_waits_for_the_last_page_and_no_longer():
    async with scene() as s:
        waiting = asyncio.create_task(s.intake.first_list(30.0))
        await s.listed(page(pod("a"), token="more"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await s.listed(page(pod("b")))
        async with asyncio.timeout(10):
            await waiting
            await s.intake.first_list(3600.0)


async def test_a_start_does_not_wait_for_a_list_that_does_not_come():
    async with asyncio.timeout(10):
        await ListIntake(lambda told: None).first_list(0.05)


async def test_while_a_long_page_is_read_others_get_their_turn():
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with scene() as s:
        s.intake._deliver = lambda told: [None] * 20_000
        running = asyncio.create_task(others())
        await s.intake._take(page(*(pod(f"p{i}") for i in range(2000))))
        running.cancel()
        assert turns > 1
