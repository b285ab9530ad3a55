import asyncio
import contextlib
import logging

import msgspec
import pytest
from tests.controller.kubernetes_api import PODS, KubernetesApi, pod
from tests.faults.faults import Garbage, Refuse, RequestFault, Reset
from tests.scheduler.handler_scene import Scene as Handlers
from tests.waiting import Sleeps, until

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.api.objects import Pod
from bayplan.controller.handlers import field_selector
from bayplan.controller.intake_list import IntakeList


class Scene:
    """The intake's list between a server and the real handlers of pending pods."""

    def __init__(self, server, client, names, page_size):
        self.server = server
        self.handlers = Handlers(profiles=names)
        self.pending, self.queue, self.gone = self.handlers.pending, self.handlers.queue, self.handlers.gone
        self.sleep = Sleeps()
        self.list = IntakeList(client, names, self.pending, page_size=page_size, sleep=self.sleep)

    def put(self, name, *, queued=False, **fields):
        metadata = fields.pop("metadata", {})
        obj = pod(name, **{"scheduler": "bayplan", **fields})
        obj["metadata"] |= {"uid": f"uid-{name}", **metadata}
        stored = self.server.put(PODS, obj)
        if queued:
            self.ghost(name, stored["metadata"], **fields)

    def ghost(self, name, metadata=None, **fields):
        """A pod that is queued, whatever the server has."""
        told = pod(name, **fields)
        told["metadata"] |= metadata or {"uid": f"uid-{name}"}
        self.pending.changed(msgspec.convert(told, Pod))

    def queued(self):
        return {uid.removeprefix("uid-") for uid in self.queue.uids()}

    async def filled(self):
        assert await self.list.fill()

    async def compared(self, times=1):
        for _ in range(times):
            await self.list.compare()

    def fetches(self):
        return [seen for seen in self.server.requests if seen.path != PODS]

    def lists(self):
        return [seen for seen in self.server.requests if seen.path == PODS]


@contextlib.asynccontextmanager
async def scene(*names, page_size=500):
    async with KubernetesApi() as server:
        client = ApiClient(Credentials(server=server.url), qps=0, burst=1)
        try:
            yield Scene(server, client, names or ("bayplan",), page_size)
        finally:
            await client.close()


class Meanwhile(RequestFault):
    """Something happens while the server is about to answer."""

    def __init__(self, happen):
        self.happen = happen

    async def serve(self, request, act):
        answer = await act()
        self.happen()
        return answer


# Filling the queue.


async def test_all_pending_pods_of_our_profiles_are_queued_and_no_others():
    async with scene("a", "b") as s:
        for name, scheduler in (("one", "a"), ("two", "b"), ("theirs", "other")):
            s.put(name, scheduler=scheduler)
        s.put("bound", scheduler="a", nodeName="n1")
        assert s.list.problem() == "pending pods are not listed yet"
        await s.filled()
        assert s.queued() == {"one", "two"}
        assert (s.list.problem(), s.list.complete.is_set()) == (None, True)
        assert [seen.query["fieldSelector"] for seen in s.lists()] == [field_selector({"a"}), field_selector({"b"})]


async def test_pods_listed_over_several_pages_are_tried_in_order_of_priority():
    async with scene(page_size=2) as s:
        for number in range(5):
            s.put(f"p{number}", priority=number)
        await s.filled()
        assert [s.queue.pop().pod_info.name for _ in range(5)] == ["p4", "p3", "p2", "p1", "p0"]
        assert len(s.lists()) == 3


async def test_a_pod_that_is_held_in_that_version_is_not_taken_again():
    async with scene() as s:
        s.put("a")
        await s.filled()
        wakes = s.handlers.wakes
        await s.filled()
        assert (s.handlers.wakes, s.queued()) == (wakes, {"a"})


async def test_what_vanished_while_nobody_watched_leaves_the_queue_when_it_is_filled_again():
    async with scene() as s:
        s.put("a")
        s.ghost("ghost")
        await s.filled()
        assert (s.queued(), s.gone) == ({"a"}, ["uid-ghost"])


async def test_a_pod_that_cannot_be_read_is_left_to_kopf_and_stays_what_it_was():
    async with scene() as s:
        s.put("odd", queued=True)
        s.put("odd", priority="high")
        s.put("b")
        await s.filled()
        assert (s.queued(), s.handlers.observer.left_out) == ({"odd", "b"}, [])


async def test_a_pod_that_breaks_its_taker_keeps_no_other_out(monkeypatch, caplog):
    async with scene() as s:
        for name in ("a", "odd", "z"):
            s.put(name)
        changed = s.pending.changed

        def take(told):
            if told.metadata.name == "odd":
                raise RecursionError("boom")
            changed(told)

        monkeypatch.setattr(s.pending, "changed", take)
        await s.filled()
        assert s.queued() == {"a", "z"}
        assert "a pod was not taken pod='default/odd'" in caplog.text


@pytest.mark.parametrize(
    "fault", [Refuse(403), Refuse(500), Reset(), Garbage(), Garbage(b'{"metadata":{},"items":[{}]}')], ids=repr
)
async def test_the_queue_is_filled_as_soon_as_the_api_server_answers_however_often_it_did_not(fault):
    async with scene("bayplan", "other", page_size=1) as s:
        s.put("a")
        s.put("b")
        s.ghost("ghost")
        s.server.inject(fault, path=PODS, times=3)
        running = asyncio.create_task(s.list.run(3600))
        await until(s.list.complete.is_set)
        assert s.queued() == {"a", "b"}
        assert s.sleep.delays == [0.5, 1.0, 2.0]
        running.cancel()


async def test_while_a_long_list_is_read_others_get_their_turn():
    async with scene(page_size=2000) as s:
        for number in range(2000):
            s.put(f"p{number}")
        filling = asyncio.create_task(s.list.fill())
        turns = set()
        while not filling.done():
            turns.add(len(s.queue.uids()))
            await asyncio.sleep(0)
        assert turns - {0, 2000}


async def test_it_is_filled_at_once_then_when_asked_and_compared_in_between():
    def kinds():
        return ["metadata" if "Partial" in seen.headers["accept"] else "whole" for seen in s.lists()]

    async with scene() as s:
        running = asyncio.create_task(s.list.run(0.05))
        await until(lambda: len(kinds()) >= 2)
        assert kinds()[:2] == ["whole", "metadata"]
        s.list.ask_for_fill()
        await until(lambda: kinds().count("whole") == 2)
        await until(lambda: kinds()[-1] == "metadata")
        running.cancel()


# Comparing it.


async def test_when_queue_and_cluster_agree_nothing_happens():
    async with scene() as s:
        s.put("a", queued=True)
        await s.compared(times=3)
        assert (s.gone, s.queued()) == ([], {"a"})
        assert {seen.path for seen in s.server.requests} == {PODS}


async def test_only_metadata_of_our_pending_pods_is_compared():
    async with scene("a", "b") as s:
        await s.compared()
        assert [seen.query["fieldSelector"] for seen in s.lists()] == [field_selector({"a"}), field_selector({"b"})]
        assert all("as=PartialObjectMetadataList" in seen.headers["accept"] for seen in s.lists())


async def test_a_pod_that_vanished_unseen_leaves_the_queue():
    async with scene() as s:
        s.put("a", queued=True)
        s.ghost("ghost")
        await s.compared()
        assert (s.gone, s.queued()) == (["uid-ghost"], {"a"})


async def test_the_last_ghost_leaves_too_though_an_empty_list_has_no_items():
    async with scene() as s:
        s.ghost("ghost")
        s.server.inject(Garbage(b'{"metadata":{"resourceVersion":"7"},"items":null}'), path=PODS)
        await s.compared()
        assert s.gone == ["uid-ghost"]


@pytest.mark.parametrize("change", [{"nodeName": "n1"}, {"scheduler": "other"}], ids=["bound", "other scheduler"])
async def test_a_pod_that_is_no_longer_pending_for_us_leaves_the_queue(change):
    async with scene() as s:
        s.put("a", **change)
        s.ghost("a")
        await s.compared()
        assert s.gone == ["uid-a"]


async def test_the_namesake_of_a_recreated_pod_leaves_the_queue():
    async with scene() as s:
        s.put("a", queued=True)
        s.put("a", metadata={"uid": "uid-new"})
        await s.compared()
        assert s.gone == ["uid-a"]


async def test_a_pod_missing_twice_is_fetched_and_one_missing_once_is_not():
    async with scene() as s:
        s.put("late")
        s.put("lost")
        await s.compared()
        assert s.queued() == set()
        s.ghost("late")
        await s.compared()
        assert s.queued() == {"late", "lost"}
        assert [seen.path for seen in s.server.requests if seen.path != PODS] == [
            "/api/v1/namespaces/default/pods/lost"
        ]


async def test_a_pod_on_a_node_or_on_its_way_there_is_not_missing():
    async with scene() as s:
        s.put("assumed", queued=True)
        s.handlers.cache.assume_pod(s.queue.pop().pod_info, "a")
        s.queue.done("uid-assumed")
        await s.compared(times=3)
        assert {seen.path for seen in s.server.requests} == {PODS}


async def test_a_pod_that_is_being_deleted_is_not_missing():
    async with scene() as s:
        s.put("a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        await s.compared(times=3)
        assert s.queued() == set()


async def test_pods_of_other_schedulers_are_never_fetched():
    async with scene("a", "b") as s:
        s.put("stranger", scheduler="theirs")
        await s.compared(times=3)
        assert {seen.path for seen in s.server.requests} == {PODS}


@pytest.mark.parametrize(
    "fault",
    [
        Refuse(403),
        Refuse(410),
        Refuse(500),
        Reset(),
        Garbage(),
        Garbage(b""),
        Garbage(b"{}"),
        Garbage(b'{"metadata":{}}'),
        Garbage(b'{"metadata":{},"items":[]}'),
        Garbage(b'{"metadata":{"resourceVersion":"7"},"items":[{}]}'),
        Garbage(b'{"metadata":{"continue":"x"},"items":7}'),
        Garbage(b'{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"uid":"\xff"}}]}'),
    ],
    ids=repr,
)
async def test_an_api_server_that_does_not_answer_leaves_all_as_it_is(fault):
    async with scene("bayplan", "other") as s:
        s.put("a", queued=True)
        s.put("lost")
        await s.compared()
        s.ghost("ghost")
        for number in range(2):
            # Also when only one of several lists fails.
            s.server.inject(fault, path=PODS)
            await s.compared()
            assert (s.gone, s.queued()) == ([], {"a", "ghost"}), number
        await s.compared()
        assert (s.gone, s.queued()) == (["uid-ghost"], {"a", "lost"})


async def test_a_list_of_several_pages_is_read_to_its_end():
    async with scene(page_size=3) as s:
        for i in range(10):
            s.put(f"p{i}", queued=True)
        s.ghost("ghost")
        await s.compared()
        assert s.gone == ["uid-ghost"]
        assert s.server.lists(PODS) == 4


async def test_a_list_that_breaks_off_between_pages_leaves_all_as_it_is():
    async with scene(page_size=3) as s:
        for i in range(10):
            s.put(f"p{i}", queued=True)
        s.server.inject(Meanwhile(s.server.compact), path=PODS)
        await s.compared()
        assert (s.gone, s.server.lists(PODS)) == ([], 2)


@pytest.mark.parametrize("how", ["filled", "compared"])
async def test_a_pod_queued_while_the_list_was_on_its_way_is_no_ghost(how):
    async with scene() as s:
        s.server.inject(Meanwhile(lambda: s.put("new", queued=True)), path=PODS)
        await getattr(s, how)()
        assert s.gone == []


async def test_a_pod_that_is_told_of_while_the_list_was_on_its_way_is_not_missing():
    async with scene() as s:
        s.put("a")
        await s.compared()
        s.server.inject(Meanwhile(lambda: s.ghost("a")), path=PODS)
        await s.compared()
        assert {seen.path for seen in s.server.requests} == {PODS}


@pytest.mark.parametrize(
    "fault", [Refuse(404), Refuse(500), Reset(), Garbage(), Garbage(b"{}"), Garbage(b'{"spec":7}')], ids=repr
)
async def test_a_missing_pod_that_cannot_be_fetched_is_tried_again_next_time(fault):
    async with scene() as s:
        s.put("lost")
        await s.compared()
        s.server.inject(fault, path="/pods/lost")
        await s.compared()
        assert s.queued() == set()
        await s.compared()
        assert s.queued() == {"lost"}


async def test_the_namesake_of_a_missing_pod_is_not_mistaken_for_it():
    async with scene() as s:
        s.put("lost")
        await s.compared()
        s.server.inject(Meanwhile(lambda: s.put("lost", metadata={"uid": "uid-new"})), path=PODS)
        await s.compared()
        assert s.queued() == set()


async def test_a_pod_left_out_is_not_asked_for_until_it_changes(caplog):
    caplog.set_level(logging.INFO)
    async with scene() as s:
        s.put("odd", cpu="many")
        await s.compared(times=5)
        assert len(s.fetches()) == len(s.handlers.observer.left_out) == 1
        s.put("told", queued=True, cpu="many")
        await s.compared(times=3)
        assert len(s.fetches()) == 1
        assert "enters the queue" not in caplog.text
        s.put("odd", cpu="1")
        await s.compared(times=2)
        assert s.queued() == {"odd"}
        assert "pod the watch did not tell of enters the queue pod='default/odd'" in caplog.text


async def test_a_list_that_repeats_its_continue_token_is_no_list():
    async with scene() as s:
        s.put("a", queued=True)
        s.put("b")
        page = b'{"metadata":{"resourceVersion":"7","continue":"same"},"items":[]}'
        s.server.inject(Garbage(page), path=PODS, times=1000)
        async with asyncio.timeout(5):
            assert not await s.list.fill()
        assert (s.gone, s.queued(), len(s.lists())) == ([], {"a"}, 2)


async def test_names_no_path_can_hold_do_not_raise():
    async with scene() as s:
        s.put("..", metadata={"uid": "odd"})
        await s.compared(times=3)
        assert s.queued() == set()
