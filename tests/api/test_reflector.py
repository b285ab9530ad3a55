"""What a reflector tells its handler of lists and watches."""

import asyncio
import json
from typing import ClassVar

import pytest
from tests.api.reflecting import PODS, View, pod, reflecting, truth
from tests.faults import faults
from tests.waiting import Sleeps, until

from bayplan.api.backoff import WatchTiming
from bayplan.api.credentials import Credentials
from bayplan.api.objects import Node, Pod
from bayplan.api.reflector import Reflector

NODES = "/api/v1/nodes"


async def test_the_first_list_is_added_in_pages_and_then_synced_is_said_once(server):
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


@pytest.mark.parametrize("items", ["[]", "null"])
async def test_an_empty_list_is_synced_too(server, items):
    page = f'{{"metadata":{{"resourceVersion":"7"}},"items":{items}}}'
    server.inject(faults.Garbage(page.encode()), method="GET")
    async with reflecting(server) as (reflector, view):
        await until(lambda: reflector.synced)
        assert view.calls == ["synced"]


async def test_a_list_that_repeats_its_continue_token_is_begun_anew_and_not_asked_for_for_ever(server):
    server.put(PODS, pod("a"))
    page = b'{"metadata":{"resourceVersion":"7","continue":"same"},"items":[]}'
    server.inject(faults.Garbage(page), method="GET", times=4)
    async with reflecting(server) as (reflector, view):
        await until(lambda: reflector.synced)
        assert view.calls == ["add a", "synced"]
        assert server.lists(PODS) == 5


async def test_changes_come_in_order_with_the_object_they_replace(server):
    async with reflecting(server) as (reflector, view):
        await until(lambda: reflector.synced)
        server.put(PODS, pod("a"))
        server.put(PODS, pod("a", nodeName="n1"))
        server.put(PODS, pod("b"))
        server.delete(PODS, "default/a")
        await until(lambda: "delete a" in view.calls)
        assert view.calls == ["synced", "add a", "update a", "add b", "delete a"]
        assert view.objects == {"b": reflector.objects["default/b"]}


async def test_the_selector_is_the_servers_work(server):
    server.put(PODS, pod("mine", nodeName="n1"))
    server.put(PODS, pod("other"))
    async with reflecting(server, field_selector="spec.nodeName!=") as (_, view):
        await until(lambda: server.watches(PODS))
        assert list(view.objects) == ["mine"]
        for seen in server.requests:
            assert seen.query["fieldSelector"] == "spec.nodeName!="
        server.put(PODS, pod("other", nodeName="n1"))
        server.put(PODS, pod("mine"))
        await until(lambda: "delete mine" in view.calls)
        assert list(view.objects) == ["other"]


async def test_cluster_scoped_objects_are_kept_by_name(server):
    server.put(NODES, {"metadata": {"name": "n1"}})
    async with reflecting(server, path=NODES, object_type=Node) as (reflector, view):
        await until(lambda: reflector.synced)
        assert list(reflector.objects) == ["n1"]
        server.delete(NODES, "n1")
        await until(lambda: not view.objects)


async def test_a_clean_end_is_watched_on_from_the_last_version_without_a_list(server):
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


@pytest.mark.parametrize("fault", [faults.CutLine(), faults.ResetInLine()], ids=lambda fault: type(fault).__name__)
async def test_a_line_cut_in_the_middle_is_asked_for_again(server, fault):
    server.inject(fault)
    async with reflecting(server) as (reflector, view):
        await until(lambda: server.watches(PODS))
        server.put(PODS, pod("a"))
        await until(lambda: "add a" in view.calls)
        assert server.watches(PODS) == 2
        assert reflector.relists_total == 0
        assert view.versions() == truth(server)


async def test_lines_that_come_in_pieces_are_whole(server):
    server.inject(faults.DribbleLines())
    async with reflecting(server) as (_, view):
        await until(lambda: server.watches(PODS))
        for name in "abc":
            server.put(PODS, pod(name, schedulerName="x" * 500))
        await until(lambda: len(view.objects) == 3)
        assert view.versions() == truth(server)


async def test_a_duplicate_event_is_dropped(server):
    server.inject(faults.DuplicateEvents())
    async with reflecting(server) as (_, view):
        await until(lambda: server.watches(PODS))
        server.put(PODS, pod("a"))
        server.put(PODS, pod("a", nodeName="n1"))
        server.delete(PODS, "default/a")
        server.put(PODS, pod("b"))
        await until(lambda: "add b" in view.calls)
        assert view.calls == ["synced", "add a", "update a", "delete a", "add b"]


async def test_an_expired_version_is_listed_again_at_once_and_what_vanished_is_deleted(server):
    for name in "ab":
        server.put(PODS, pod(name))
    sleeps = Sleeps()
    server.inject(faults.EndStream())
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


async def test_a_first_410_waits_for_nothing_and_a_second_one_does(server):
    sleeps = Sleeps()
    server.inject(faults.StreamError(410), times=2)
    async with reflecting(server, sleeps=sleeps) as (reflector, _):
        await until(lambda: server.watches(PODS) == 3)
        assert reflector.relists_total == 2
        assert len(sleeps.delays) == 1


async def test_a_410_in_http_is_an_expired_version_too(server):
    server.put(PODS, pod("a"))
    async with reflecting(server) as (reflector, view):
        await until(lambda: server.watches(PODS))
        server.inject(faults.Refuse(410, "Expired"))
        server.end_watches()
        server.delete(PODS, "default/a")
        await until(lambda: reflector.relists_total == 1)
        assert view.objects == {}


async def test_an_expired_continue_token_restarts_the_list_and_at_last_takes_it_whole(server):
    for name in "abcd":
        server.put(PODS, pod(name))
    view = View()

    def expire(call):
        if call.startswith("add"):
            server.expire_continue_tokens()
            server.delete(PODS, "default/a") if "default/a" in server.objects[PODS] else None

    view.hook = expire
    async with reflecting(server, view=view, page_size=1) as (reflector, _):
        await until(lambda: reflector.synced)
        assert view.versions() == truth(server)
        assert "a" not in view.objects
        assert "limit" not in [s for s in server.requests if "watch" not in s.query][-1].query


async def test_a_recreated_object_is_a_deletion_and_an_addition_even_when_the_gap_hid_the_deletion(server):
    first = server.put(PODS, pod("a"))
    server.inject(faults.EndStream())
    async with reflecting(server) as (_, view):

        def gap(call):
            if call == "synced":
                server.put(PODS, {"metadata": {"name": "a", "namespace": "default", "uid": "second"}})
                server.compact()

        view.hook = gap
        await until(lambda: view.calls.count("add a") == 2)
        assert view.calls == ["add a", "synced", "delete a", "add a"]
        assert first["metadata"]["uid"] != view.objects["a"].metadata.uid == "second"


async def test_the_late_deletion_of_a_namesake_does_not_touch_the_new_object(server):
    meta = {"name": "a", "namespace": "default", "uid": "old", "resourceVersion": "99"}
    line = json.dumps({"type": "DELETED", "object": {"metadata": meta}}).encode() + b"\n"
    server.put(PODS, pod("a"))
    server.inject(faults.StreamBytes(line))
    async with reflecting(server) as (_, view):
        await until(lambda: server.watches(PODS) == 2)
        assert view.calls == ["add a", "synced"]


class Counted(Pod):
    """A pod that counts how many were made."""

    made: ClassVar[list[str]] = []

    def __post_init__(self):
        self.made.append(self.metadata.name)


async def test_of_what_is_gone_no_object_is_made(server):
    Counted.made.clear()
    stored = server.put(PODS, pod("a"))
    line = json.dumps({"type": "DELETED", "object": stored}, separators=(",", ":"))
    server.inject(faults.StreamBytes(line.encode() + b"\n"))
    async with reflecting(server, object_type=Counted) as (_, view):
        await until(lambda: view.calls == ["add a", "synced", "delete a"])
    assert Counted.made == ["a"]


async def test_bookmarks_move_the_version_on_and_count_as_signs_of_life(server):
    now = 100.0
    async with reflecting(server, clock=lambda: now) as (reflector, view):
        await until(lambda: server.watches(PODS))
        now = 150.0
        assert reflector.last_event_age(160.0) == 60.0
        server.bookmark(PODS)
        await until(lambda: reflector.last_event_age(160.0) == 10.0)
        server.compact()
        server.version = server.compacted
        now = 155.0
        server.bookmark(PODS)
        await until(lambda: reflector.last_event_age(160.0) == 5.0)
        server.end_watches()
        await until(lambda: server.watches(PODS) == 2)
        assert server.requests[-1].query["resourceVersion"] == str(server.version)
        assert view.calls == ["synced"]


async def test_before_the_first_list_the_last_event_is_infinitely_old():
    reflector = Reflector(Credentials(server="http://127.0.0.1:1"), PODS, Pod, handler=View())
    assert reflector.last_event_age(5.0) == float("inf")
    assert not reflector.synced


async def test_a_long_list_gives_way_to_the_rest_of_the_program(server):
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
    async with reflecting(server, view=view, timing=WatchTiming(slice=0.0)) as (reflector, _):
        await until(lambda: reflector.synced)
    counter.cancel()
    assert len(seen_at) >= 200


async def test_cancelling_ends_run_and_closes_the_connections(server):
    async with reflecting(server):
        await until(lambda: server.watches(PODS))
        assert server.connections == 1
    await until(lambda: server.connections == 0)


async def test_how_long_events_waited_is_told_once_they_are_handled(server):
    told = []
    async with reflecting(server, on_applied=told.append) as (_, view):
        await until(lambda: server.watches(PODS))
        server.put(PODS, pod("a"))
        await until(lambda: "a" in view.objects)
        await until(lambda: told)
        assert all(seconds >= 0 for seconds in told)
