import asyncio
import contextlib
import logging
import ssl

import pytest
from aiohttp import ClientError
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.faults.certificates import Authority
from tests.faults.faults import BlackHole, Garbage, Refuse
from tests.server.secure_scene import ACCESS_REVIEWS, TOKEN_REVIEWS, secure_port
from tests.waiting import until

from bayplan.server import handshake as handshake_module
from bayplan.server import http as http_module
from bayplan.server import reviews as reviews_module
from bayplan.server.serving_tls import checked_identity, signed


@pytest.fixture
async def port():
    async with secure_port() as made:
        yield made


async def test_who_shows_no_credentials_gets_401_and_the_api_server_is_not_asked(port):
    assert await port.get("/metrics") == (401, "Unauthorized\n")
    assert port.api.requests == []


@pytest.mark.parametrize("path", ["/metrics", "/named", "/nothing", "/livez/ping"])
async def test_nothing_but_probes_is_open(port, path):
    assert (await port.get(path))[0] == 401


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/livez?verbose"])
async def test_probes_need_no_credentials_and_bad_ones_do_not_hurt(port, path):
    assert (await port.get(path))[0] == 200
    assert (await port.get(path, "made-up"))[0] == 200
    assert port.api.requests == []


async def test_a_token_with_the_right_is_let_in(port):
    status, text = await port.get("/metrics", "reader-token")
    assert (status, "scheduler_" in text) == (200, True)


async def test_a_token_without_the_right_gets_403_with_its_own_name(port):
    assert await port.get("/metrics", "stranger-token") == (
        403,
        'Forbidden: User "stranger" cannot get path "/metrics"\n',
    )
    assert (await port.get("/named", "reader-token"))[0] == 403


async def test_a_head_is_another_verb(port):
    assert (await port.get("/metrics", "reader-token", method="HEAD"))[0] == 403


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer ", "Basic cmVhZGVy", "reader-token", "Bearer two parts", "Bearer t\u00e4st"]
)
async def test_what_is_no_bearer_token_is_no_credentials(port, header):
    assert (await port.get("/metrics", authorization=header))[0] == 401
    assert port.api.requests == []


async def test_a_token_of_nobody_gets_401(port):
    assert (await port.get("/metrics", "made-up"))[0] == 401


async def test_the_api_server_is_asked_once_a_token_and_right_for_ten_seconds(port):
    for _ in range(3):
        for token in ("reader-token", "stranger-token", "made-up"):
            await port.get("/metrics", token)
    assert (port.asked(TOKEN_REVIEWS), port.asked(ACCESS_REVIEWS)) == (3, 2)


async def test_it_is_told_all_that_is_known_of_the_user(port):
    await port.get("/metrics", "reader-token")
    body = next(seen.body for seen in port.api.requests if seen.path == ACCESS_REVIEWS)
    for part in (
        b'"user":"reader"',
        b'"uid":"u1"',
        b'"groups":["team","system:authenticated"]',
        b'"extra":{"k":["v"]}',
    ):
        assert part in body


async def test_answers_age():
    async with secure_port(token_seconds=0.0, denied_seconds=0.0) as port:
        for _ in range(2):
            await port.get("/metrics", "stranger-token")
        assert (port.asked(TOKEN_REVIEWS), port.asked(ACCESS_REVIEWS)) == (2, 2)


async def test_paths_are_opened_by_prefix_as_well():
    async with secure_port(always_allow=("livez*", "/metrics")) as port:
        assert [(await port.get(path))[0] for path in ("/livez/ping", "/metrics", "/readyz")] == [200, 200, 401]


@pytest.mark.parametrize("fault", [Refuse(500), Refuse(403), Refuse(429, retry_after=1), Garbage()])
async def test_without_an_answer_of_the_api_server_nobody_is_let_in(port, fault, caplog):
    port.api.inject(fault, path=TOKEN_REVIEWS, times=99)
    async with asyncio.timeout(30):
        assert (await port.get("/metrics", "reader-token"))[0] == 401
    assert "nobody" not in caplog.text
    assert [each.levelname for each in caplog.records if "reviews" in each.name] == ["WARNING"]
    assert "reader-token" not in caplog.text
    assert (await port.get("/livez"))[0] == 200


async def test_without_an_answer_about_rights_nobody_is_let_in(port):
    port.api.inject(Refuse(503), path=ACCESS_REVIEWS, times=99)
    assert (await port.get("/metrics", "reader-token"))[0] == 500


async def test_a_failure_is_forgotten_at_once(port):
    port.api.inject(Refuse(503), path=TOKEN_REVIEWS)
    assert [(await port.get("/metrics", "reader-token"))[0] for _ in range(2)] == [401, 200]


async def test_probes_do_not_wait_for_an_api_server_that_says_nothing(port, monkeypatch):
    monkeypatch.setattr(reviews_module, "REVIEW_SECONDS", 3.0)
    port.api.inject(BlackHole(), path=TOKEN_REVIEWS, times=99)
    waiting = asyncio.create_task(port.get("/metrics", "reader-token"))
    await until(lambda: port.asked(TOKEN_REVIEWS))
    assert (await port.get("/livez"))[0] == 200
    assert not waiting.done()
    assert (await waiting)[0] == 401


def issued(authority, **options):
    return authority.issue(options.pop("name", "reader"), [], **options)


async def test_a_client_certificate_of_the_authority_is_let_in(port, tmp_path):
    authority = Authority("clients")
    port.client_authority = authority.pem
    reader = port.client_context(issued(authority), tmp_path)
    assert (await port.get("/metrics", context=reader))[0] == 200
    group = port.client_context(issued(authority, name="x", organisations=["readers"]), tmp_path)
    assert (await port.get("/metrics", context=group))[0] == 200
    stranger = port.client_context(issued(authority, name="y"), tmp_path)
    assert (await port.get("/metrics", context=stranger))[0] == 403
    masters = port.client_context(issued(authority, name="z", organisations=["system:masters"]), tmp_path)
    assert (await port.get("/named", context=masters))[0] == 200
    assert port.asked(TOKEN_REVIEWS) == 0


async def test_a_certificate_without_a_name_is_no_credentials_but_a_token_beside_it_is(port, tmp_path):
    authority = Authority("clients")
    port.client_authority = authority.pem
    nameless = port.client_context(issued(authority, name="", organisations=["readers"]), tmp_path)
    assert (await port.get("/metrics", context=nameless))[0] == 401
    assert (await port.get("/metrics", "reader-token", context=nameless))[0] == 200


async def test_a_certificate_of_another_authority_gets_no_connection(port, tmp_path):
    port.client_authority = Authority("clients").pem
    with pytest.raises((ClientError, ssl.SSLError)):
        await port.get("/livez", context=port.client_context(issued(Authority("others")), tmp_path))


async def test_without_an_authority_a_certificate_is_not_asked_for(port, tmp_path):
    context = port.client_context(issued(Authority("clients")), tmp_path)
    assert (await port.get("/metrics", context=context))[0] == 401


async def test_a_connection_that_outlives_the_authority_of_its_certificate_is_nobodys(port, tmp_path):
    authority = Authority("clients")
    port.client_authority = authority.pem
    reader, writer = await port.connect(ssl=port.client_context(issued(authority), tmp_path))
    request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
    port.client_authority = Authority("the next").pem
    writer.write(request)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 401 ")
    writer.close()


async def test_a_new_certificate_is_shown_from_the_next_connection_on(port):
    async def shown():
        _, writer = await port.connect(ssl=port.client_context())
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return certificate

    before = await shown()
    assert await shown() == before
    port.identity = port.new_identity()
    assert await shown() != before


async def test_plain_http_is_no_tls(port, caplog):
    caplog.set_level(logging.INFO)
    reader, writer = await port.connect()
    writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
    with contextlib.suppress(ConnectionError):
        assert b"200" not in await reader.read()
    writer.close()
    assert caplog.records == []


async def test_old_tls_is_not_spoken(port):
    context = port.client_context()
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await port.connect(ssl=context)


@contextlib.asynccontextmanager
async def silent(port, count):
    """Clients that connect and never begin a handshake."""
    pairs = [await port.connect() for _ in range(count)]
    try:
        yield pairs
    finally:
        for _, writer in pairs:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def test_probes_are_answered_however_many_handshakes_never_end(port):
    async with silent(port, 160):
        for _ in range(3):
            assert (await port.get("/livez"))[0] == 200


async def test_handshakes_that_never_end_are_bounded_in_number_and_the_oldest_ends(port):
    async with silent(port, 33) as pairs, asyncio.timeout(30):
        with contextlib.suppress(ConnectionError):
            assert await pairs[0][0].read() == b""
        assert not pairs[-1][0].at_eof()


async def test_a_handshake_that_never_ends_is_cut_off(monkeypatch):
    monkeypatch.setattr(handshake_module, "HANDSHAKE_SECONDS", 0.2)
    async with secure_port() as port, silent(port, 1) as pairs, asyncio.timeout(30):
        with contextlib.suppress(ConnectionError):
            assert await pairs[0][0].read() == b""


async def test_stopping_ends_handshakes():
    async with secure_port() as port:
        reader, writer = await port.connect()
        assert (await port.get("/livez"))[0] == 200
    async with asyncio.timeout(30):
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
    writer.close()


async def test_a_flood_of_handshakes_waits_for_itself_and_a_probe_from_elsewhere_does_not(monkeypatch):
    monkeypatch.setattr(http_module, "HANDSHAKES_PER_SECOND", 2.0)
    async with secure_port() as port, asyncio.timeout(60):
        done = []

        async def flood():
            _, writer = await port.connect(ssl=port.client_context())
            done.append(writer)

        flooding = [asyncio.create_task(flood()) for _ in range(20)]
        await until(lambda: done)
        probe = await port.connect(ssl=port.client_context(), local_addr=("127.0.0.2", 0))
        # The probe's is the next turn or the one after it, however many wait.
        assert len(done) < 10
        probe[1].write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await probe[0].readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200 ")
        for task in flooding:
            task.cancel()
        await asyncio.gather(*flooding, return_exceptions=True)
        for writer in [*done, probe[1]]:
            writer.close()


async def test_a_certificate_that_costs_more_is_known_when_it_is_first_shown(port):
    key = rsa.generate_private_key(65537, 2048)
    before = port.tls.cost()
    port.identity = checked_identity(*signed(key, "127.0.0.1"))
    port.tls.context()
    assert (before, port.tls.cost()) == (1.0, 1.4)
