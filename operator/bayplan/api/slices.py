"""Long work on the event loop, in slices short enough for everything else."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")

SLICE_SECONDS = 0.010


async def in_slices(
    items: Iterable[Item],
    act: Callable[[Item], None],
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
