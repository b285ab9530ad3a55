"""The loop: when it takes the next pod, when it waits and when it ends."""

import asyncio
import gc
from contextlib import nullcontext
from itertools import pairwise

from tests.builders import make_node, make_pod
from tests.waiting import until

from bayplan.cache.scratch_table import ScratchTable
from bayplan.queue.queued_pod import SubQueue


class Running:
    """The loop as a task, with binds done as soon as they are submitted."""

    def __init__(self, scene):
        self.scene = scene
        self.tasks = []

    async def __aenter__(self):
        self.scene.dispatcher.submit = self._submit
        self.task = asyncio.create_task(self.scene.scheduler.run())
        return self

    def _submit(self, uid, namespace, job, priority, **options):
        self.tasks.append(asyncio.create_task(job(nullcontext())))

    async def __aexit__(self, *_):
        self.scene.scheduler.stop()
        async with asyncio.timeout(10):
            await self.task


async def test_the_loop_schedules_what_comes_and_stops_when_told(scene):
    scene.node(cpu="100", pods=1000)
    async with Running(scene):
        for i in range(50):
            scene.pod(f"p{i}", cpu="1m")
        await until(lambda: len(scene.binder.bindings) == 50)
        scene.pod("late", cpu="1m")
        await until(lambda: len(scene.binder.bindings) == 51)
    scene.pod("after the end")
    await asyncio.sleep(0)
    assert len(scene.binder.bindings) == 51
    assert scene.recorder.sweeps > 0


def scratch_tables():
    gc.collect()
    return sum(isinstance(each, ScratchTable) for each in gc.get_objects())


async def test_what_no_attempt_needs_for_a_while_is_let_go_of(scene):
    before = scratch_tables()
    scene.node(cpu="2")
    scene.assigned.on_add(make_pod("there", uid="there", node="n1", cpu="1", priority=9))
    scene.assigned.on_add(make_pod("weak", uid="weak", node="n1", cpu="1", priority=1))
    # Without the weak one there is still no room, as a dry run finds out on a table of its own.
    scene.pod("no room", cpu="2", priority=9)
    async with Running(scene):
        await until(lambda: scene.sub_queue_of("no room") is SubQueue.UNSCHEDULABLE)
        assert scratch_tables() == before + 1
        while scratch_tables() > before:
            scene.now += 5.0
            scene.news.set()
            await asyncio.sleep(0)
    assert 10.0 <= scene.now <= 25.0


async def test_a_loop_that_was_stopped_before_it_began_does_nothing(scene):
    scene.node()
    scene.pod()
    scene.scheduler.stop()
    await scene.scheduler.run()
    assert scene.queue.uids() == {"p"}
    assert scene.sub_queue_of() is SubQueue.ACTIVE


async def test_a_stop_is_heeded_between_two_decisions(scene, monkeypatch):
    scene.node(pods=1000)
    for i in range(20):
        scene.pod(f"p{i}", cpu="1m")
    schedule_one = scene.scheduler.schedule_one

    def stop_after_one():
        scene.scheduler.stop()
        return schedule_one()

    monkeypatch.setattr(scene.scheduler, "schedule_one", stop_after_one)
    await scene.scheduler.run()
    assert len(scene.dispatcher.jobs) == 1


async def test_the_loop_lets_others_run_while_it_has_work(scene, monkeypatch):
    scene.node(cpu="100", pods=10_000)
    for i in range(100):
        scene.pod(f"p{i}", cpu="1m")
    schedule_one = scene.scheduler.schedule_one

    def slow():
        scene.now += 0.004
        return schedule_one()

    monkeypatch.setattr(scene.scheduler, "schedule_one", slow)
    left_at_turns = []

    async def other():
        while scene.queue.has_ready():
            left_at_turns.append(scene.queue.pending()["active"])
            await asyncio.sleep(0)

    async with Running(scene):
        await other()
    # Three decisions of 4 ms fill a slice of 10 ms.
    assert max(a - b for a, b in pairwise(left_at_turns)) == 3


async def test_while_few_pods_wait_a_bind_leaves_before_the_next_decision(scene, monkeypatch):
    scene.node(cpu="100", pods=1000)
    for i in range(100):
        scene.pod(f"p{i}", cpu="1m")
    schedule_one = scene.scheduler.schedule_one
    behind = {}

    def decide():
        left = scene.queue.pending()["active"]
        behind[left] = 100 - left - len(scene.binder.bindings)
        return schedule_one()

    monkeypatch.setattr(scene.scheduler, "schedule_one", decide)
    async with Running(scene):
        await until(lambda: len(scene.binder.bindings) == 100)
    # The decision on one of these may be long; among many pods a turn of the loop for each would cost too much.
    assert [behind[left] for left in range(64, 0, -1)] == [0] * 64
    assert behind[65] > 1


async def test_no_pod_is_popped_while_too_many_binds_are_under_way(scene):
    scene.node()
    scene.pod()
    scene.dispatcher.jobs_in_flight = 32768
    async with Running(scene):
        for _ in range(20):
            await asyncio.sleep(0)
        assert scene.sub_queue_of() is SubQueue.ACTIVE
        scene.dispatcher.jobs_in_flight = 32767
        scene.news.set()
        await until(lambda: scene.binder.bindings)


async def test_the_loop_wakes_by_itself_when_a_back_off_ends(scene):
    async with Running(scene):
        scene.pod()
        await until(lambda: scene.sub_queue_of() is SubQueue.ERROR_BACKOFF)
        # The node comes without a wake: only the clock can bring the pod back.
        scene.cache.set_node(make_node("n1"))
        deadline = scene.queue.next_deadline()
        scene.now = deadline - 0.001
        scene.news.set()
        await asyncio.sleep(0)
        scene.now = deadline
        await until(lambda: scene.binder.bindings)
