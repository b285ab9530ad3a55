"""What somebody without credentials can have the secure port read, keep and answer."""

import asyncio
import contextlib
import socket

import pytest
from tests.server.secure_scene import TOKEN_REVIEWS, USERS, secure_port

from bayplan.server import connection as connection_module
from bayplan.server import http as http_module
from bayplan.server.request_heads import HEAD_BYTES

PROBE = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
STRANGER, KUBELET, PROMETHEUS = "127.0.0.2", "127.0.0.3", "127.0.0.4"
# Of both kernels and of TLS on both sides, beside what the port keeps itself.
ON_THE_WAY = 512 * 1024


@pytest.fixture
async def port():
    async with secure_port() as made:
        yield made


class Stranger:
    """A client that does not wait, and what became of what it sent."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.taken = 0
        """How many bytes of a flood left the client, into the kernel or further."""

    def send(self, data):
        self.writer.write(data)

    async def flood(self, data):
        """Send it again and again, as fast as it is taken."""
        self.writer.transport.set_write_buffer_limits(high=16 * 1024)
        with contextlib.suppress(ConnectionError):
            while True:
                self.writer.write(data)
                await self.writer.drain()
                self.taken += len(data)

    async def answer(self):
        """All that comes until the port closes the connection."""
        got = b""
        with contextlib.suppress(ConnectionError):
            while part := await self.reader.read(65536):
                got += part
        return got


@contextlib.asynccontextmanager
async def stranger(port, address=STRANGER):
    """A connection with little room in its own kernel, so that what it sends is what the port takes."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)
    plain.setblocking(False)
    plain.bind((address, 0))
    await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", port.port))
    made = Stranger(
        *await asyncio.open_connection(sock=plain, ssl=port.client_context(), server_hostname="127.0.0.1", limit=2**24)
    )
    try:
        yield made
    finally:
        made.writer.transport.abort()
        with contextlib.suppress(OSError):
            await made.writer.wait_closed()


@contextlib.asynccontextmanager
async def flooding(strangers, data):
    """All of them flood the port meanwhile."""
    tasks = [asyncio.create_task(each.flood(data)) for each in strangers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def probed(port, times=3):
    """Answers to probes, each on a connection of its own, from another address."""
    answers = []
    for _ in range(times):
        async with stranger(port, KUBELET) as kubelet:
            kubelet.send(PROBE)
            answers.append((await kubelet.reader.readuntil(b"\r\n\r\nok"))[:12])
    return answers


def head(bytes_of_it, path=b"/x", field=b""):
    """A request of some bytes."""
    start = b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n" + field + b"A: "
    fields = b"\r\nA: ".join([b"a" * 4000] * (bytes_of_it // 4005))
    return start + fields + b"\r\n\r\n"


async def test_of_requests_that_do_not_wait_for_answers_one_is_read_ahead(monkeypatch):
    monkeypatch.setattr(http_module, "OTHERS_PER_SECOND", 0.01)
    async with secure_port() as port, contextlib.AsyncExitStack() as stack, asyncio.timeout(120):
        flood = [await stack.enter_async_context(stranger(port)) for _ in range(4)]
        async with flooding(flood, head(28_000)):
            assert await probed(port, times=20) == [b"HTTP/1.1 200"] * 20
        assert sum(each.taken for each in flood) < 4 * ON_THE_WAY


@pytest.mark.parametrize(
    ("sent", "endless", "status"),
    [
        (b"\r\n", b"\r\n" * 8_192, b"431"),
        (b"GET /livez HTTP/1.1\r\nHost: x\r\nA: ", b"a" * 16_384, b"431"),
        (b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 16_384, b"413"),
        (b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 3_000, b"413"),
    ],
    ids=["empty lines", "a header", "a body", "chunks"],
)
async def test_what_never_ends_is_refused_and_not_read(port, sent, endless, status):
    async with stranger(port) as flood, asyncio.timeout(60):
        flood.send(sent)
        answer = asyncio.create_task(flood.answer())
        async with flooding([flood], endless):
            assert await probed(port, times=20) == [b"HTTP/1.1 200"] * 20
        assert (await answer).startswith(b"HTTP/1.1 " + status)
        assert flood.taken < ON_THE_WAY


async def test_a_small_body_is_refused_as_well_and_its_client_reads_so(port):
    async with stranger(port) as client, asyncio.timeout(60):
        client.send(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        answer = await client.answer()
    assert answer.startswith(b"HTTP/1.1 413 Request Entity Too Large\r\n")
    assert b"Connection: close\r\n" in answer
    assert answer.endswith(b"\r\n\r\nRequest Entity Too Large\n")


@pytest.mark.parametrize("field", [b"Expect: x\r\n", b"Expect: 100-continue\r\n", b""])
async def test_every_request_waits_for_its_turn_whatever_it_expects(monkeypatch, field):
    monkeypatch.setattr(http_module, "OTHERS_PER_SECOND", 0.01)
    async with secure_port() as port, stranger(port) as flood, asyncio.timeout(60):
        flood.send(head(4_100, field=field) * 50)
        assert await probed(port) == [b"HTTP/1.1 200"] * 3
        flood.writer.transport.abort()
        answers = await flood.answer()
        assert answers.count(b"HTTP/1.1 4") <= 1


async def test_a_token_of_16_kilobytes_is_read(port, monkeypatch):
    token = "t" * 16 * 1024
    monkeypatch.setitem(USERS, token, "reader")
    assert (await port.get("/metrics", token))[0] == 200
    assert port.asked(TOKEN_REVIEWS) == 1


async def test_a_head_that_comes_in_pieces_is_answered(port):
    async with stranger(port) as slow, asyncio.timeout(60):
        whole = head(HEAD_BYTES - 2_000, b"/livez")
        for at in range(0, len(whole), 4_000):
            slow.send(whole[at : at + 4_000])
            await slow.writer.drain()
            await asyncio.sleep(0.01)
        assert (await slow.reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200")


async def test_a_head_that_never_ends_is_cut_off(monkeypatch):
    monkeypatch.setattr(connection_module, "IDLE_SECONDS", 0.5)
    async with secure_port() as port, stranger(port) as slow, asyncio.timeout(60):
        slow.send(b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        answer = asyncio.create_task(slow.answer())
        while not answer.done():
            slow.send(b"a")
            await asyncio.sleep(0.05)
        assert await answer == b""


async def test_requests_sent_together_are_answered_in_their_order(port):
    async with stranger(port) as client, asyncio.timeout(60):
        client.send(PROBE + b"\r\nGET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n" + PROBE)
        for status in (b"200", b"401", b"200"):
            answer = await client.reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 " + status)
            await client.reader.readexactly(int(answer.lower().partition(b"content-length: ")[2].split()[0]))


@contextlib.asynccontextmanager
async def silent(port, addresses):
    """Connections that never say anything, each from another address."""
    loop, pairs = asyncio.get_running_loop(), []
    try:
        for number in range(addresses):
            pairs.append(socket.socket())
            pairs[-1].setblocking(False)
            pairs[-1].bind((f"127.1.{number // 250}.{number % 250 + 1}", 0))
            await loop.sock_connect(pairs[-1], ("127.0.0.1", port.port))
        yield pairs
    finally:
        for each in pairs:
            each.close()


async def test_who_says_nothing_takes_no_turn_from_whatever_addresses(monkeypatch):
    monkeypatch.setattr(http_module, "HANDSHAKES_PER_SECOND", 4.0)
    async with secure_port() as port, silent(port, 300) as connections, asyncio.timeout(60):
        assert await probed(port) == [b"HTTP/1.1 200"] * 3
        for each in connections:
            with pytest.raises(BlockingIOError):
                each.recv(1)


async def test_of_more_who_say_nothing_than_there_is_room_for_the_oldest_goes(monkeypatch):
    monkeypatch.setattr(http_module, "MAX_SILENT", 20)
    async with secure_port() as port, silent(port, 40) as connections, asyncio.timeout(60):
        assert await probed(port) == [b"HTTP/1.1 200"] * 3
        for each in connections[:20]:
            assert await asyncio.get_running_loop().sock_recv(each, 1) == b""
        with pytest.raises(BlockingIOError):
            connections[-1].recv(1)


async def test_who_does_not_speak_tls_takes_no_turn(monkeypatch):
    monkeypatch.setattr(http_module, "HANDSHAKES_PER_SECOND", 0.01)
    async with secure_port() as port, silent(port, 8) as connections, asyncio.timeout(60):
        for each in connections:
            each.send(PROBE)
        for each in connections:
            with contextlib.suppress(ConnectionError):
                assert await asyncio.get_running_loop().sock_recv(each, 1) == b""
        assert await probed(port, times=1) == [b"HTTP/1.1 200"]


async def test_a_scrape_waits_for_one_request_of_each_other_address_and_no_more(monkeypatch):
    monkeypatch.setattr(http_module, "OTHERS_PER_SECOND", 0.5)
    async with secure_port() as port, contextlib.AsyncExitStack() as stack, asyncio.timeout(60):
        flood = [await stack.enter_async_context(stranger(port)) for _ in range(20)]
        scraper = await stack.enter_async_context(stranger(port, PROMETHEUS))
        for each in flood:
            each.send(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        assert await probed(port, times=1) == [b"HTTP/1.1 200"]
        scraper.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer reader-token\r\n\r\n")
        assert (await scraper.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        for each in flood:
            each.writer.transport.abort()
        answers = b"".join([await each.answer() for each in flood])
        assert answers.count(b"HTTP/1.1 401") < 12
