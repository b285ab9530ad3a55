import asyncio
import json

import pytest
from tests.scheduler.dispatcher_scene import Scene, settle, warnings

from bayplan.api.client import ApiResponse
from bayplan.scheduler import dispatcher as dispatcher_module
from bayplan.scheduler.api_calls import ApiCall


async def test_binds_run_at_once_up_to_their_limit():
    scene = Scene(bind_workers=3)
    scene.dispatcher.start()
    release, running, most = asyncio.Event(), 0, 0

    async def job():
        nonlocal running, most
        running += 1
        most = max(most, running)
        await release.wait()
        running -= 1

    for _ in range(10):
        scene.dispatcher.submit(job)
    await settle()
    assert (running, scene.dispatcher.jobs_in_flight) == (3, 10)
    release.set()
    await scene.drain()
    assert (most, running, scene.dispatcher.jobs_in_flight) == (3, 0, 0)


async def test_calls_run_at_once_up_to_their_limit():
    scene = Scene(call_workers=2)
    scene.dispatcher.start()
    for i in range(9):
        scene.send(f"e{i}")
    await scene.drain()
    assert scene.events.most == 2
    assert len(scene.events.done) == 9


async def test_a_full_house_of_events_does_not_hold_up_a_bind():
    scene = Scene(call_workers=2, bind_workers=1)
    scene.events.gate.clear()
    scene.client.gate.clear()
    scene.dispatcher.start()
    for i in range(50):
        scene.send(f"e{i}")
        scene.patch(f"u{i}")
    await settle()
    bound = asyncio.Event()

    async def job():
        bound.set()

    scene.dispatcher.submit(job)
    await settle()
    assert bound.is_set()
    scene.events.gate.set()
    scene.client.gate.set()
    await scene.drain()


async def test_what_is_submitted_before_the_start_is_done_after_it():
    scene = Scene()
    scene.send("e")
    scene.patch("u")
    scene.dispatcher.start()
    await scene.drain()
    assert [path for path, _ in scene.events.done] == ["e"]
    assert [path for path, _ in scene.client.done] == ["u"]


async def test_events_and_patches_have_a_client_each_and_patches_go_first():
    scene = Scene(call_workers=1)
    scene.send("e")
    scene.patch("u")
    scene.events.gate.clear()
    scene.dispatcher.start()
    await settle()
    assert scene.client.done == [("u", b"")]
    assert scene.events.done == []
    scene.events.gate.set()
    await scene.drain()
    assert scene.events.done == [("e", None)]


async def test_waiting_patches_of_one_pod_are_sent_as_one_and_the_latest_counts():
    scene = Scene()
    scene.client.gate.clear()
    scene.dispatcher.start()
    scene.patch("u", b"1")
    await settle()
    for body in (b"2", b"3", b"4"):
        scene.patch("u", body)
    scene.patch("v", b"1")
    await settle()
    assert scene.client.started == ["u", "v"]
    scene.client.gate.set()
    await scene.drain()
    assert sorted(scene.client.done) == [("u", b"1"), ("u", b"4"), ("v", b"1")]
    assert scene.lost == []


async def test_a_patch_that_joins_a_waiting_one_takes_nothing_back_and_both_are_told():
    scene = Scene()
    told = []
    scene.dispatcher.start()
    bodies = ({"nominatedNodeName": "n1", "conditions": [1]}, {"conditions": [2]})
    scene.client.gate.clear()
    scene.patch("u")
    await settle()
    sent = []

    async def request(method, path, *, body=None, content_type=None):
        sent.append(json.loads(body)["status"])
        return ApiResponse(200, b"")

    scene.client.request = request
    for status in bodies:
        body = json.dumps({"metadata": {"uid": "u"}, "status": status}).encode()
        scene.dispatcher.patch("u", ApiCall("PATCH", "u", body, "x", "u"), told.append)
    scene.client.gate.set()
    await scene.drain()
    assert sent == [{"nominatedNodeName": "n1", "conditions": [2]}]
    assert told == [True, True]


async def test_preemptions_have_workers_of_their_own_and_are_waited_for_at_the_end():
    scene = Scene(preemption_workers=2)
    scene.dispatcher.start()
    gate = asyncio.Event()
    done = []

    async def preemption():
        await gate.wait()
        done.append("preemption")

    async def bind():
        done.append("bind")

    for _ in range(3):
        scene.dispatcher.preempt(preemption)
    await settle()
    scene.dispatcher.submit(bind)
    await settle()
    assert (done, scene.dispatcher.jobs_in_flight) == (["bind"], 0)
    asyncio.get_running_loop().call_later(0.01, gate.set)
    await scene.drain()
    assert done == ["bind"] + ["preemption"] * 3


@pytest.mark.parametrize("error", [RuntimeError("broken"), asyncio.CancelledError()], ids=repr)
async def test_a_job_that_raises_costs_no_worker(error, caplog):
    scene = Scene(bind_workers=1, call_workers=1)
    scene.dispatcher.start()
    done = []

    async def bad():
        raise error

    async def good():
        done.append(1)

    scene.client.answers["u"] = [error]
    for job in (bad, good, bad, good):
        scene.dispatcher.submit(job)
    scene.patch("u")
    scene.send("e")
    await scene.drain()
    assert done == [1, 1]
    assert scene.lost == [("u", b"")]
    assert [path for path, _ in scene.events.done] == ["e"]
    assert len(warnings(caplog)) == 3


async def test_when_very_many_events_wait_the_oldest_are_dropped_and_that_is_said(monkeypatch, caplog):
    monkeypatch.setattr(dispatcher_module, "_MAX_WAITING_CALLS", 3)
    scene = Scene()
    for i in range(10):
        scene.send(f"e{i}")
        scene.patch(f"u{i}")
    scene.dispatcher.start()
    await scene.drain()
    assert [path for path, _ in scene.events.done] == ["e7", "e8", "e9"]
    assert len(scene.client.done) == 10
    assert len(warnings(caplog)) == 1


async def test_a_drain_finishes_binds_before_it_stops_waiting_for_calls():
    scene = Scene()
    scene.events.gate.clear()
    scene.dispatcher.start()
    done = []

    async def job():
        await settle()
        done.append(1)
        # What a bind says at its end is still sent.
        scene.send("bound")
        scene.events.gate.set()

    for _ in range(100):
        scene.dispatcher.submit(job)
    await scene.drain()
    assert len(done) == 100
    assert len(scene.events.done) == 100


async def test_a_drain_ends_in_time_whatever_hangs(caplog):
    scene = Scene(bind_workers=2, call_workers=1)
    scene.events.gate.clear()
    scene.dispatcher.start()
    stopped = []

    async def hang():
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(1)

    for _ in range(5):
        scene.dispatcher.submit(hang)
        scene.send("e")
    await settle()
    await scene.drain(binds_seconds=0.01, calls_seconds=0.01)
    assert stopped == [1, 1]
    assert "left=9" in warnings(caplog)[0].message
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


async def test_a_drain_without_work_ends_at_once():
    scene = Scene()
    await scene.drain()
    scene.dispatcher.start()
    await scene.drain()


async def test_what_the_server_answers_to_a_patch_is_told_if_it_took_it():
    scene = Scene()
    scene.client.answers["refused"] = [404]
    scene.dispatcher.start()
    for uid in ("taken", "refused"):
        scene.patch(uid)
    scene.send("event")
    await scene.drain()
    assert scene.patched == [b"taken"]


async def test_while_binds_wait_for_a_worker_few_calls_are_under_way_and_then_all_go_on():
    scene = Scene(call_workers=8, bind_workers=1)
    scene.events.gate.clear()
    scene.dispatcher.start()
    release = asyncio.Event()

    for _ in range(2):
        scene.dispatcher.submit(release.wait)
    for i in range(20):
        scene.send(f"e{i}")
    await settle()
    assert scene.events.most == dispatcher_module._CALLS_BESIDE_WAITING_BINDS
    release.set()
    await settle()
    assert scene.events.most == 8
    scene.events.gate.set()
    await scene.drain()
    assert len(scene.events.done) == 20


async def test_however_long_binds_wait_calls_are_made():
    scene = Scene(call_workers=8, bind_workers=1)
    scene.dispatcher.start()
    release = asyncio.Event()
    for _ in range(2):
        scene.dispatcher.submit(release.wait)
    for i in range(20):
        scene.send(f"e{i}")
        scene.patch(f"u{i}")
    await settle()
    assert (len(scene.events.done), len(scene.client.done)) == (20, 20)
    release.set()
    await scene.drain()
