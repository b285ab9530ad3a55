import asyncio
import threading

from tests.waiting import until

from bayplan.controller.operator_thread import Handover


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


async def test_events_of_another_thread_arrive_in_order_and_together_on_the_loop():
    told, wakes = [], []
    loop = asyncio.get_running_loop()
    handover = Handover(loop, lambda event: told.append((event["object"], threading.current_thread())), lambda: None)

    def put():
        handover.put({"type": "ADDED", "object": 0})
        loop.call_soon_threadsafe(lambda: wakes.append(len(told)))
        for number in range(1, 100):
            handover.put({"type": "ADDED", "object": number})

    in_a_thread(put)
    await until(lambda: wakes)
    assert told == [(number, threading.main_thread()) for number in range(100)]
    assert wakes == [100], "all were taken at the first wake-up"


async def test_an_event_that_comes_while_others_are_taken_is_not_forgotten():
    told = []

    def take(event):
        told.append(event["object"])
        if event["object"] == 0:
            in_a_thread(lambda: handover.put({"type": "ADDED", "object": 1}))

    handover = Handover(asyncio.get_running_loop(), take, lambda: None)
    handover.put({"type": "ADDED", "object": 0})
    await until(lambda: told == [0, 1])
    handover.put({"type": "ADDED", "object": 2})
    await until(lambda: told == [0, 1, 2])


async def test_an_event_that_breaks_its_taker_is_logged_and_the_next_is_taken(caplog):
    told = []

    def take(event):
        if event["object"] == "odd":
            raise RuntimeError("boom")
        told.append(event["object"])

    handover = Handover(asyncio.get_running_loop(), take, lambda: None)
    for name in ("odd", "even"):
        handover.put({"type": "ADDED", "object": name})
    await until(lambda: told)
    assert told == ["even"]
    assert "a pod's event was not taken" in caplog.text


async def test_a_start_is_told_on_the_loop():
    told = []
    handover = Handover(asyncio.get_running_loop(), lambda event: None, lambda: told.append(threading.current_thread()))
    in_a_thread(handover.started)
    await until(lambda: told == [threading.main_thread()])


async def test_nothing_is_handed_over_once_the_operator_is_to_stop():
    told = []
    handover = Handover(asyncio.get_running_loop(), told.append, lambda: None)
    handover.stop.set()
    handover.put({"type": "ADDED", "object": 0})
    await asyncio.sleep(0.01)
    assert told == []
