"""Turns: what fails or hangs for one namespace takes a bounded share, and the rest is everybody else's."""

import asyncio
import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduler.turns_scene import SLOW_SECONDS, Calls
from tests.waiting import until

from bayplan.api.response import ApiResponse
from bayplan.scheduler.turns import Turn


@pytest.fixture
async def calls():
    made = Calls()
    yield made
    await made.turns.stop()


async def test_one_namespace_has_two_thirds_of_the_places(calls):
    calls.hangs = {"bad"}
    calls.call("bad", times=100)
    await asyncio.sleep(0)
    assert calls.under_way == ["bad"] * 4
    calls.call("good", times=3)
    await until(lambda: len(calls.done) == 3)


async def test_what_hangs_for_one_namespace_leaves_all_places_to_the_others(calls):
    calls.hangs = {"bad", "other"}
    calls.call("bad", times=100)
    await calls.slow()
    calls.call("other", times=100)
    await asyncio.sleep(0)
    assert calls.under_way.count("other") == 4
    assert calls.turns.quick == 4, "those that hang count no more"


async def test_a_held_namespace_has_a_third_of_the_places_under_way(calls):
    calls.hangs = {"bad"}
    calls.call("bad", times=100)
    await calls.slow()
    assert len(calls.under_way) == 4
    calls.answer.set()
    calls.answer = asyncio.Event()
    await calls.slow()
    assert len(calls.under_way) == 2
    assert (calls.turns.waiting, calls.turns.held) == (0, 94)


async def test_a_namespace_whose_calls_admission_refuses_has_a_twelfth_of_the_places_until_one_is_taken():
    calls = Calls(size=24)
    calls.refuses = {"bad"}
    calls.call("bad")
    await until(lambda: len(calls.done) == 1)
    calls.hangs = {"bad"}
    calls.call("bad", times=100)
    await asyncio.sleep(0)
    assert calls.under_way == ["bad"] * 2
    calls.call("good", times=10)
    await until(lambda: len(calls.done) == 11)
    calls.refuses = set()
    calls.answer.set()
    calls.answer = asyncio.Event()
    await until(lambda: len(calls.under_way) == 16)
    await calls.turns.stop()


@pytest.mark.parametrize(
    ("answer", "share"),
    [(None, 2), (ApiResponse(409, b""), 2), (ApiResponse(500, b""), 2), (ApiResponse(201, b""), 16)],
)
async def test_only_a_call_that_admission_let_pass_ends_the_refusal(answer, share):
    calls = Calls(size=24)
    calls.refuses = {"bad"}
    calls.call("bad")
    await until(lambda: len(calls.done) == 1)
    async with calls.turns.turn("bad") as turn:
        turn.sent()
        if answer is not None:
            turn.answered(answer)
    calls.hangs = {"bad"}
    calls.call("bad", times=100)
    await asyncio.sleep(0)
    assert calls.under_way == ["bad"] * share
    await calls.turns.stop()


async def test_all_held_namespaces_together_have_as_many_as_there_are_places(calls):
    calls.hangs = {f"bad{number}" for number in range(30)}
    for name in sorted(calls.hangs):
        calls.call(name, times=30)
    for _ in range(8):  # Each is found out, a few at a time, as the calls run into their time-outs.
        await calls.slow()
        calls.answer.set()
        calls.answer = asyncio.Event()
    await calls.slow()
    calls.done.clear()
    calls.call("good")
    await until(lambda: calls.done == [("good", 0)])
    assert len(calls.under_way) == calls.turns.slow == 6
    assert calls.turns.quick == 0


async def test_a_namespace_that_is_answered_soon_again_has_all_its_places(calls):
    calls.hangs = {"bad"}
    calls.call("bad", times=100)
    await calls.slow()
    assert calls.turns.is_held("bad")
    calls.hangs = set()
    calls.answer.set()
    await until(lambda: len(calls.done) == 100 and not calls.turns.tasks)
    assert not calls.turns.is_held("bad")
    assert calls.turns.unfinished == 0


async def test_the_highest_rank_goes_first_and_then_the_namespace_that_waited_longest():
    calls = Calls(size=1)
    calls.hangs = {"first"}
    calls.call("first")
    await asyncio.sleep(0)
    calls.call("many", times=3)
    calls.call("one")
    calls.call("many", rank=10)
    calls.call("critical", rank=20)
    calls.answer.set()
    await until(lambda: len(calls.done) == 7)
    assert calls.done[1:] == [("critical", 20), ("many", 10), ("one", 0), *[("many", 0)] * 3]


async def test_a_namespace_with_very_many_calls_takes_turns_with_those_that_come_again_and_again():
    calls = Calls(size=1)
    calls.call("many", times=20)

    def come_again(namespace):
        async def again(turn):
            async with turn:
                await asyncio.sleep(0)
            calls.done.append((namespace, 0))
            if len(calls.done) < 40:
                come_again(namespace)

        calls.turns.start(namespace, again)

    for namespace in ("one", "two", "three"):
        come_again(namespace)
    await until(lambda: len(calls.done) >= 40)
    assert calls.done[:40].count(("many", 0)) >= 8
    await calls.turns.stop()


async def test_a_call_does_not_wait_for_all_of_many_that_came_at_once_nor_these_for_all_others():
    calls = Calls(size=1)
    begun = []

    def ask(name, times, rank=0, *, of_many):
        for number in range(times):
            turn = Turn(calls.turns, "ns", (-rank, of_many))
            calls.turns.ask(turn, lambda turn=turn, number=number: begun.append((f"{name}{number}", turn)))

    ask("gang", 4, of_many=True)
    ask("pod", 3, of_many=False)
    ask("critical", 2, 1, of_many=True)
    for number in range(9):
        begun[number][1].leave()
    order = ["gang0", "critical0", "critical1", "pod0", "gang1", "pod1", "gang2", "pod2", "gang3"]
    assert [name for name, _ in begun] == order


async def test_nothing_is_held_between_two_requests_of_a_call():
    calls = Calls(size=1)
    asleep = asyncio.Event()

    async def twice(turn):
        async with turn:
            calls.done.append("first")
        await asleep.wait()
        async with turn:
            calls.done.append("second")

    calls.turns.start("ns", twice)
    calls.call("ns")
    await until(lambda: len(calls.done) == 2)
    asleep.set()
    await until(lambda: len(calls.done) == 3)
    assert calls.done == ["first", ("ns", 0), "second"]


async def test_a_call_that_is_ended_while_it_waits_leaves_nothing_behind(calls):
    calls.hangs = {"ns"}
    calls.call("ns", times=4)
    await asyncio.sleep(0)

    async def wait():
        async with calls.turns.turn("ns", rank=5):
            raise AssertionError("it has no turn")

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    assert calls.turns.waiting == 1
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    calls.call("ns")
    calls.answer.set()
    await until(lambda: len(calls.done) == 5)
    assert calls.turns.unfinished == 0


async def test_a_stop_ends_what_waits_and_what_is_under_way():
    calls = Calls()
    calls.hangs = {"ns"}
    calls.call("ns", times=50)
    await asyncio.sleep(0)
    await calls.turns.stop()
    assert (calls.turns.unfinished, calls.turns.quick, calls.turns.slow) == (0, 0, 0)
    assert len(asyncio.all_tasks()) == 1


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["call", "many", "hang", "refuse", "heal", "answer", "pass"]),
        st.integers(0, 3),
        st.integers(0, 2),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_whatever_hangs_the_share_is_kept_and_all_is_done_in_the_end(steps):
    async def run():
        calls, asked = Calls(size=3), 0
        for kind, number, rank in steps:
            name = f"n{number}"
            if kind in {"call", "many"}:
                asked += 1 + number
                calls.call(name, 1 + number, rank, of_many=kind == "many")
            elif kind == "hang":
                calls.hangs.add(name)
            elif kind == "refuse":
                calls.refuses.add(name)
            elif kind == "heal":
                calls.hangs.discard(name)
                calls.refuses.discard(name)
            elif kind == "answer":
                calls.answer.set()
                await asyncio.sleep(0)
                calls.answer = asyncio.Event()
            else:
                await asyncio.sleep(SLOW_SECONDS * 1.5)
            await asyncio.sleep(0)
            assert calls.turns.quick <= 3
            assert calls.turns.quick + calls.turns.slow <= 6
            assert all(calls.under_way.count(f"n{each}") <= 2 for each in range(4))
        calls.hangs = set()
        calls.answer.set()
        await until(lambda: len(calls.done) == asked)
        await asyncio.sleep(0)
        made = calls.turns
        assert (made.unfinished, made.quick, made.slow, made.waiting, made.held) == (0, 0, 0, 0, 0)
        await made.stop()

    asyncio.run(run())


def turns():
    return [each for each in gc.get_objects() if isinstance(each, Turn)]


async def test_turns_that_are_over_leave_nothing_to_the_garbage_collector(calls):
    gc.collect()
    gc.disable()
    try:
        of_others = turns()
        calls.call("good", times=100)
        await until(lambda: len(calls.done) == 100 and not calls.turns.tasks)
        assert [each for each in turns() if each not in of_others] == []
    finally:
        gc.enable()
