import asyncio
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.api.clients import BINDING, POD, PODS, calling, put_pod
from tests.faults.api_server import FakeApiServer
from tests.faults.faults import BlackHole, Delay, DropReply, HalfReply, Redirect, Refuse, Reset
from tests.waiting import Sleeps

from bayplan.api.client import MAX_THROTTLED_TRIES
from bayplan.api.credentials import Credentials
from bayplan.api.errors import AmbiguousError, CredentialsError, UnreachableError
from bayplan.api.kinds import path_segment
from bayplan.api.response import decode_status
from bayplan.api.token_source import StaticToken, TokenFile


@pytest.fixture
def server(server):
    """An API server with pod a."""
    return put_pod(server)


@pytest.fixture
async def client(server):
    async with calling(Credentials(server=server.url)) as client:
        yield client


def node_of(server):
    return server.objects[PODS]["default/a"].get("spec", {}).get("nodeName")


async def test_a_request_goes_out_as_it_was_given(server, client):
    response = await client.request("POST", f"{POD}/binding", body=BINDING)
    assert (response.status, response.retry_after) == (201, None)
    assert json.loads(response.body)["status"] == "Success"
    assert node_of(server) == "n1"
    await client.request("PATCH", f"{POD}/status?x=1", body=b"{}", content_type="application/merge-patch+json")
    first, second = server.requests
    assert first.headers["content-type"] == "application/json"
    assert first.headers["accept"] == "application/json"
    assert first.headers["user-agent"].startswith("bayplan/")
    assert first.body == BINDING
    assert "authorization" not in {name.lower() for name in first.headers}
    assert second.query == {"x": "1"}
    assert second.headers["content-type"] == "application/merge-patch+json"


@pytest.mark.parametrize("code", [301, 403, 404, 409, 410, 429, 500, 503])
async def test_an_http_status_is_an_answer_not_an_exception(server, client, code):
    server.inject(Refuse(code, "Why"))
    response = await client.request("GET", POD)
    assert response.status == code
    assert decode_status(response.body) == ("Why", "injected")
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", [DropReply(), HalfReply()], ids=lambda fault: type(fault).__name__)
async def test_an_answer_lost_after_the_server_acted_is_ambiguous(server, client, fault):
    server.inject(fault)
    with pytest.raises(AmbiguousError, match=f"POST {POD}/binding"):
        await client.request("POST", f"{POD}/binding", body=BINDING)
    assert node_of(server) == "n1"
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", [Reset(), BlackHole(), Delay(0.2)], ids=lambda fault: type(fault).__name__)
async def test_a_request_that_was_sent_and_not_answered_is_ambiguous(server, client, fault):
    server.inject(fault)
    with pytest.raises(AmbiguousError):
        await client.request("POST", f"{POD}/binding", body=BINDING, timeout_seconds=0.1)
    assert len(server.requests) == 1
    assert (await client.request("GET", POD)).status == 200


@pytest.mark.parametrize("fault", [BlackHole(), Delay(0.2)], ids=lambda fault: type(fault).__name__)
async def test_an_answer_that_does_not_come_in_time_is_told_as_that_and_not_as_a_connection(server, client, fault):
    server.inject(fault)
    with pytest.raises(AmbiguousError) as raised:
        await client.request("POST", f"{POD}/binding", body=BINDING, timeout_seconds=0.1)
    assert str(raised.value) == f"POST {POD}/binding: no answer within 0.1 s"


async def test_a_reset_of_a_kept_connection_is_ambiguous_and_never_repeated(server, client):
    await client.request("GET", POD)
    server.inject(Reset())
    with pytest.raises(AmbiguousError):
        await client.request("POST", f"{POD}/binding", body=BINDING)
    assert [seen.method for seen in server.requests] == ["GET", "POST"]


async def test_an_answer_that_is_not_http_is_ambiguous():
    serving = []

    async def serve(reader, writer):
        serving.append(asyncio.current_task())
        await reader.read(10)
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, calling(Credentials(server=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")) as client:
        with pytest.raises(AmbiguousError):
            await client.request("POST", "/x", body=b"{}")
    # Also a connection that the client opened and did not use.
    await asyncio.gather(*serving, return_exceptions=True)


@pytest.mark.parametrize("host", ["127.0.0.1:1", "nowhere.invalid"])
async def test_a_server_that_cannot_be_connected_is_unreachable(host):
    async with calling(Credentials(server=f"http://{host}")) as client:
        with pytest.raises(UnreachableError, match="GET /api"):
            await client.request("GET", "/api")


async def test_without_a_token_to_send_nothing_is_sent(server):
    class Broken:
        min_interval = 0.0

        async def issue(self):
            raise CredentialsError("plugin is down")

    async with calling(Credentials(server=server.url, source=Broken())) as client:
        with pytest.raises(UnreachableError, match="plugin is down"):
            await client.request("GET", POD)
        assert server.requests == []


async def test_a_401_renews_the_token_and_tries_once_more(tmp_path):
    file = tmp_path / "token"
    file.write_text("old")
    async with FakeApiServer(tokens={"new"}) as server, contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(calling(Credentials(server=server.url, source=TokenFile(file))))
        assert (await client.request("GET", POD)).status == 401
        assert len(server.requests) == 2
        file.write_text("new")
        assert (await client.request("GET", POD)).status == 404
        assert (await client.request("GET", POD)).status == 404
        sent = [seen.headers["authorization"] for seen in server.requests]
        assert sent == ["Bearer old", "Bearer old", "Bearer old", "Bearer new", "Bearer new"]


async def test_a_429_with_retry_after_is_tried_again_when_it_says(server):
    sleeps = Sleeps()
    async with calling(Credentials(server=server.url), sleep=sleeps) as client:
        server.inject(Refuse(429, retry_after=3), times=2)
        assert (await client.request("POST", f"{POD}/binding", body=BINDING)).status == 201
        assert sleeps.delays == [3.0, 3.0]


async def test_a_429_that_admission_gave_speaks_for_its_namespace_only_and_is_not_waited_for(server):
    sleeps = Sleeps()
    async with calling(Credentials(server=server.url), sleep=sleeps) as client:
        server.inject(Refuse(429, retry_after=30, message='admission webhook "a.example" denied the request: later'))
        assert (await client.request("POST", f"{POD}/binding", body=BINDING)).status == 429
        assert (sleeps.delays, len(server.requests)) == ([], 1)


async def test_nothing_is_sent_again_if_what_is_called_before_raises(server):
    tries = []

    def on_send():
        tries.append(len(server.requests))
        if len(tries) == 2:
            raise ValueError("not wanted any more")

    async with calling(Credentials(server=server.url)) as client:
        server.inject(Refuse(429, retry_after=3))
        with pytest.raises(ValueError, match="not wanted any more"):
            await client.request("POST", f"{POD}/binding", body=BINDING, on_send=on_send)
        assert tries == [0, 1]
        assert len(server.requests) == 1


async def test_a_429_for_ever_ends_as_an_answer(server):
    sleeps = Sleeps()
    async with calling(Credentials(server=server.url), sleep=sleeps) as client:
        server.inject(Refuse(429, retry_after=1), times=100)
        response = await client.request("GET", POD)
        assert (response.status, response.retry_after) == (429, 1.0)
        assert len(server.requests) == MAX_THROTTLED_TRIES


async def test_a_429_that_asks_for_an_hour_is_left_to_the_caller(server, client):
    server.inject(Refuse(429, retry_after=3600))
    response = await client.request("GET", POD)
    assert (response.status, response.retry_after) == (429, 3600.0)


async def test_every_try_is_observed_with_its_code(server):
    seen = []
    async with calling(
        Credentials(server=server.url),
        on_request=lambda method, code, seconds: seen.append((method, code, seconds >= 0)),
    ) as client:
        server.inject(Refuse(429, retry_after=0))
        await client.request("GET", POD)
        server.inject(Reset())
        with pytest.raises(AmbiguousError):
            await client.request("DELETE", POD)
        assert seen == [("GET", "429", True), ("GET", "200", True), ("DELETE", "<error>", True)]


async def test_a_twin_shares_the_rate_limit(server):
    sleeps = Sleeps()
    async with calling(Credentials(server=server.url), qps=1, burst=2, sleep=sleeps) as client:
        twin = client.twin()
        for each in (client, twin, client):
            await each.request("GET", POD)
        await twin.close()
    assert len(sleeps.delays) == 1, "the third of two waits"


REFUSALS = [
    (
        500,
        'Internal error occurred: failed calling webhook "w.io": failed to call webhook: Post "https://w": EOF',
        True,
    ),
    (403, 'admission webhook "w.io" denied the request: not\ntoday', True),
    (422, "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", True),
    (403, 'events "e" is forbidden: exceeded quota: q, requested: count/events=1, used: 1, limited: 1', True),
    (403, 'pods "a" is forbidden: User "u" cannot create resource "pods/binding"', False),
    (500, "etcdserver: request timed out", False),
    (409, "Operation cannot be fulfilled", False),
]


@pytest.mark.parametrize(("status", "message", "refused"), REFUSALS)
async def test_what_admission_refused_is_told_with_the_path(server, status, message, refused):
    told = []
    server.inject(Refuse(status, "Why", message=message))
    async with calling(Credentials(server=server.url), on_refused=lambda *call: told.append(call)) as client:
        answer = await client.request("POST", f"{POD}/binding", body=BINDING)
    assert (answer.is_refused_by_admission, told) == (refused, [("POST", f"{POD}/binding")] if refused else [])


async def test_redirects_are_not_followed_so_that_the_token_stays_here():
    async with FakeApiServer() as thief, FakeApiServer() as server:
        server.inject(Redirect(thief.url))
        async with calling(Credentials(server=server.url, source=StaticToken("secret"))) as client:
            assert (await client.request("GET", POD)).status == 307
        assert thief.requests == []


async def test_the_error_of_a_failed_request_does_not_hold_the_token():
    async with calling(Credentials(server="http://127.0.0.1:1", source=StaticToken("topsecret"))) as client:
        with pytest.raises(UnreachableError) as caught:
            await client.request("GET", "/api")
    assert "topsecret" not in repr(caught.value) + repr(caught.value.__cause__) + repr(vars(caught.value.__cause__))


# Names in paths.


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("node-1.example", "node-1.example"),
        ("../../x y", "..%2F..%2Fx%20y"),
        ("<script>", "%3Cscript%3E"),
        ("a?b#c%2e", "a%3Fb%23c%252e"),
        ("ä\t", "%C3%A4%09"),
    ],
)
async def test_a_hostile_name_stays_one_segment_of_the_path(server, client, name, segment):
    assert path_segment(name) == segment
    await client.request("GET", f"/api/v1/nodes/{path_segment(name)}")
    assert server.requests[0].raw_path == f"/api/v1/nodes/{segment}"


@pytest.mark.parametrize("name", ["", ".", "..", "\ud800"])
def test_a_name_that_cannot_be_a_segment_is_refused(name):
    with pytest.raises(ValueError, match=r"cannot be|surrogates"):
        path_segment(name)


# Status objects.


@given(
    st.binary()
    | st.recursive(
        st.none() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["reason", "message", "x"]), x),
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_body_decodes_to_two_strings(body):
    reason, message = decode_status(body)
    assert isinstance(reason, str)
    assert isinstance(message, str)


def test_a_body_that_is_no_status_is_shown_in_part():
    assert decode_status(b"<html>" + b"x" * 1000) == ("", "<html>" + "x" * 194)


def test_a_login_that_the_api_server_does_not_know_is_told_as_that_and_not_by_its_one_word():
    body = b'{"kind":"Status","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}'
    said = "the API server does not know the token or certificate, or it has expired"
    assert decode_status(body) == ("Unauthorized", said)


async def test_waiting_for_the_rate_limit_is_observed(server):
    waits = []
    async with calling(
        Credentials(server=server.url),
        qps=100,
        burst=1,
        clock=lambda: 0.0,
        on_throttle=lambda *wait: waits.append(wait),
    ) as client:
        for _ in range(3):
            await client.request("GET", POD)
    assert waits == [("GET", pytest.approx(0.01)), ("GET", pytest.approx(0.02))]
