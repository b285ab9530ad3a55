import asyncio
import logging
import time

import pytest
from tests.controller.intake_scene import IntakeScene
from tests.controller.kubernetes_api import PODS, Meanwhile
from tests.faults.faults import Garbage, Refuse, Reset
from tests.waiting import until

from bayplan.api.backoff import SLICE_SECONDS
from bayplan.controller.operator_thread import field_selector


@pytest.fixture
def scene(server, client):
    return IntakeScene(server, client)


def requests_of_a_try(fault):
    """Where a connection breaks, aiohttp asks a second time by itself."""
    return 2 if isinstance(fault, Reset) else 1


# Filling the queue.


async def test_all_pending_pods_of_our_profiles_are_queued_and_no_others(server, client):
    scene = IntakeScene(server, client, "a", "b")
    for name, scheduler in (("one", "a"), ("two", "b"), ("theirs", "other")):
        scene.put(name, scheduler=scheduler)
    scene.put("bound", scheduler="a", nodeName="n1")
    assert scene.list.problem() == "pending pods are not listed yet"
    await scene.filled()
    assert scene.queued() == {"one", "two"}
    assert (scene.list.problem(), scene.list.complete.is_set()) == (None, True)
    assert [seen.query["fieldSelector"] for seen in scene.lists()] == [field_selector({"a"}), field_selector({"b"})]


async def test_pods_listed_over_several_pages_are_tried_in_order_of_priority(server, client):
    scene = IntakeScene(server, client, page_size=2)
    for number in range(5):
        scene.put(f"p{number}", priority=number)
    await scene.filled()
    assert [scene.queue.pop().pod_info.name for _ in range(5)] == ["p4", "p3", "p2", "p1", "p0"]
    assert len(scene.lists()) == 3


async def test_pods_of_equal_priority_are_tried_in_order_of_creation_whatever_their_profiles(server, client):
    scene = IntakeScene(server, client, "a", "b", page_size=1)
    pods = [("young", "a", 3), ("m", "b", 2), ("n", "a", 2), ("l", "b", 2), ("old", "b", 1)]
    for name, scheduler, day in pods:
        scene.put(name, scheduler=scheduler, metadata={"creationTimestamp": f"2026-01-0{day}T00:00:00Z"})
    scene.put("urgent", scheduler="b", priority=1, metadata={"creationTimestamp": "2026-01-09T00:00:00Z"})
    await scene.filled()
    popped = [scene.queue.pop().pod_info.name for _ in range(6)]
    assert popped == ["urgent", "old", "l", "m", "n", "young"]


async def test_a_pod_that_cannot_be_read_is_left_to_kopf_and_stays_what_it_was(scene):
    scene.put("odd", queued=True)
    scene.put("odd", priority="high")
    scene.put("b")
    await scene.filled()
    assert (scene.queued(), scene.handlers.metrics.left_out) == ({"odd", "b"}, [])


async def test_a_pod_that_breaks_its_taker_keeps_no_other_out(scene, monkeypatch, caplog):
    for name in ("a", "odd", "z"):
        scene.put(name)
    changed = scene.pending.changed

    def take(told):
        if told.metadata.name == "odd":
            raise RecursionError("boom")
        changed(told)

    monkeypatch.setattr(scene.pending, "changed", take)
    await scene.filled()
    assert scene.queued() == {"a", "z"}
    assert "a pod was not taken pod='default/odd'" in caplog.text


@pytest.mark.parametrize(
    "fault", [Refuse(403), Refuse(500), Reset(), Garbage(), Garbage(b'{"metadata":{},"items":[{}]}')], ids=repr
)
async def test_the_queue_is_filled_as_soon_as_the_api_server_answers_however_often_it_did_not(server, client, fault):
    scene = IntakeScene(server, client, "bayplan", "other", page_size=1)
    scene.put("a")
    scene.put("b")
    scene.ghost("ghost")
    scene.server.inject(fault, path=PODS, times=3 * requests_of_a_try(fault))
    running = asyncio.create_task(scene.list.run(3600))
    await until(scene.list.complete.is_set)
    assert scene.queued() == {"a", "b"}
    assert [0.5 * 2**number <= delay <= 2**number for number, delay in enumerate(scene.sleep.delays)] == [True] * 3
    running.cancel()


async def test_while_a_long_list_is_taken_others_get_their_turn(server, client, monkeypatch):
    scene = IntakeScene(server, client, page_size=100)
    changed = scene.pending.changed

    def take(pod):
        time.sleep(SLICE_SECONDS / 10)
        changed(pod)

    monkeypatch.setattr(scene.pending, "changed", take)
    for number in range(100):
        scene.put(f"p{number}")
    filling = asyncio.create_task(scene.list.fill())
    turns = set()
    while not filling.done():
        turns.add(len(scene.queue.uids()))
        await asyncio.sleep(0)
    assert turns - {0, 100}


async def test_it_is_filled_at_once_then_when_asked_and_compared_in_between(scene):
    def kinds():
        return ["metadata" if "Partial" in seen.headers["accept"] else "whole" for seen in scene.lists()]

    running = asyncio.create_task(scene.list.run(0.05))
    await until(lambda: len(kinds()) >= 2)
    assert kinds()[:2] == ["whole", "metadata"]
    scene.list.ask_for_fill()
    await until(lambda: kinds().count("whole") == 2)
    await until(lambda: kinds()[-1] == "metadata")
    running.cancel()


# Comparing it.


@pytest.mark.parametrize("how", ["filled", "compared"])
async def test_a_pod_that_vanished_unseen_leaves_the_queue(scene, how):
    scene.put("a", queued=True)
    scene.ghost("ghost")
    await getattr(scene, how)()
    assert (scene.gone, scene.queued()) == (["uid-ghost"], {"a"})


async def test_the_last_ghost_leaves_too_though_an_empty_list_has_no_items(scene):
    scene.ghost("ghost")
    scene.server.inject(Garbage(b'{"metadata":{"resourceVersion":"7"},"items":null}'), path=PODS)
    await scene.compared()
    assert scene.gone == ["uid-ghost"]


@pytest.mark.parametrize(
    "change",
    [{"nodeName": "n1"}, {"scheduler": "other"}, {"metadata": {"uid": "uid-new"}}],
    ids=["bound", "other scheduler", "recreated"],
)
async def test_a_pod_that_is_no_longer_pending_for_us_leaves_the_queue(scene, change):
    scene.put("a", **change)
    scene.ghost("a")
    await scene.compared()
    assert scene.gone == ["uid-a"]


async def test_a_pod_missing_twice_is_fetched_and_one_missing_once_is_not(scene):
    scene.put("late")
    scene.put("lost")
    await scene.compared()
    assert scene.queued() == set()
    scene.ghost("late")
    await scene.compared()
    assert scene.queued() == {"late", "lost"}
    assert scene.fetched() == ["lost"]


async def test_a_pod_on_a_node_or_on_its_way_there_is_not_missing(scene):
    scene.put("assumed", queued=True)
    scene.handlers.cache.assume_pod(scene.queue.pop().pod_info, "a")
    scene.queue.done("uid-assumed")
    await scene.compared(times=3)
    assert scene.fetched() == []


@pytest.mark.parametrize(
    "pod",
    [{"queued": True}, {"scheduler": "theirs"}, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}],
    ids=["queued", "another scheduler's", "being deleted"],
)
async def test_a_pod_that_is_queued_or_not_to_be_is_never_fetched(scene, pod):
    scene.put("a", **pod)
    before = scene.queued()
    await scene.compared(times=3)
    assert (scene.gone, scene.queued(), scene.fetched()) == ([], before, [])


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
async def test_an_api_server_that_does_not_answer_leaves_all_as_it_is(server, client, fault):
    scene = IntakeScene(server, client, "bayplan", "other")
    scene.put("a", queued=True)
    scene.put("lost")
    await scene.compared()
    scene.ghost("ghost")
    for number in range(2):
        # Also when only one of several lists fails.
        scene.server.inject(fault, path=PODS, times=requests_of_a_try(fault))
        await scene.compared()
        assert (scene.gone, scene.queued()) == ([], {"a", "ghost"}), number
    await scene.compared()
    assert (scene.gone, scene.queued()) == (["uid-ghost"], {"a", "lost"})


async def test_a_list_that_breaks_off_between_pages_leaves_all_as_it_is(server, client):
    scene = IntakeScene(server, client, page_size=3)
    for i in range(10):
        scene.put(f"p{i}", queued=True)
    scene.server.inject(Meanwhile(scene.server.compact), path=PODS)
    await scene.compared()
    assert (scene.gone, scene.server.lists(PODS)) == ([], 2)


@pytest.mark.parametrize("how", ["filled", "compared"])
async def test_a_pod_queued_while_the_list_was_on_its_way_is_no_ghost(scene, how):
    scene.server.inject(Meanwhile(lambda: scene.put("new", queued=True)), path=PODS)
    await getattr(scene, how)()
    assert scene.gone == []


async def test_a_pod_that_is_told_of_while_the_list_was_on_its_way_is_not_missing(scene):
    scene.put("a")
    await scene.compared()
    scene.server.inject(Meanwhile(lambda: scene.ghost("a")), path=PODS)
    await scene.compared()
    assert scene.fetched() == []


@pytest.mark.parametrize(
    "fault", [Refuse(404), Refuse(500), Reset(), Garbage(), Garbage(b"{}"), Garbage(b'{"spec":7}')], ids=repr
)
async def test_a_missing_pod_that_cannot_be_fetched_is_tried_again_next_time(scene, fault):
    scene.put("lost")
    await scene.compared()
    scene.server.inject(fault, path="/pods/lost")
    await scene.compared()
    assert scene.queued() == set()
    await scene.compared()
    assert scene.queued() == {"lost"}


async def test_the_namesake_of_a_missing_pod_is_not_mistaken_for_it(scene):
    scene.put("lost")
    await scene.compared()
    scene.server.inject(Meanwhile(lambda: scene.put("lost", metadata={"uid": "uid-new"})), path=PODS)
    await scene.compared()
    assert scene.queued() == set()


async def test_a_pod_left_out_is_not_asked_for_until_it_changes(scene, caplog):
    caplog.set_level(logging.INFO)
    scene.put("odd", cpu="many")
    await scene.compared(times=5)
    assert (scene.fetched(), scene.handlers.metrics.left_out) == (["odd"], ["Pod"])
    scene.put("told", queued=True, cpu="many")
    await scene.compared(times=3)
    assert scene.fetched() == ["odd"]
    assert "enters the queue" not in caplog.text
    scene.put("odd", cpu="1")
    await scene.compared(times=2)
    assert scene.queued() == {"odd"}
    assert "pod the watch did not tell of enters the queue pod='default/odd'" in caplog.text


async def test_a_list_that_repeats_its_continue_token_is_no_list(scene):
    scene.put("a", queued=True)
    scene.put("b")
    page = b'{"metadata":{"resourceVersion":"7","continue":"same"},"items":[]}'
    scene.server.inject(Garbage(page), path=PODS, times=1000)
    assert not await scene.list.fill()
    assert (scene.gone, scene.queued(), len(scene.lists())) == ([], {"a"}, 2)


async def test_names_no_path_can_hold_do_not_raise(scene):
    scene.put("..", metadata={"uid": "odd"})
    await scene.compared(times=3)
    assert scene.queued() == set()
