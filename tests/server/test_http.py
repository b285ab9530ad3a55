import asyncio
import contextlib
import logging
import time

import pytest
from aiohttp import ClientSession
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain_text
from tests.server.samples import metrics, observed
from tests.waiting import until

import bayplan.server.http as http_module
from bayplan.server.health import HealthChecks, LoopTicker
from bayplan.server.http import HttpServer


class Port:
    """A running server, its health checks, and ways to talk to it."""

    def __init__(self, port, health, now):
        self.port = port
        self.health = health
        self.now = now

    async def get(self, path, *, method="GET", headers=None):
        async with (
            ClientSession() as session,
            session.request(method, f"http://127.0.0.1:{self.port}{path}", headers=headers) as response,
        ):
            return response, await response.text()

    async def raw(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            # The server may refuse and close before it has read all of it.
            with contextlib.suppress(ConnectionError):
                writer.write(request)
                await writer.drain()
            answer = b""
            with contextlib.suppress(ConnectionError):
                while chunk := await reader.read(65536):
                    answer += chunk
            return answer
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@contextlib.asynccontextmanager
async def running(subject=None):
    subject = subject or metrics()
    health = HealthChecks()
    now = [0.0]
    server = HttpServer(subject.registry, health, LoopTicker(clock=lambda: now[0]))
    port = await server.start("127.0.0.1", 0)
    try:
        yield Port(port, health, now)
    finally:
        await server.stop()


@pytest.fixture
async def port():
    async with running() as server:
        yield server


async def test_metrics_are_served_as_plain_text_by_default():
    async with running(observed()) as port:
        response, text = await port.get("/metrics")
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "scheduler_schedule_attempts" in {family.name for family in plain_text(text)}


async def test_metrics_are_served_as_openmetrics_on_request():
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    async with running(observed()) as port:
        response, text = await port.get("/metrics", headers={"Accept": accept})
    assert response.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert "scheduler_schedule_attempts" in {family.name for family in openmetrics(text)}


@pytest.mark.parametrize(
    "accept", ["", "*/*", "application/openmetrics-text; version=x.y", "text/plain; version=\x80", ";,;"]
)
async def test_no_accept_header_breaks_the_metrics(port, accept):
    response, _ = await port.get("/metrics", headers={"Accept": accept})
    assert response.status == 200


@pytest.mark.parametrize(
    "path", ["/livez", "/readyz", "/healthz", "/livez/ping", "/readyz/ping", "/healthz/event-loop"]
)
async def test_a_healthy_process_answers_ok(port, path):
    response, text = await port.get(path)
    assert (response.status, text.strip()) == (200, "ok")


async def test_verbose_lists_the_checks(port):
    _, text = await port.get("/livez?verbose")
    assert text == "[+]ping ok\n[+]event-loop ok\nlivez check passed\n"


async def test_readiness_fails_with_the_failing_check_named(port):
    port.health.add_readiness("sched-handler-sync", lambda: "waiting for nodes")
    response, text = await port.get("/readyz")
    assert response.status == 500
    assert "[-]sched-handler-sync failed: waiting for nodes" in text
    response, text = await port.get("/readyz/sched-handler-sync")
    assert (response.status, text) == (500, "internal server error: waiting for nodes\n")
    assert (await port.get("/readyz?exclude=sched-handler-sync"))[0].status == 200
    assert (await port.get("/livez"))[0].status == 200


async def test_liveness_fails_when_the_loop_has_not_ticked(port):
    port.now[0] = 60.0
    response, text = await port.get("/livez")
    assert response.status == 500
    assert "[-]event-loop failed: event loop stalled for 60 s" in text
    assert (await port.get("/readyz"))[0].status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/debug/pprof/",
        "/metrics/",
        "/metrics/..%2f..%2fetc/passwd",
        "/readyz/nothing",
        "/readyz/a/b",
        "/%00",
        "//metrics",
    ],
)
async def test_any_other_path_is_not_found(port, path):
    answer = await port.raw(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_any_other_method_is_not_allowed(port, method):
    response, _ = await port.get("/metrics", method=method)
    assert response.status == 405
    assert response.headers["Allow"] == "GET,HEAD"


@pytest.mark.parametrize("path", ["/metrics", "/readyz", "/nothing"])
async def test_every_answer_carries_the_security_headers(port, path):
    response, _ = await port.get(path)
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Content-Security-Policy"] == "default-src 'none'"
    assert response.headers["Server"] == "bayplan"


BAD, LARGE, BODY = "400 Bad Request", "431 Request Header Fields Too Large", "413 Request Entity Too Large"
HOSTILE = {
    "a header of one megabyte": (LARGE, b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Big: " + b"a" * 1_000_000 + b"\r\n\r\n"),
    "a thousand headers": (BAD, b"GET /livez HTTP/1.1\r\nHost: x\r\n" + b"X-Many: 1\r\n" * 1000 + b"\r\n"),
    "a huge query": (LARGE, b"GET /livez?exclude=" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"),
    "no HTTP at all": (BAD, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    "a bad version": (BAD, b"GET /livez HTTP/9.9.9\r\nHost: x\r\n\r\n"),
    "the preface of HTTP/2": (BAD, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "no version": (BAD, b"GET /livez\r\n\r\n"),
    "a header with a null byte": (BAD, b"GET /livez HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n"),
    "two lengths": (BODY, b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
    "two lengths of nothing": (
        BAD,
        b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
    ),
    "length and chunks": (
        BODY,
        b"GET /livez HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_a_hostile_request_gets_a_bare_4xx_and_no_log_noise(port, case, caplog):
    caplog.set_level(logging.INFO)
    status, request = HOSTILE[case]
    answer = await port.raw(request)
    assert answer.partition(b" ")[2].startswith(f"{status}\r\n".encode()), answer[:200]
    assert b"Traceback" not in answer
    assert b"aiohttp" not in answer.lower()
    assert b"Server: bayplan" in answer
    assert answer.endswith(f"\r\n\r\n{status[4:]}\n".encode())
    assert caplog.records == []
    assert (await port.get("/livez"))[0].status == 200


async def test_a_strange_host_header_changes_nothing(port):
    request = b"GET /livez HTTP/1.1\r\nHost: <script>\r\nConnection: close\r\n\r\n"
    assert (await port.raw(request)).endswith(b"\r\n\r\nok")


SLOW = b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: a"


@contextlib.asynccontextmanager
async def held(port, count, request=b""):
    """Connections that stay open and never finish a request."""
    pairs = []
    for _ in range(count):
        pairs.append(await asyncio.open_connection("127.0.0.1", port.port))
        pairs[-1][1].write(request)
    try:
        yield pairs
    finally:
        for _, writer in pairs:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@contextlib.asynccontextmanager
async def asking(port, count, path):
    """Clients that each ask again as soon as they were answered; yields the list that grows with each answer."""
    answers = []

    async def ask():
        while True:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
                try:
                    while True:
                        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                        head = await reader.readuntil(b"\r\n\r\n")
                        length = int(head.lower().partition(b"content-length: ")[2].split()[0])
                        await reader.readexactly(length)
                        answers.append(head)
                finally:
                    writer.close()

    tasks = [asyncio.create_task(ask()) for _ in range(count)]
    try:
        yield answers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def all_answered(port, probes=20):
    """Whether every one of some probes, each on a connection of its own, gets its answer."""
    request = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answers = [await port.raw(request) for _ in range(probes)]
    return [answer[-2:] for answer in answers] == [b"ok"] * probes


@pytest.mark.parametrize("request_", [b"", SLOW], ids=["idle", "slow"])
async def test_probes_are_answered_however_many_connections_stand_open(port, request_):
    async with held(port, http_module.MAX_CONNECTIONS + 32, request_):
        assert await all_answered(port)


@pytest.mark.parametrize(
    ("path", "per_second"),
    [
        ("/metrics", http_module.OTHERS_PER_SECOND),
        ("/nothing", http_module.OTHERS_PER_SECOND),
        ("/livez", http_module.PROBES_PER_SECOND),
    ],
)
async def test_who_asks_in_a_loop_gets_what_the_scheduler_can_spare_and_probes_are_answered(port, path, per_second):
    started = time.monotonic()
    async with asking(port, 100, path) as answers:
        await until(lambda: answers)
        assert await all_answered(port, probes=2)
        await until(lambda: time.monotonic() - started > 1.5)
        assert len(answers) <= (time.monotonic() - started + 0.25) * per_second + 1


async def test_a_scrape_does_not_wait_for_the_probes_of_others(port):
    async with asking(port, 20, "/livez") as answers:
        await until(lambda: len(answers) > 50)
        assert (await port.get("/metrics"))[0].status == 200


async def test_the_oldest_connection_of_the_peer_makes_room_and_the_others_stay(monkeypatch):
    monkeypatch.setattr(http_module, "MAX_CONNECTIONS_PER_PEER", 3)
    async with running() as port, held(port, 0) as pairs:
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
            pairs.append((reader, writer))
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200 ")
        assert await all_answered(port, probes=1)
        with contextlib.suppress(ConnectionError):
            assert await pairs[0][0].read() == b""
        for reader, writer in pairs[1:]:
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200 ")


async def test_clients_that_hang_up_while_they_wait_leave_no_log_noise(port, caplog):
    caplog.set_level(logging.INFO)
    async with asking(port, 40, "/metrics") as answers:
        await until(lambda: len(answers) > 5)
    assert await all_answered(port, probes=1)
    assert caplog.records == []


async def test_a_defect_behind_metrics_is_logged_and_not_shown(caplog):
    subject = metrics(pending="not a mapping")
    async with running(subject) as port:
        response, text = await port.get("/metrics")
        assert (await port.get("/livez"))[0].status == 200
    assert (response.status, text) == (500, "Internal Server Error\n")
    assert "request failed method=GET path='/metrics'" in caplog.text


async def test_a_port_in_use_is_an_error_and_leaves_nothing_behind(port):
    second = HttpServer(metrics().registry, HealthChecks())
    with pytest.raises(OSError, match="ddress already in use"):
        await second.start("127.0.0.1", port.port)
    await second.stop()


async def test_stopping_closes_the_port_and_idle_connections():
    async with running() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
        await asyncio.sleep(0.05)
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port.port)
