"""Waiting in asynchronous tests: for a state that nothing announces, and not at all."""

import asyncio
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], object], *, seconds: float = 20) -> None:
    """Return as soon as `condition` holds; TimeoutError if it does not within `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the condition is often another thread's or a server's state
            await asyncio.sleep(0.002)


class Sleeps:
    """Stands for `asyncio.sleep`: notes each delay, takes no time, and lets the rest of the program run.

    `instead` may be what happens in place of that.
    """

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.instead: Callable[[float], Awaitable[object]] | None = None

    async def __call__(self, seconds: float) -> None:
        self.delays.append(seconds)
        await (asyncio.sleep(0) if self.instead is None else self.instead(seconds))
