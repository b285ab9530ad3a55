import asyncio
import threading

from bayplan.controller import handover as handover_module
from bayplan.controller.handover import Handover


async def settle(condition):
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  deliveries come from another thread's call
            await asyncio.sleep(0.001)


class CountedLoop:
    """The running loop, with its wake-ups from other threads counted."""

    def __init__(self, monkeypatch):
        self.wakes = 0
        loop = asyncio.get_running_loop()
        real = loop.call_soon_threadsafe

        def counted(callback, *args, **options):
            self.wakes += 1
            return real(callback, *args, **options)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)


async def test_values_arrive_in_order_on_the_loop_they_belong_to():
    taken, threads = [], set()

    def deliver(value):
        taken.append(value)
        threads.add(threading.get_ident())

    handover = Handover(deliver)
    thread = threading.Thread(target=lambda: [handover.put(i) for i in range(5000)])
    thread.start()
    await settle(lambda: len(taken) == 5000)
    thread.join()
    assert taken == list(range(5000))
    assert threads == {threading.get_ident()}


async def test_many_values_wake_the_loop_once(monkeypatch):
    taken = []
    handover = Handover(taken.append)
    counted = CountedLoop(monkeypatch)
    for i in range(1000):
        handover.put(i)
    assert (counted.wakes, taken) == (1, [])
    await settle(lambda: len(taken) == 1000)
    assert counted.wakes == 1
    handover.put("more")
    assert counted.wakes == 2
    await settle(lambda: len(taken) == 1001)


async def test_others_get_their_turn_between_slices():
    taken, seen = [], []
    handover = Handover(taken.append)
    for i in range(3 * handover_module._SLICE):
        handover.put(i)
    while len(taken) < 3 * handover_module._SLICE:
        await asyncio.sleep(0)
        seen.append(len(taken))
    assert max(b - a for a, b in zip([0, *seen], seen, strict=False)) == handover_module._SLICE


async def test_a_value_that_cannot_be_taken_holds_up_none_behind_it(caplog):
    taken = []

    def deliver(value):
        if value % 2:
            raise ValueError(value)
        taken.append(value)

    handover = Handover(deliver)
    for i in range(6):
        handover.put(i)
    await settle(lambda: len(taken) == 3)
    assert taken == [0, 2, 4]
    assert len(caplog.records) == 3


async def test_nothing_is_lost_between_threads_that_put_and_a_loop_that_takes():
    taken = []
    handover = Handover(taken.append)

    def put(number):
        for i in range(2000):
            handover.put((number, i))

    threads = [threading.Thread(target=put, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    await settle(lambda: len(taken) == 8000)
    for thread in threads:
        thread.join()
    for number in range(4):
        assert [i for n, i in taken if n == number] == list(range(2000))


async def test_a_value_put_while_one_is_taken_is_taken_too():
    taken = []

    def deliver(value):
        taken.append(value)
        if value < 5:
            handover.put(value + 1)

    handover = Handover(deliver)
    handover.put(0)
    await settle(lambda: len(taken) == 6)
    assert taken == [0, 1, 2, 3, 4, 5]
