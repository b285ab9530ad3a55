import asyncio
import threading

import pytest
from tests.waiting import until

from bayplan.api.watch_event import Identity, PodEvent
from bayplan.controller.operator_thread import Handover


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


class Scene:
    """A handover to a taker that notes what it is told and then does what `taking` says."""

    def __init__(self):
        self.told, self.threads = [], set()
        self.taking = lambda name: None
        self.handover = Handover(
            asyncio.get_running_loop(),
            lambda event: self._take(event.identity.name),
            lambda: self._take("started"),
        )

    def _take(self, name):
        self.taking(name)
        self.told.append(name)
        self.threads.add(threading.current_thread())

    def put(self, *names):
        for name in names:
            self.handover.put(PodEvent("ADDED", Identity(name=name)))


@pytest.fixture
async def scene():
    return Scene()


async def test_events_of_another_thread_arrive_in_order_and_together_on_the_loop(scene):
    wakes, loop = [], asyncio.get_running_loop()

    def put():
        scene.put(0)
        loop.call_soon_threadsafe(lambda: wakes.append(len(scene.told)))
        scene.put(*range(1, 100))

    in_a_thread(put)
    await until(lambda: wakes)
    assert (scene.told, scene.threads) == (list(range(100)), {threading.main_thread()})
    assert wakes == [100], "all were taken at the first wake-up"


async def test_an_event_that_comes_while_others_are_taken_is_not_forgotten(scene):
    scene.taking = lambda name: name == 0 and in_a_thread(lambda: scene.put(1))
    scene.put(0)
    await until(lambda: scene.told == [0, 1])
    scene.put(2)
    await until(lambda: scene.told == [0, 1, 2])


async def test_an_event_that_breaks_its_taker_is_logged_and_the_next_is_taken(scene, caplog):
    def break_on_odd(name):
        if name == "odd":
            raise RuntimeError("boom")

    scene.taking = break_on_odd
    scene.put("odd", "even")
    await until(lambda: scene.told)
    assert scene.told == ["even"]
    assert "a pod's event was not taken" in caplog.text


async def test_a_start_is_told_on_the_loop(scene):
    in_a_thread(scene.handover.started)
    await until(lambda: (scene.told, scene.threads) == (["started"], {threading.main_thread()}))


async def test_nothing_is_handed_over_once_the_operator_is_to_stop(scene):
    scene.handover.stop.set()
    scene.put(0)
    await asyncio.sleep(0.01)
    assert scene.told == []
