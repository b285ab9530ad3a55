"""A reflector goes on whatever fails or cannot be decoded, and asks no more often than it should."""

import logging

import pytest
from tests.api.reflecting import PODS, View, pod, reflecting, truth
from tests.faults import faults
from tests.faults.api_server import FakeApiServer
from tests.waiting import Sleeps, until

from bayplan.api.backoff import WatchTiming
from bayplan.api.credentials import Credentials
from bayplan.api.token_source import TokenFile


@pytest.mark.parametrize(
    "fault",
    [
        faults.Refuse(401),
        faults.Refuse(403),
        faults.Refuse(429, retry_after=1),
        faults.Refuse(500),
        faults.Refuse(503),
        faults.Reset(),
        faults.HalfReply(),
        faults.Garbage(),
        faults.Garbage(b'{"metadata":{}}'),
        faults.Garbage(b"[" * 100_000),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_a_list_that_fails_is_tried_for_ever(server, fault):
    server.put(PODS, pod("a"))
    server.inject(fault, times=20)
    async with reflecting(server) as (reflector, view):
        await until(lambda: reflector.synced)
        assert view.versions() == truth(server)


@pytest.mark.parametrize(
    "fault",
    [
        faults.StreamError(500),
        faults.StreamError(504),
        faults.StreamError(0),
        faults.EndStream(),
        faults.StreamBytes(b"<html>\n"),
        faults.StreamBytes(b"\x00\xff\xfe\n"),
        faults.StreamBytes(b'{"type":"ERROR","object":"?"}\n'),
        faults.StreamBytes(b'{"type":"BOOKMARK","object":{"metadata":{}}}\n\n\n'),
        faults.StreamBytes(b'{"type":"NOVELTY","object":{"metadata":{"resourceVersion":"11"}}}\n'),
        faults.StreamBytes(b'{"type":"ADDED","object":{"metadata":7}}\n'),
        faults.StreamBytes(b'{"type":"ADDED","object":' + b"[" * 100_000 + b"\n"),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_a_watch_that_fails_is_tried_for_ever_and_lists_again_when_the_version_is_suspect(server, fault, caplog):
    server.put(PODS, pod("a"))
    server.inject(fault, times=12)
    async with reflecting(server) as (_, view):
        await until(lambda: server.watches(PODS) == 13)
        server.put(PODS, pod("b"))
        await until(lambda: "b" in view.objects)
        assert view.versions() == truth(server)
        assert view.synced == 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_many_refused_watches_end_in_a_list(server):
    async with reflecting(server) as (reflector, _):
        await until(lambda: server.watches(PODS))
        server.inject(faults.Refuse(504, "Timeout"), times=6)
        server.end_watches()
        await until(lambda: reflector.relists_total == 1)


@pytest.mark.parametrize(("status", "longest"), [(404, 30.0), (500, 4.0)])
async def test_delays_double_with_jitter_up_to_the_longest_and_start_over_after_an_event(server, status, longest):
    sleeps = Sleeps()
    server.inject(faults.Refuse(status), times=9)
    async with reflecting(server, sleeps=sleeps) as (_, view):
        await until(lambda: server.watches(PODS))
        assert len(sleeps.delays) == 9
        for index, delay in enumerate(sleeps.delays):
            assert min(0.8 * 2**index, longest) <= delay <= min(1.6 * 2**index, longest)
        assert sleeps.delays[0] != sleeps.delays[1] / 2, "jitter"
        server.put(PODS, pod("a"))
        await until(lambda: view.objects)
        server.inject(faults.Refuse(status))
        server.end_watches()
        await until(lambda: server.watches(PODS) == 3)
        assert sleeps.delays[9] <= 1.6


async def test_a_watch_that_breaks_after_an_event_is_a_new_trouble_with_a_short_delay(server):
    sleeps = Sleeps()
    server.inject(faults.Refuse(500), times=8)
    server.inject(faults.CutAfterLine())
    async with reflecting(server, sleeps=sleeps) as (_, view):
        await until(lambda: server.watches(PODS) == 1)
        server.put(PODS, pod("a"))
        await until(lambda: server.watches(PODS) == 2)
        assert list(view.objects) == ["a"]
        assert 0.8 <= sleeps.delays[8] <= 1.6


async def test_retry_after_is_honoured(server):
    sleeps = Sleeps()
    server.inject(faults.Refuse(429, retry_after=17))
    async with reflecting(server, sleeps=sleeps) as (reflector, _):
        await until(lambda: reflector.synced)
        assert sleeps.delays == [17.0]


async def test_refusals_are_told_with_their_time_and_forgotten_when_the_server_answers(server, caplog):
    told, sleeps = [], Sleeps()
    server.inject(faults.Refuse(404, "NotFound"), times=3)
    server.inject(faults.Refuse(500), times=2)

    def on_refused(status, reason, seconds):
        told.append((status, reflector.refused_with, reason, seconds))
        return status == 404

    async with reflecting(server, sleeps=sleeps, on_refused=on_refused) as (reflector, view):
        await until(lambda: reflector.synced)
        assert [(status, known) for status, known, *_ in told] == 3 * [(404, 404)] + 2 * [(500, 500)]
        seconds = [since for *_, since in told]
        assert seconds[0] == seconds[3] == 0.0 < seconds[1] <= seconds[2]
        assert told[0][2] == "404 NotFound: injected"
        assert reflector.refused_with == 0
        # What was reported is not logged; what was not, is.
        assert [r.args[2] for r in caplog.records if "watch interrupted" in r.message] == [4, 5]
        server.put(PODS, pod("a"))
        await until(lambda: view.objects)
        server.inject(faults.Refuse(403))
        server.end_watches()
        await until(lambda: len(told) == 6)
        await until(lambda: not reflector.refused_with)


async def test_a_refused_connection_is_tried_until_the_server_is_back():
    async with FakeApiServer() as gone:
        port = gone.port
    server = FakeApiServer()
    sleeps = Sleeps()
    credentials = Credentials(server=f"http://127.0.0.1:{port}")
    async with reflecting(server, sleeps=sleeps, credentials=credentials) as (reflector, view):
        await until(lambda: len(sleeps.delays) > 3)
        async with server:
            await server.listen(port)
            server.put(PODS, pod("a"))
            await until(lambda: reflector.synced)
            assert list(view.objects) == ["a"]


@pytest.mark.parametrize(
    ("fault", "level"),
    [(faults.SilentStream(), logging.DEBUG), (faults.BlackHole(), logging.WARNING)],
    ids=["open", "not opened"],
)
async def test_a_watch_that_is_silent_beyond_the_limit_is_opened_again(server, fault, level, caplog):
    caplog.set_level(logging.DEBUG)
    server.inject(fault, method="WATCH")
    async with reflecting(server, timing=WatchTiming(inactivity=0.05)) as (reflector, view):
        await until(lambda: server.watches(PODS))
        server.put(PODS, pod("a"))
        await until(lambda: view.objects)
        assert server.watches(PODS) >= 2
        assert reflector.relists_total == 0
    # Where nothing happens silence is ordinary, as long as the API server answers.
    first = next(record for record in caplog.records if "watch interrupted" in record.message)
    assert (first.levelno, "Timeout" in first.message) == (level, True)


async def test_a_list_without_an_answer_is_asked_for_again(server):
    server.inject(faults.BlackHole())
    async with reflecting(server, timing=WatchTiming(list_timeout=0.5)) as (reflector, _):
        await until(lambda: reflector.synced)
        assert server.lists(PODS) == 2


async def test_a_401_fetches_the_rotated_token_at_once(tmp_path):
    file = tmp_path / "token"
    file.write_text("first")
    async with FakeApiServer(tokens={"second"}) as server:
        credentials = Credentials(server=server.url, source=TokenFile(file))
        assert await credentials.token() == "first"
        file.write_text("second\n")
        sleeps = Sleeps()
        async with reflecting(server, credentials=credentials, sleeps=sleeps) as (reflector, _):
            await until(lambda: reflector.synced)
            assert sleeps.delays == []


async def test_an_object_that_cannot_be_decoded_is_reported_once_per_version_and_the_others_go_on(server):
    reports = []
    bad = {"metadata": {"name": "bad", "namespace": "default"}, "spec": {"containers": "none"}}
    server.put(PODS, bad)
    server.put(PODS, pod("good"))
    server.inject(faults.StreamError(410), times=2)
    async with reflecting(server, on_undecodable=lambda name, error: reports.append((name, error))) as (
        reflector,
        view,
    ):
        await until(lambda: reflector.relists_total == 2)
        assert list(view.objects) == ["good"]
        assert [name for name, _ in reports] == ["default/bad"]
        assert "$.spec.containers" in reports[0][1]
        await until(lambda: server.watches(PODS) == 3)
        server.put(PODS, bad)
        server.put(PODS, pod("next"))
        await until(lambda: "next" in view.objects)
        assert len(reports) == 2
        server.put(PODS, pod("bad"))
        await until(lambda: "bad" in view.objects)


@pytest.mark.parametrize(("keep", "left"), [(True, ["a"]), (False, [])])
async def test_the_readable_version_before_an_undecodable_one_is_kept_or_deleted_as_asked(server, keep, left):
    server.put(PODS, pod("a"))
    reports = []
    async with reflecting(server, keep_undecodable=keep, on_undecodable=lambda name, error: reports.append(name)) as (
        _,
        view,
    ):
        await until(lambda: server.watches(PODS))
        server.put(PODS, {"metadata": {"name": "a", "namespace": "default"}, "spec": 7})
        await until(lambda: reports)
        assert list(view.objects) == left
        server.delete(PODS, "default/a")
        server.put(PODS, pod("b"))
        await until(lambda: "b" in view.objects)
        assert list(view.objects) == ["b"]


async def test_a_handler_that_raises_is_logged_with_the_objects_name_and_the_stream_goes_on(server, caplog):
    view = View()

    def fail(call):
        if call == "add a":
            raise RuntimeError("boom")

    view.hook = fail
    server.put(PODS, pod("a"))
    server.put(PODS, pod("b"))
    async with reflecting(server, view=view) as (reflector, _):
        await until(lambda: reflector.synced)
        assert list(view.objects) == ["a", "b"]
    assert "'default/a'" in caplog.text
