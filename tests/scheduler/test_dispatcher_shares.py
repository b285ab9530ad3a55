"""What of one kind of call, or of one namespace, leaves to the others."""

import asyncio

from tests.scheduler.dispatcher_scene import Scene, settle
from tests.waiting import until


async def test_a_full_house_of_events_does_not_hold_up_a_bind():
    scene = Scene(binds=1, others=2)
    scene.close()
    for i in range(50):
        scene.send(f"e{i}")
        scene.patch(f"u{i}")
    await settle()
    bound = []

    async def job():
        bound.append(1)

    scene.submit(job)
    await settle()
    assert bound == [1]
    scene.open()
    await scene.drain()


async def test_events_that_are_never_answered_hold_up_no_patch():
    scene = Scene(others=2)
    scene.events.gate.clear()
    scene.send(*"abcdef")
    await settle()
    for number in range(20):
        scene.patch(f"u{number}")
    await settle()
    assert (len(scene.client.done), scene.events.done) == (20, [])
    scene.open()
    await scene.drain()
    assert [path for path, _ in scene.events.done] == [*"abcdef"]


async def test_preemptions_hold_up_no_bind_and_are_waited_for_at_the_end():
    scene, gate, done = Scene(), asyncio.Event(), []

    async def preemption():
        await gate.wait()
        done.append("preemption")

    async def bind():
        done.append("bind")

    for _ in range(3):
        scene.dispatcher.preempt(preemption)
    await settle()
    scene.submit(bind)
    await settle()
    assert (done, scene.dispatcher.jobs_in_flight) == (["bind"], 0)
    asyncio.get_running_loop().call_later(0.01, gate.set)
    await scene.drain()
    assert done == ["bind"] + ["preemption"] * 3


async def test_while_binds_wait_for_a_worker_few_calls_are_under_way_and_then_all_go_on():
    scene = Scene(others=8, binds=1)
    scene.close()
    release = asyncio.Event()
    scene.submit(release.wait, times=2)
    scene.send(*(f"e{i}" for i in range(20)))
    await settle()
    assert scene.events.most == 6
    release.set()
    await settle()
    assert scene.events.most == 8
    scene.open()
    await scene.drain()
    assert len(scene.events.done) == 20


async def test_what_very_many_waiting_pods_are_told_keeps_few_requests_under_way_and_holds_up_nothing_else():
    scene = Scene()
    scene.close()
    for number in range(100):
        scene.patch(f"u{number}")
        scene.send(f"failed {number}", repeatable=True)
    await settle()
    assert (scene.client.most, scene.events.most) == (3, 3)
    scene.send(*(f"bound {number}" for number in range(100)))
    await settle()
    assert scene.events.most == 24
    scene.open()
    await scene.drain()
    assert (len(scene.client.done), len(scene.events.done)) == (100, 200)
    assert scene.events.started.index("failed 50") > scene.events.started.index("bound 99")


async def test_however_long_binds_wait_calls_are_made():
    scene = Scene(binds=1)
    release = asyncio.Event()
    scene.submit(release.wait, times=2)
    for i in range(20):
        scene.send(f"e{i}")
        scene.patch(f"u{i}")
    await settle()
    assert (len(scene.events.done), len(scene.client.done)) == (20, 20)
    release.set()
    await scene.drain()


async def test_very_many_binds_of_a_namespace_without_answers_take_no_more_and_do_not_stop_the_loop(monkeypatch):
    monkeypatch.setattr("bayplan.scheduler.dispatcher.MAX_HELD_BINDS", 10)
    scene = Scene(binds=3, slow_seconds=0.01)
    assert scene.dispatcher.takes("bad")
    scene.submit(asyncio.Event().wait, times=20, namespace="bad")
    assert scene.dispatcher.jobs_in_flight == 20
    await asyncio.sleep(0.03)
    assert scene.dispatcher.jobs_in_flight == 0, "the loop need not wait for them"
    assert scene.woken > 0, "and is told"
    assert (scene.dispatcher.takes("bad"), scene.dispatcher.takes("good")) == (False, True)
    await scene.drain(binds_seconds=0.01)


async def test_one_namespace_with_very_many_quick_binds_does_not_stop_the_loop(monkeypatch):
    monkeypatch.setattr("bayplan.scheduler.dispatcher.MAX_WAITING_BINDS", 50)
    scene = Scene(binds=3)
    scene.submit(asyncio.Event().wait, times=40, namespace="many")
    assert scene.dispatcher.takes("many")
    scene.submit(asyncio.Event().wait, times=12, namespace="many")
    assert (scene.dispatcher.takes("many"), scene.dispatcher.takes("good")) == (False, True)
    await scene.drain(binds_seconds=0.01)


async def test_binds_and_patches_that_wait_for_the_rate_limit_hold_no_namespace():
    scene = Scene(others=6, slow_seconds=0.01)
    scene.client.tokens.clear()
    for number in range(20):
        scene.patch(f"u{number}", namespace="ns", urgent=True)
    await asyncio.sleep(0.03)
    assert scene.dispatcher._patching.slow == 0
    scene.client.tokens.set()
    await scene.drain()
    assert len(scene.client.done) == 20


async def test_a_pod_that_is_patched_and_bound_again_and_again_has_one_turn_at_a_time():
    scene = Scene(slow_seconds=0.01)
    scene.close()
    for number in range(10):
        scene.patch(f"u{number}", namespace="bad")
    await asyncio.sleep(0.03)

    async def bind():
        """It fails soon, and its pod is tried again."""

    for _ in range(200):
        scene.patch("u9", namespace="bad")
        scene.submit(bind, uid="u9", namespace="bad")
    await settle()
    assert scene.dispatcher._patching.unfinished <= 10
    scene.open()
    await scene.drain()


async def test_patches_of_pods_that_come_and_go_where_nothing_is_answered_have_a_bound(monkeypatch):
    monkeypatch.setattr("bayplan.scheduler.pod_patches.MAX_WAITING_PATCHES", 50)
    scene = Scene(slow_seconds=0.01)
    scene.close()
    for number in range(500):
        scene.patch(f"u{number}", namespace="bad")
    await settle()
    assert scene.dispatcher.waiting_calls()["pod_status_patch"] <= 50
    assert len(scene.lost) >= 440
    scene.patch("u", namespace="good")
    scene.patch("v", namespace="bad", urgent=True)
    scene.open()
    await scene.drain()
    assert {("u", b""), ("v", b"")} <= set(scene.client.done)


async def test_an_urgent_patch_goes_before_all_others_though_one_of_its_pod_is_tried_again():
    scene = Scene(others=3)
    scene.client.answers["u"] = [503]
    scene.patch("u", b"1", namespace="ns")
    await until(lambda: scene.client.done)
    scene.close()
    for number in range(100):
        scene.patch(f"v{number}", namespace="ns")
    await settle()
    scene.patch("u", b"2", namespace="ns", urgent=True)
    scene.open()
    await scene.drain()
    assert scene.client.started.index("u", 1) < 20


async def test_a_bind_behind_a_patch_that_hangs_does_not_begin_as_a_drain_ends():
    scene, begun = Scene(), []
    scene.close()
    scene.patch("u")
    await settle()

    async def bind():
        begun.append(1)
        await asyncio.Event().wait()

    scene.submit(bind, uid="u")
    await scene.drain(binds_seconds=0.01, calls_seconds=0.01)
    await settle()
    assert len(asyncio.all_tasks()) == 1
