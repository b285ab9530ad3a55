import asyncio
import contextlib
import json
import logging
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.api_server import FakeApiServer
from tests.faults.faults import (
    BlackHole,
    CutAfterLine,
    CutLine,
    DribbleLines,
    DuplicateEvents,
    EndStream,
    Garbage,
    HalfReply,
    Refuse,
    Reset,
    ResetInLine,
    SilentStream,
    StreamBytes,
    StreamError,
)

from bayplan.api.credentials import Credentials
from bayplan.api.objects import Node, Pod
from bayplan.api.reflector import Reflector, Timing
from bayplan.api.token_source import TokenFile

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"


class View:
    """A handler that remembers what it was told, and objects to being told nonsense."""

    def __init__(self) -> None:
        self.objects: dict[str, object] = {}
        self.calls: list[str] = []
        self.synced = 0
        self.hook: Callable[[str], None] = lambda call: None

    def on_add(self, obj):
        assert obj.metadata.name not in self.objects
        self.objects[obj.metadata.name] = obj
        self._called("add", obj)

    def on_update(self, old, new):
        assert self.objects[new.metadata.name] is old
        assert old.metadata.uid == new.metadata.uid
        self.objects[new.metadata.name] = new
        self._called("update", new)

    def on_delete(self, obj):
        assert self.objects.pop(obj.metadata.name) is obj
        self._called("delete", obj)

    def on_synced(self):
        self.synced += 1
        self._called("synced", None)

    def versions(self):
        return {name: (obj.metadata.uid, obj.metadata.resource_version) for name, obj in self.objects.items()}

    def _called(self, what, obj):
        call = f"{what} {obj.metadata.name}" if obj else what
        self.calls.append(call)
        self.hook(call)


class Sleeps:
    """Notes how long the reflector would have slept, and lets it go on at once."""

    def __init__(self) -> None:
        self.delays: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.delays.append(seconds)
        await asyncio.sleep(0)


def pod(name, **spec):
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def truth(server, collection=PODS):
    return {
        o["metadata"]["name"]: (o["metadata"]["uid"], o["metadata"]["resourceVersion"])
        for o in server.objects.get(collection, {}).values()
    }


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the condition is often the server's state
            await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def reflecting(server, *, view=None, path=PODS, object_type=Pod, sleeps=None, credentials=None, **options):
    view = view or View()
    reflector = Reflector(
        credentials or Credentials(server=server.url),
        path,
        object_type,
        handler=view,
        sleep=sleeps or Sleeps(),
        rng=random.Random(1),
        **options,
    )
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector, view
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_the_first_list_is_added_in_pages_and_then_synced_is_said_once():
    async with FakeApiServer() as server:
        for name in "abcde":
            server.put(PODS, pod(name))
        async with reflecting(server, page_size=2) as (reflector, view):
            await until(lambda: reflector.synced)
            assert view.calls == ["add a", "add b", "add c", "add d", "add e", "synced"]
            assert server.lists(PODS) == 3
            assert reflector.relists_total == 0
            await until(lambda: server.watches(PODS))
            watch = server.requests[-1].query
            assert watch["allowWatchBookmarks"] == "true"
            assert watch["resourceVersion"] == "15"
            assert 300 <= int(watch["timeoutSeconds"]) <= 600


async def test_an_empty_list_is_synced_too():
    async with FakeApiServer() as server, reflecting(server) as (reflector, view):
        await until(lambda: reflector.synced)
        assert view.calls == ["synced"]


async def test_changes_come_in_order_with_the_object_they_replace():
    async with FakeApiServer() as server, reflecting(server) as (reflector, view):
        await until(lambda: reflector.synced)
        server.put(PODS, pod("a"))
        server.put(PODS, pod("a", nodeName="n1"))
        server.put(PODS, pod("b"))
        server.delete(PODS, "default/a")
        await until(lambda: "delete a" in view.calls)
        assert view.calls == ["synced", "add a", "update a", "add b", "delete a"]
        assert view.objects == {"b": reflector.objects["default/b"]}


async def test_selectors_are_the_servers_work():
    async with FakeApiServer() as server:
        server.put(PODS, pod("mine", nodeName="n1"))
        server.put(PODS, pod("other"))
        async with reflecting(server, field_selector="spec.nodeName!=", label_selector="a=b") as (_, view):
            await until(lambda: server.watches(PODS))
            assert list(view.objects) == ["mine"]
            for seen in server.requests:
                assert seen.query["fieldSelector"] == "spec.nodeName!="
                assert seen.query["labelSelector"] == "a=b"
            server.put(PODS, pod("other", nodeName="n1"))
            server.put(PODS, pod("mine"))
            await until(lambda: "delete mine" in view.calls)
            assert list(view.objects) == ["other"]


async def test_cluster_scoped_objects_are_kept_by_name():
    async with FakeApiServer() as server:
        server.put(NODES, {"metadata": {"name": "n1"}})
        async with reflecting(server, path=NODES, object_type=Node) as (reflector, view):
            await until(lambda: reflector.synced)
            assert list(reflector.objects) == ["n1"]
            server.delete(NODES, "n1")
            await until(lambda: not view.objects)


async def test_a_clean_end_is_watched_on_from_the_last_version_without_a_list():
    async with FakeApiServer() as server:
        sleeps = Sleeps()
        async with reflecting(server, sleeps=sleeps) as (_, view):
            await until(lambda: server.watches(PODS))
            last = server.put(PODS, pod("a"))
            await until(lambda: view.objects)
            server.end_watches()
            await until(lambda: server.watches(PODS) == 2)
            assert server.lists(PODS) == 1
            assert server.requests[-1].query["resourceVersion"] == last["metadata"]["resourceVersion"]
            assert sleeps.delays == []


@pytest.mark.parametrize("fault", [CutLine(), ResetInLine()], ids=lambda fault: type(fault).__name__)
async def test_a_line_cut_in_the_middle_is_asked_for_again(fault):
    async with FakeApiServer() as server:
        server.inject(fault)
        async with reflecting(server) as (reflector, view):
            await until(lambda: server.watches(PODS))
            server.put(PODS, pod("a"))
            await until(lambda: "add a" in view.calls)
            assert server.watches(PODS) == 2
            assert reflector.relists_total == 0
            assert view.versions() == truth(server)


async def test_lines_that_come_in_pieces_are_whole():
    async with FakeApiServer() as server:
        server.inject(DribbleLines())
        async with reflecting(server) as (_, view):
            await until(lambda: server.watches(PODS))
            for name in "abc":
                server.put(PODS, pod(name, schedulerName="x" * 500))
            await until(lambda: len(view.objects) == 3)
            assert view.versions() == truth(server)


async def test_a_duplicate_event_is_dropped():
    async with FakeApiServer() as server:
        server.inject(DuplicateEvents())
        async with reflecting(server) as (_, view):
            await until(lambda: server.watches(PODS))
            server.put(PODS, pod("a"))
            server.put(PODS, pod("a", nodeName="n1"))
            server.delete(PODS, "default/a")
            server.put(PODS, pod("b"))
            await until(lambda: "add b" in view.calls)
            assert view.calls == ["synced", "add a", "update a", "delete a", "add b"]


async def test_an_expired_version_is_listed_again_at_once_and_what_vanished_is_deleted():
    async with FakeApiServer() as server:
        for name in "ab":
            server.put(PODS, pod(name))
        sleeps = Sleeps()
        server.inject(EndStream())
        async with reflecting(server, sleeps=sleeps) as (reflector, view):

            def gap(call):
                if call == "synced":
                    server.delete(PODS, "default/a")
                    server.put(PODS, pod("c"))
                    server.compact()

            view.hook = gap
            await until(lambda: "c" in view.objects and "a" not in view.objects)
            assert reflector.relists_total == 1
            assert view.calls == ["add a", "add b", "synced", "add c", "delete a"]
            assert view.synced == 1


async def test_a_first_410_waits_for_nothing_and_a_second_one_does():
    async with FakeApiServer() as server:
        sleeps = Sleeps()
        server.inject(StreamError(410), times=2)
        async with reflecting(server, sleeps=sleeps) as (reflector, _):
            await until(lambda: server.watches(PODS) == 3)
            assert reflector.relists_total == 2
            assert len(sleeps.delays) == 1


async def test_a_410_in_http_is_an_expired_version_too():
    async with FakeApiServer() as server:
        server.put(PODS, pod("a"))
        async with reflecting(server) as (reflector, view):
            await until(lambda: server.watches(PODS))
            server.inject(Refuse(410, "Expired"))
            server.end_watches()
            server.delete(PODS, "default/a")
            await until(lambda: reflector.relists_total == 1)
            assert view.objects == {}


async def test_an_expired_continue_token_restarts_the_list_and_at_last_takes_it_whole():
    async with FakeApiServer() as server:
        for name in "abcd":
            server.put(PODS, pod(name))
        view = View()

        def expire(call):
            if call.startswith("add"):
                server._pages.clear()
                server.delete(PODS, "default/a") if "default/a" in server.objects[PODS] else None

        view.hook = expire
        async with reflecting(server, view=view, page_size=1) as (reflector, _):
            await until(lambda: reflector.synced)
            assert view.versions() == truth(server)
            assert "a" not in view.objects
            assert "limit" not in [s for s in server.requests if "watch" not in s.query][-1].query


async def test_a_recreated_object_is_a_deletion_and_an_addition_even_when_the_gap_hid_the_deletion():
    async with FakeApiServer() as server:
        first = server.put(PODS, pod("a"))
        server.inject(EndStream())
        async with reflecting(server) as (_, view):

            def gap(call):
                if call == "synced":
                    server.put(PODS, {"metadata": {"name": "a", "namespace": "default", "uid": "second"}})
                    server.compact()

            view.hook = gap
            await until(lambda: view.calls.count("add a") == 2)
            assert view.calls == ["add a", "synced", "delete a", "add a"]
            assert first["metadata"]["uid"] != view.objects["a"].metadata.uid == "second"


async def test_the_late_deletion_of_a_namesake_does_not_touch_the_new_object():
    meta = {"name": "a", "namespace": "default", "uid": "old", "resourceVersion": "99"}
    line = json.dumps({"type": "DELETED", "object": {"metadata": meta}}).encode() + b"\n"
    async with FakeApiServer() as server:
        server.put(PODS, pod("a"))
        server.inject(StreamBytes(line))
        async with reflecting(server) as (_, view):
            await until(lambda: server.watches(PODS) == 2)
            assert view.calls == ["add a", "synced"]


@pytest.mark.parametrize(
    "fault",
    [
        Refuse(401),
        Refuse(403),
        Refuse(429, retry_after=1),
        Refuse(500),
        Refuse(503),
        Reset(),
        HalfReply(),
        Garbage(),
        Garbage(b'{"metadata":{}}'),
        Garbage(b"[" * 100_000),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_a_list_that_fails_is_tried_for_ever(fault):
    async with FakeApiServer() as server:
        server.put(PODS, pod("a"))
        server.inject(fault, times=20)
        async with reflecting(server) as (reflector, view):
            await until(lambda: reflector.synced)
            assert view.versions() == truth(server)


@pytest.mark.parametrize(
    "fault",
    [
        StreamError(500),
        StreamError(504),
        StreamError(0),
        EndStream(),
        StreamBytes(b"<html>\n"),
        StreamBytes(b"\x00\xff\xfe\n"),
        StreamBytes(b'{"type":"ERROR","object":"?"}\n'),
        StreamBytes(b'{"type":"BOOKMARK","object":{"metadata":{}}}\n\n\n'),
        StreamBytes(b'{"type":"NOVELTY","object":{"metadata":{"resourceVersion":"11"}}}\n'),
        StreamBytes(b'{"type":"ADDED","object":{"metadata":7}}\n'),
        StreamBytes(b'{"type":"ADDED","object":' + b"[" * 100_000 + b"\n"),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_a_watch_that_fails_is_tried_for_ever_and_lists_again_when_the_version_is_suspect(fault, caplog):
    async with FakeApiServer() as server:
        server.put(PODS, pod("a"))
        server.inject(fault, times=12)
        async with reflecting(server) as (_, view):
            await until(lambda: server.watches(PODS) == 13)
            server.put(PODS, pod("b"))
            await until(lambda: "b" in view.objects)
            assert view.versions() == truth(server)
            assert view.synced == 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_many_refused_watches_end_in_a_list():
    async with FakeApiServer() as server, reflecting(server) as (reflector, _):
        await until(lambda: server.watches(PODS))
        server.inject(Refuse(504, "Timeout"), times=6)
        server.end_watches()
        await until(lambda: reflector.relists_total == 1)


async def test_delays_double_with_jitter_up_to_the_longest_and_start_over_after_an_event():
    async with FakeApiServer() as server:
        sleeps = Sleeps()
        server.inject(Refuse(500), times=9)
        async with reflecting(server, sleeps=sleeps) as (_, view):
            await until(lambda: server.watches(PODS))
            assert len(sleeps.delays) == 9
            for index, delay in enumerate(sleeps.delays):
                assert min(0.8 * 2**index, 30.0) <= delay <= min(1.6 * 2**index, 30.0)
            assert len(set(sleeps.delays[:5])) == 5
            server.put(PODS, pod("a"))
            await until(lambda: view.objects)
            server.inject(Refuse(500))
            server.end_watches()
            await until(lambda: server.watches(PODS) == 3)
            assert sleeps.delays[9] <= 1.6


async def test_a_watch_that_breaks_after_an_event_is_a_new_trouble_with_a_short_delay():
    async with FakeApiServer() as server:
        sleeps = Sleeps()
        server.inject(Refuse(500), times=8)
        server.inject(CutAfterLine())
        async with reflecting(server, sleeps=sleeps) as (_, view):
            await until(lambda: server.watches(PODS) == 1)
            server.put(PODS, pod("a"))
            await until(lambda: server.watches(PODS) == 2)
            assert list(view.objects) == ["a"]
            assert 0.8 <= sleeps.delays[8] <= 1.6


async def test_retry_after_is_honoured():
    async with FakeApiServer() as server:
        sleeps = Sleeps()
        server.inject(Refuse(429, retry_after=17))
        async with reflecting(server, sleeps=sleeps) as (reflector, _):
            await until(lambda: reflector.synced)
            assert sleeps.delays == [17.0]


async def test_a_refusal_is_told_once_and_forgotten_when_the_server_answers(caplog):
    async with FakeApiServer() as server:
        told, sleeps = [], Sleeps()
        server.inject(Refuse(404, "NotFound"), times=3)
        server.inject(Refuse(500), times=2)

        def on_refused(status, reason):
            told.append((status, reflector.refused_with, reason))
            return status == 404

        async with reflecting(server, sleeps=sleeps, on_refused=on_refused) as (reflector, view):
            await until(lambda: reflector.synced)
            assert [(status, known) for status, known, _ in told] == [(404, 404), (500, 500)]
            assert told[0][2] == "404 NotFound: injected"
            assert reflector.refused_with == 0
            # What was reported is not logged; what was not, is.
            assert [r.args[2] for r in caplog.records if "watch interrupted" in r.message] == [4, 5]
            server.put(PODS, pod("a"))
            await until(lambda: view.objects)
            server.inject(Refuse(403))
            server.end_watches()
            await until(lambda: len(told) == 3)
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


@pytest.mark.parametrize("fault", [SilentStream(), BlackHole()], ids=lambda fault: type(fault).__name__)
async def test_a_watch_that_is_silent_beyond_the_limit_is_opened_again(fault):
    async with FakeApiServer() as server:
        server.inject(fault, method="WATCH")
        async with reflecting(server, timing=Timing(inactivity=0.05)) as (reflector, view):
            await until(lambda: server.watches(PODS))
            server.put(PODS, pod("a"))
            await until(lambda: view.objects)
            assert server.watches(PODS) >= 2
            assert reflector.relists_total == 0


async def test_a_list_without_an_answer_is_asked_for_again():
    async with FakeApiServer() as server:
        server.inject(BlackHole())
        async with reflecting(server, timing=Timing(list_timeout=0.05)) as (reflector, _):
            await until(lambda: reflector.synced)
            assert server.lists(PODS) == 2


async def test_bookmarks_move_the_version_on_and_count_as_signs_of_life():
    now = 100.0
    async with FakeApiServer() as server, reflecting(server, clock=lambda: now) as (reflector, view):
        await until(lambda: server.watches(PODS))
        now = 150.0
        assert reflector.last_event_age(160.0) == 60.0
        server.bookmark(PODS)
        await until(lambda: reflector.last_event_age(160.0) == 10.0)
        server.compact()
        server.version = server.compacted
        server.bookmark(PODS)
        await until(lambda: reflector._resource_version == str(server.version))
        assert view.calls == ["synced"]


async def test_before_the_first_list_the_last_event_is_infinitely_old():
    reflector = Reflector(Credentials(server="http://127.0.0.1:1"), PODS, Pod, handler=View())
    assert reflector.last_event_age(5.0) == float("inf")
    assert not reflector.synced


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


async def test_an_object_that_cannot_be_decoded_is_reported_once_per_version_and_the_others_go_on():
    reports = []
    bad = {"metadata": {"name": "bad", "namespace": "default"}, "spec": {"containers": "none"}}
    async with FakeApiServer() as server:
        server.put(PODS, bad)
        server.put(PODS, pod("good"))
        server.inject(StreamError(410), times=2)
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
async def test_the_readable_version_before_an_undecodable_one_is_kept_or_deleted_as_asked(keep, left):
    async with FakeApiServer() as server:
        server.put(PODS, pod("a"))
        reports = []
        async with reflecting(
            server, keep_undecodable=keep, on_undecodable=lambda name, error: reports.append(name)
        ) as (_, view):
            await until(lambda: server.watches(PODS))
            server.put(PODS, {"metadata": {"name": "a", "namespace": "default"}, "spec": 7})
            await until(lambda: reports)
            assert list(view.objects) == left
            server.delete(PODS, "default/a")
            server.put(PODS, pod("b"))
            await until(lambda: "b" in view.objects)
            assert list(view.objects) == ["b"]


async def test_a_handler_that_raises_is_logged_with_the_objects_name_and_the_stream_goes_on(caplog):
    async with FakeApiServer() as server:
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


async def test_a_long_list_gives_way_to_the_rest_of_the_program():
    async with FakeApiServer() as server:
        for number in range(200):
            server.put(PODS, pod(f"p{number}"))
        view = View()
        counted = 0
        seen_at = set()

        async def count():
            nonlocal counted
            while True:
                counted += 1
                await asyncio.sleep(0)

        view.hook = lambda call: seen_at.add(counted)
        counter = asyncio.create_task(count())
        async with reflecting(server, view=view, timing=Timing(slice=0.0)) as (reflector, _):
            await until(lambda: reflector.synced)
        counter.cancel()
        assert len(seen_at) >= 200


async def test_cancelling_ends_run_and_closes_the_connections():
    async with FakeApiServer() as server:
        async with reflecting(server) as (reflector, _):
            await until(lambda: server.watches(PODS))
        assert reflector._source._session is None


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abcd")),
        st.tuples(st.just("recreate"), st.sampled_from("abcd")),
        st.tuples(st.just("delete"), st.sampled_from("abcd")),
        st.tuples(
            st.just("fault"),
            st.sampled_from(
                [
                    CutLine(),
                    ResetInLine(),
                    DuplicateEvents(),
                    DribbleLines(),
                    EndStream(),
                    StreamError(410),
                    StreamError(500),
                    Refuse(410),
                    Refuse(429, retry_after=1),
                    Refuse(503),
                    Reset(),
                    HalfReply(),
                ]
            ),
        ),
        st.tuples(st.just("compact"), st.just(None)),
        st.tuples(st.just("bookmark"), st.just(None)),
        st.tuples(st.just("end"), st.just(None)),
        st.tuples(st.just("breathe"), st.integers(1, 5)),
    ),
    max_size=30,
)


def change(server, what, value, number):
    match what:
        case "put":
            server.put(PODS, pod(value, nodeName=f"n{number}"))
        case "recreate":
            server.put(PODS, {"metadata": {"name": value, "namespace": "default", "uid": f"u{number}"}})
        case "delete" if f"default/{value}" in server.objects.get(PODS, {}):
            server.delete(PODS, f"default/{value}")
        case "fault":
            server.inject(value)
        case "compact":
            server.compact()
        case "bookmark":
            server.bookmark(PODS)
        case "end":
            server.end_watches()


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_after_any_sequence_of_changes_and_faults_the_view_equals_the_truth(steps):
    async def play():
        async with FakeApiServer() as server, reflecting(server, page_size=2) as (_, view):
            for number, (what, value) in enumerate(steps):
                if what == "breathe":
                    await asyncio.sleep(0.001 * value)
                else:
                    change(server, what, value, number)
            server.put(PODS, pod("last"))
            await until(lambda: view.versions() == truth(server))

    asyncio.run(play())
