"""Carries values from the thread kopf runs in to the scheduler's event loop, in order, with one wake-up for many."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

_SLICE = 200
"""How many values are taken before the loop may do something else."""


class Handover(Generic[T]):
    """Delivers each value put from another thread to `deliver` on the loop it was made on.

    kopf's handler relies on `put` costing next to nothing: the loop is only woken when it is not about to look anyway.
    """

    def __init__(self, deliver: Callable[[T], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._deliver = deliver
        self._waiting: deque[T] = deque()
        self._scheduled = False

    def put(self, value: T) -> None:
        """Hand a value over; safe from any thread."""
        self._waiting.append(value)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon_threadsafe(self._take)

    def _take(self) -> None:
        # Cleared first: a value put from here on schedules another round, so none is left lying.
        self._scheduled = False
        waiting = self._waiting
        for _ in range(min(len(waiting), _SLICE)):
            try:
                self._deliver(waiting.popleft())
            except Exception:
                # One value that breaks its taker must not hold up those behind it.
                logger.exception("a value handed over was not taken")
        if waiting and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._take)
