"""Waits in asynchronous tests for a state that nothing announces."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], *, seconds: float = 20) -> None:
    """Return as soon as `condition` holds; TimeoutError if it does not within `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the condition is often another thread's or a server's state
            await asyncio.sleep(0.002)
