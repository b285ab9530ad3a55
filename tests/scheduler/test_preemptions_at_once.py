"""How many preemptions are under way at once, and what those of one namespace leave to the others."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.waiting import until

from bayplan.scheduler.api_calls import PREEMPTION
from bayplan.scheduler.dispatcher import PREEMPTIONS, Dispatcher

NO_CLIENT: Any = None


def dispatcher(**options: Any) -> Dispatcher:
    return Dispatcher(NO_CLIENT, NO_CLIENT, **options)


def waits_for(gate: asyncio.Event, begun: list[str], name: str) -> Callable[[], Awaitable[object]]:
    async def preemption() -> None:
        begun.append(name)
        await gate.wait()

    return preemption


async def test_very_many_preemptions_are_not_under_way_at_once_and_all_come_to_their_end() -> None:
    calls, gate, begun = dispatcher(), asyncio.Event(), list[str]()
    for number in range(3 * PREEMPTIONS):
        calls.preempt(waits_for(gate, begun, str(number)), f"namespace-{number % 3}")
    await until(lambda: len(begun) == PREEMPTIONS)
    await asyncio.sleep(0.01)
    assert (len(begun), calls.tasks()[PREEMPTION]) == (PREEMPTIONS, PREEMPTIONS)
    gate.set()
    await calls.drain(binds_seconds=20.0, calls_seconds=0.0)
    assert len(begun) == 3 * PREEMPTIONS


async def test_the_preemption_of_the_highest_priority_is_the_next() -> None:
    calls, gate, begun = dispatcher(), asyncio.Event(), list[str]()
    for number in range(PREEMPTIONS):
        calls.preempt(waits_for(gate, begun, "first"), f"namespace-{number % 3}")
    for priority in (1, 3, 2):
        calls.preempt(waits_for(gate, begun, str(priority)), "namespace-0", priority)
    await until(lambda: len(begun) == PREEMPTIONS)
    gate.set()
    await calls.drain(binds_seconds=20.0, calls_seconds=0.0)
    assert begun[PREEMPTIONS:] == ["3", "2", "1"]


async def test_namespaces_whose_preemptions_hang_leave_the_others_their_room() -> None:
    calls, gate, begun = dispatcher(slow_seconds=0.05), asyncio.Event(), list[str]()
    for number in range(4 * PREEMPTIONS):
        calls.preempt(waits_for(gate, begun, "hangs"), f"hangs-{number % 4}")
    await until(lambda: len(begun) >= PREEMPTIONS)
    calls.preempt(waits_for(gate, begun, "other"), "other")
    await until(lambda: "other" in begun)
    gate.set()
    await calls.drain(binds_seconds=20.0, calls_seconds=0.0)
