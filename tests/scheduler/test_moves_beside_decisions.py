"""Very many waiting pods that an event wakes: moved in slices of the loop, before the next decision."""

import asyncio

import pytest
from tests.builders import make_node, make_pod
from tests.scheduler.scene import Scene
from tests.scheduler.test_scheduling_loop import Running
from tests.waiting import until

from bayplan.queue.queued_pod import SubQueue

WAITING = [f"p{i}" for i in range(10)]


@pytest.fixture
def scene(monkeypatch):
    """A full node, and ten pods that have waited long for it; to move one of them takes 4 ms."""
    made = Scene(step=1)
    made.node(cpu="1")
    made.assigned.on_add(make_pod("there", uid="there", node="n1", cpu="1", priority=99))
    for priority, name in enumerate(WAITING):
        made.pod(name, cpu="1", priority=priority)
    for _ in WAITING:
        made.step()
    made.after(60.0)
    assert waiting(made) == WAITING
    flush = made.queue.flush

    def slow(now):
        made.now += 0.004
        return flush(now)

    monkeypatch.setattr(made.queue, "flush", slow)
    return made


def waiting(scene):
    return [name for name in WAITING if scene.sub_queue_of(name) is SubQueue.UNSCHEDULABLE]


def make_room(scene):
    scene.assigned.on_delete(make_pod("there", uid="there", node="n1", cpu="1", priority=99))


async def test_room_goes_to_the_pod_of_highest_priority_although_it_is_moved_last(scene):
    async with Running(scene):
        make_room(scene)
        scene.pod("newcomer", cpu="1")
        await until(lambda: scene.binder.bindings)
    assert scene.binder.bindings[0][0] == WAITING[-1]


async def test_others_get_their_turn_while_pods_are_moved(scene):
    left_at_turns = []
    async with Running(scene):
        make_room(scene)
        while scene.queue.is_moving:
            left_at_turns.append(len(waiting(scene)))
            await asyncio.sleep(0)
    # One is moved with the event, and three moves of 4 ms fill a slice of 10 ms.
    assert left_at_turns == [9, 6, 3, 0]


async def test_a_pod_woken_while_the_loop_slept_is_tried_at_once(scene):
    async with Running(scene):
        await until(lambda: scene.news.is_set() is False)
        make_room(scene)
        began = scene.now
        await until(lambda: scene.binder.bindings)
    assert scene.now - began < 0.1


async def test_decisions_go_on_where_events_come_faster_than_pods_can_be_moved(scene):
    # The others ask for more.
    scene.nodes.on_add(make_node("n2", cpu="500m"))
    began = scene.now
    async with Running(scene):
        scene.pod("newcomer", cpu="500m")
        async with asyncio.timeout(20):
            while not scene.binder.bindings:
                for name in ("a", "b", "c"):
                    scene.nodes.on_add(make_node(name, cpu="1m"))
                    scene.nodes.on_delete(make_node(name, cpu="1m"))
                await asyncio.sleep(0)
    assert scene.binder.bindings[0][0] == "newcomer"
    assert waiting(scene) == WAITING
    assert 0.5 <= scene.now - began < 0.6
