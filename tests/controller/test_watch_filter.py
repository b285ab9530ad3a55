import asyncio
import contextlib
import itertools
import json

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.controller.watch_filter import WatchFilter, _Filtered

PLACED = {"u1", "u2"}
KNOWN = {("u1", "7"), ("u9", "7")}


def event(kind, uid, version="6"):
    metadata = {"uid": uid, "resourceVersion": version}
    told = {"type": kind, "object": {"kind": "Pod", "metadata": metadata, "spec": {"containers": []}}}
    return json.dumps(told, separators=(",", ":")).encode()


def watch_filter():
    return WatchFilter(departed=PLACED.__contains__, knows=lambda *version: version in KNOWN)


def is_left(line):
    return watch_filter()._is_left(line)


def test_the_departure_of_a_pod_with_a_node_is_taken():
    assert not is_left(event("DELETED", "u1"))


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "BOOKMARK", "ERROR"])
def test_all_that_is_no_departure_is_left(kind):
    assert is_left(event(kind, "u1"))


def test_a_pod_that_leaves_while_it_waits_is_left():
    assert is_left(event("DELETED", "u9"))


@pytest.mark.parametrize("uid", ["u1", "u9"])
def test_a_version_of_a_pod_that_is_known_is_no_news(uid):
    assert not is_left(event("MODIFIED", uid, "7"))
    assert is_left(event("MODIFIED", uid, "8"))
    assert is_left(event("ADDED", uid, "7"))


@pytest.mark.parametrize("kind", [b"DELETED", b"MODIFIED"])
@pytest.mark.parametrize(
    "rest", [b"", b"garbage", b',"object":null}', b',"object":{"metadata":{"uid":7}}}', b',"object":"\xff"}']
)
def test_a_line_that_cannot_be_read_is_left_to_kopf(kind, rest):
    assert is_left(b'{"type":"' + kind + b'"' + rest)


class Content:
    """A stream that comes in these chunks."""

    total_bytes = 7

    def __init__(self, chunks):
        self.chunks = chunks

    async def iter_chunked(self, size):
        for chunk in self.chunks:
            yield chunk


def filtered(chunks, wanted):
    async def read():
        return [chunk async for chunk in _Filtered(Content(chunks), wanted).iter_chunked(1024)]

    return asyncio.run(read())


lines = st.lists(st.sampled_from([b"", b"keep", b"drop", b"keep a longer one", b"dropped as well"]), max_size=8)


@settings(max_examples=200, deadline=None)
@given(lines=lines, last=st.sampled_from([b"", b"keep this without an end"]), data=st.data())
def test_however_lines_are_cut_into_chunks_the_wanted_ones_arrive_whole_and_in_order(lines, last, data):
    content = b"".join(line + b"\n" for line in lines) + last
    cuts = sorted(data.draw(st.sets(st.integers(0, len(content)))) | {0, len(content)})
    chunks = [content[a:b] for a, b in itertools.pairwise(cuts)]
    expected = b"".join(line + b"\n" for line in lines if not line.startswith(b"drop")) + last
    assert b"".join(filtered(chunks, lambda line: not line.startswith(b"drop"))) == expected


def test_nothing_is_handed_on_for_a_chunk_of_unwanted_lines():
    assert filtered([b"a\nb\n", b"c\n"], lambda line: line == b"c") == [b"c\n"]


def test_the_stream_is_itself_in_all_else():
    assert _Filtered(Content([]), bool).total_bytes == 7


@contextlib.asynccontextmanager
async def serving(body, *, status=200):
    async def answer(request):
        return web.Response(body=body, status=status)

    app = web.Application()
    app.router.add_get("/pods", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        async with aiohttp.ClientSession(middlewares=(watch_filter(),)) as session:
            yield session, f"http://127.0.0.1:{runner.addresses[0][1]}/pods"
    finally:
        await runner.cleanup()


BODY = b"\n".join([event("ADDED", "u1"), event("DELETED", "u1"), event("DELETED", "u9"), b""])


async def test_a_watch_comes_without_what_was_taken():
    async with serving(BODY) as (session, url), session.get(url, params={"watch": "true"}) as response:
        content = b"".join([chunk async for chunk in response.content.iter_chunked(10)])
    assert content == event("ADDED", "u1") + b"\n" + event("DELETED", "u9") + b"\n"


@pytest.mark.parametrize(("query", "status"), [({}, 200), ({"watch": "true"}, 410)])
async def test_lists_and_refusals_come_as_they_are(query, status):
    async with serving(BODY, status=status) as (session, url), session.get(url, params=query) as response:
        assert await response.read() == BODY
