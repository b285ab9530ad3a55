"""Long work on the event loop, cut into pieces."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

SLICE_SECONDS = 0.010


async def in_slices(
    items: Iterable[T],
    act: Callable[[T], None],
    *,
    seconds: float = SLICE_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Act on each item in order, giving way to the rest of the program every `seconds`."""
    until = clock() + seconds
    for item in items:
        act(item)
        if clock() >= until:
            await asyncio.sleep(0)
            until = clock() + seconds
