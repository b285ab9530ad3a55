"""The API of the running scheduler at the port: its paths, its bodies, and what is refused before anybody reads it."""

import asyncio
import contextlib
import json
from http import HTTPStatus

import aiohttp
import pytest
from tests.server.samples import metrics
from tests.server.secure_scene import secure_port

from bayplan.api.live_paths import SIMULATE, RefusedQuestionError
from bayplan.server.health import HealthChecks
from bayplan.server.http import HttpServer
from bayplan.server.live import MAX_BODY_BYTES, live_routes


class Answering:
    """Remembers what it was asked, and answers or refuses as told."""

    def __init__(self):
        self.asked = []
        self.refusal = None

    async def _answer(self, *question):
        self.asked.append(question)
        if self.refusal is not None:
            raise self.refusal
        return json.dumps({"asked": len(self.asked)}).encode()

    async def summary(self):
        return await self._answer("summary")

    async def nodes(self):
        return await self._answer("nodes")

    async def node(self, name):
        return await self._answer("node", name)

    async def queue_page(self, start, limit):
        return await self._answer("queue", start, limit)

    async def decisions(self, after, limit):
        return await self._answer("decisions", after, limit)

    async def explanation(self, namespace, name):
        return await self._answer("explanation", namespace, name)

    async def simulation(self, body, count):
        return await self._answer("simulation", body, count)


@pytest.fixture
def inspector():
    return Answering()


@pytest.fixture
async def url(inspector):
    server = HttpServer(metrics().registry, HealthChecks(), routes=live_routes(inspector))
    port = await server.start("127.0.0.1", 0)
    yield f"http://127.0.0.1:{port}"
    await server.stop()


@pytest.fixture
async def session():
    async with aiohttp.ClientSession() as made:
        yield made


@pytest.mark.parametrize(
    ("path", "question"),
    [
        ("/bayplan/v1/summary", ("summary",)),
        ("/bayplan/v1/nodes", ("nodes",)),
        ("/bayplan/v1/nodes/n-1.x", ("node", "n-1.x")),
        ("/bayplan/v1/nodes/a%2Fb", ("node", "a/b")),
        ("/bayplan/v1/queue", ("queue", 0, 100)),
        ("/bayplan/v1/queue?limit=7&continue=14", ("queue", 14, 7)),
        ("/bayplan/v1/decisions", ("decisions", 0, 500)),
        ("/bayplan/v1/decisions?after=12&limit=3", ("decisions", 12, 3)),
        ("/bayplan/v1/namespaces/ns/pods/p/explanation", ("explanation", "ns", "p")),
    ],
)
async def test_each_path_asks_its_question(url, session, inspector, path, question):
    async with session.get(url + path) as answer:
        assert (answer.status, await answer.json()) == (200, {"asked": 1})
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["Cache-Control"] == "no-store"
    assert inspector.asked == [question]


@pytest.mark.parametrize(
    "path",
    [
        "/bayplan/v1/queue?limit=0",
        "/bayplan/v1/queue?limit=1001",
        "/bayplan/v1/queue?limit=x",
        "/bayplan/v1/queue?continue=-1",
        "/bayplan/v1/queue?continue=%F0%9F%9A%A2",
        "/bayplan/v1/decisions?after=1e3",
        f"/bayplan/v1/decisions?after={'9' * 4000}",
        "/bayplan/v1/decisions?limit=%D9%A3",
    ],
)
async def test_numbers_that_are_none_are_refused_by_name(url, session, inspector, path):
    async with session.get(url + path) as answer:
        said = (await answer.json())["error"]
        assert (answer.status, said.partition(":")[0] in path) == (400, True)
        assert len(said) < 200
    assert inspector.asked == []


async def test_a_refusal_is_one_line_of_json_with_the_time_to_ask_again(url, session, inspector):
    inspector.refusal = RefusedQuestionError(HTTPStatus.TOO_MANY_REQUESTS, "later\n\x1b[2J please", 3)
    async with session.get(f"{url}/bayplan/v1/summary") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "3")
        assert await answer.json() == {"error": "later \\x1b[2J please"}


async def test_a_defect_is_told_to_nobody_and_logged(url, session, inspector, caplog):
    inspector.refusal = KeyError("secret")
    async with session.get(f"{url}/bayplan/v1/summary") as answer:
        assert (answer.status, "secret" in await answer.text()) == (500, False)
    assert "question failed" in caplog.text


async def test_a_body_is_handed_on_whole_however_it_comes(url, session, inspector):
    body = bytes(range(256)) * (MAX_BODY_BYTES // 256)
    async with session.post(f"{url}{SIMULATE}?count=max", data=body) as answer:
        assert answer.status == 200
    async with session.post(f"{url}{SIMULATE}", data=b"{}") as answer:
        assert answer.status == 200
    async with session.get(f"{url}/bayplan/v1/summary") as answer:
        assert answer.status == 200
    assert inspector.asked == [("simulation", body, "max"), ("simulation", b"{}", ""), ("summary",)]


async def test_a_body_in_pieces_is_read_to_its_end_and_the_next_request_after_it(url, inspector):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    body = b"x" * 3000
    writer.write(f"POST {SIMULATE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000\r\n\r\n".encode() + body[:10])
    for at in range(10, 3000, 299):
        await asyncio.sleep(0.005)
        writer.write(body[at : at + 299])
    writer.write(b"GET /bayplan/v1/summary HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert inspector.asked == [("simulation", body, ""), ("summary",)]


@pytest.mark.parametrize("count", ["some", "-1", "1e9", "99999999"])
async def test_a_count_that_is_none_is_refused(url, session, inspector, count):
    async with session.post(f"{url}{SIMULATE}?count={count}", data=b"{}") as answer:
        assert answer.status == 400
    assert inspector.asked == []


@pytest.mark.parametrize(
    "head",
    [
        f"POST {SIMULATE} HTTP/1.1\r\nContent-Length: {MAX_BODY_BYTES + 1}",
        f"POST {SIMULATE} HTTP/1.1\r\nContent-Length: 99999999999999999999999",
        f"POST {SIMULATE} HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6",
        f"POST {SIMULATE} HTTP/1.1\r\nTransfer-Encoding: chunked",
        f"PUT {SIMULATE} HTTP/1.1\r\nContent-Length: 5",
        f"POST {SIMULATE}x HTTP/1.1\r\nContent-Length: 5",
        "POST /metrics HTTP/1.1\r\nContent-Length: 5",
    ],
)
async def test_other_bodies_are_refused_before_they_are_read(url, inspector, head):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(f"{head}\r\nHost: localhost\r\n\r\nhello".encode())
    answer = b""
    with contextlib.suppress(ConnectionError):
        answer = await reader.read(2000)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert inspector.asked == []


async def test_a_web_page_that_has_a_name_of_its_own_lead_here_gets_nothing(url, session, inspector):
    for path in ("/bayplan/v1/summary", "/bayplan/v1/nodes/n1", "/bayplan/v1/namespaces/ns/pods/p/explanation"):
        async with session.get(url + path, headers={"Host": "evil.example"}) as answer:
            assert answer.status == 403
    async with session.post(url + SIMULATE, data=b"{}", headers={"Host": "evil.example"}) as answer:
        assert answer.status == 403
    assert inspector.asked == []


async def test_only_who_may_is_answered_at_the_secure_port_and_others_send_no_body():
    inspector, body = Answering(), b"x" * MAX_BODY_BYTES
    may = {("get", "/bayplan/v1/summary"), ("post", SIMULATE)}
    async with secure_port(routes=live_routes(inspector), may=may) as port:
        for token, path, status in (
            (None, "/bayplan/v1/summary", 401),
            ("stranger-token", "/bayplan/v1/summary", 403),
            ("reader-token", "/bayplan/v1/summary", 200),
            ("reader-token", "/bayplan/v1/nodes", 403),
        ):
            assert (await port.get(path, token))[0] == status, (token, path)
        for token, status in ((None, 401), ("stranger-token", 403), ("reader-token", 200)):
            assert (await port.get(SIMULATE, token, method="POST", body=body))[0] == status, token
    assert inspector.asked == [("summary",), ("simulation", body, "")]
