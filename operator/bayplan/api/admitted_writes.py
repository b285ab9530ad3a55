"""The writes under way of a client, which end at the moment from which none is allowed any more."""

import asyncio
from collections.abc import Callable
from typing import Any

from bayplan.api.errors import UnreachableError


class AdmittedWrites:
    """Has writes go on for as long as `admit` allows, by one timer for all of them; ApiClient relies on it.

    `admit` gives the seconds for which writes are allowed, or raises UnreachableError. A task has one write at a time.
    """

    def __init__(self, admit: Callable[[], float]) -> None:
        self._admit = admit
        self._is_cut: dict[asyncio.Task[Any], bool] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, task: asyncio.Task[Any]) -> None:
        """Have the task cancelled once no write is allowed, unless its write ended before.

        Raises:
            UnreachableError: none is allowed now.
        """
        left = self._admit()
        self._is_cut[task] = False
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(left, self._look)

    def end(self, task: asyncio.Task[Any]) -> bool:
        """Leave the task alone from now on, and say whether it was cancelled."""
        return self._is_cut.pop(task, False)

    def close(self) -> None:
        """Look at nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if not self._is_cut:
            return
        try:
            left = self._admit()
        except UnreachableError:
            for task, is_cut in self._is_cut.items():
                if not is_cut:
                    self._is_cut[task] = True
                    task.cancel()
        else:
            self._timer = asyncio.get_running_loop().call_later(left, self._look)
