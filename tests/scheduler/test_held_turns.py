"""Turns of namespaces that hang: for how long they are held, and what that leaves behind."""

import asyncio

import pytest
from tests.scheduler.turns_scene import Calls
from tests.waiting import until

from bayplan.scheduler import turns


@pytest.fixture
async def calls():
    made = Calls()
    yield made
    await made.turns.stop()


async def test_however_many_namespaces_hang_twice_the_places_are_taken():
    calls = Calls(size=6)
    calls.hangs = {f"bad{number}" for number in range(100)}
    for name in sorted(calls.hangs):
        calls.call(name)
    for _ in range(5):
        await calls.slow()
    assert len(calls.under_way) == 12
    await calls.turns.stop()


async def test_a_namespace_is_held_as_long_as_nothing_was_answered_soon_even_while_it_has_no_call(calls):
    calls.hangs = {"bad"}
    calls.call("bad")
    await calls.slow()
    calls.answer.set()
    await until(lambda: calls.done)
    calls.answer = asyncio.Event()
    await asyncio.sleep(0)
    calls.call("bad", times=5)
    await asyncio.sleep(0)
    assert (len(calls.under_way), calls.turns.slow, calls.turns.held) == (2, 2, 3)


async def test_of_namespaces_without_a_call_few_are_remembered(calls, monkeypatch):
    monkeypatch.setattr(turns, "_REMEMBERED", 5)
    calls.hangs = {f"bad{number}" for number in range(8)}
    for name in sorted(calls.hangs):
        calls.call(name)
    await calls.slow()
    await calls.slow()
    calls.answer.set()
    await until(lambda: len(calls.done) == 8 and not calls.turns.tasks)
    await until(lambda: len(calls.turns._lanes) == 5)


async def test_a_turn_that_sent_nothing_does_not_free_its_namespace(calls):
    calls.hangs = {"bad"}
    calls.call("bad", times=4)
    await calls.slow()
    assert calls.turns.slow == 4
    calls.answer.set()
    await until(lambda: len(calls.done) == 4)
    async with calls.turns.turn("bad"):
        assert calls.turns.slow == 1
    calls.answer = asyncio.Event()
    calls.call("bad")
    await asyncio.sleep(0)
    assert calls.turns.slow == 1, "it is held still"


async def test_what_waits_for_the_rate_limit_is_not_slow(calls):
    async with calls.turns.turn("ns") as turn:
        await calls.slow()
        assert (calls.turns.quick, calls.turns.slow) == (1, 0)
        turn.sent()
        await calls.slow()
        assert (calls.turns.quick, calls.turns.slow) == (0, 1)


async def test_a_namespace_that_answers_some_calls_and_hangs_the_others_stays_held(calls):
    async def answered_soon():
        async with calls.turns.turn("bad") as turn:
            turn.sent()

    calls.hangs = {"bad"}
    calls.call("bad")
    await calls.slow()
    await answered_soon()
    async with calls.turns.turn("bad"):
        assert calls.turns.slow == 2, "it counts as those of a held one"
    calls.answer.set()
    await until(lambda: calls.done)
    await answered_soon()
    async with calls.turns.turn("bad"):
        assert (calls.turns.quick, calls.turns.slow) == (1, 0)


async def test_held_namespaces_take_turns_whatever_their_ranks():
    calls = Calls(size=3)
    calls.hangs = {"bad", "low"}
    calls.call("bad", times=5, rank=10)
    calls.call("low", times=2)
    await calls.slow()
    for _ in range(4):
        calls.answer.set()
        calls.answer = asyncio.Event()
        await calls.slow()
    assert ("low", 0) in calls.done
    await calls.turns.stop()


async def test_given_up_turns_of_a_namespace_that_hangs_leave_nothing_behind(calls):
    calls.hangs = {"ns", "other"}
    calls.call("ns", times=5)
    calls.call("other", times=5)
    await calls.slow()
    for rank in range(5000):
        turn = calls.turns.start("ns", None, rank)
        turn.leave()
    lanes = calls.turns._lanes
    assert len(lanes["ns"].waiting) < 100
    assert sum(map(len, calls.turns._ready)) < 200
    assert calls.turns.held < 10


async def test_the_end_of_a_call_costs_no_look_at_every_namespace_that_waits(calls):
    calls.hangs = {f"bad{number:04}" for number in range(2000)}
    for name in sorted(calls.hangs):
        calls.call(name, times=2)
    offers, offer = [], calls.turns._offer
    calls.turns._offer = lambda lane: (offers.append(lane), offer(lane))
    calls.answer.set()
    await until(lambda: len(calls.done) == 4000)
    assert len(offers) < 4 * 4000
