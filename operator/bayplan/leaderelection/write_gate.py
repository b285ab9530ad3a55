"""The gate that every write passes: open while this process surely leads, closed by the clock alone if nothing else."""

import math
import time
from collections.abc import Callable

from bayplan.api.errors import UnreachableError


def boot_clock() -> float:
    """Seconds on a clock that never steps back and goes on while the machine is suspended, where the system has one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class NotLeadingError(UnreachableError):
    """The write was not sent: another replica leads, or may by now."""


class WriteGate:
    """Says whether a write may start, and for how long it may go on before the gate is asked again.

    Whoever sends writes asks it at the moment before each request leaves, retries included; only the elector opens it.
    It closes by its clock, so a process that was stopped, suspended or starved finds it closed without anybody's help.
    Once shut it stays shut. Reading or setting one attribute is atomic, so it needs no lock between threads.
    """

    def __init__(self, clock: Callable[[], float] = boot_clock) -> None:
        self._clock = clock
        self._deadline = -math.inf
        self._is_shut = False

    def open_until(self, deadline: float) -> None:
        """Let writes start before `deadline`, in seconds of the gate's clock."""
        self._deadline = deadline

    def shut(self) -> None:
        """Let no write start any more."""
        self._is_shut = True

    @property
    def is_open(self) -> bool:
        """Whether a write may start now."""
        return not self._is_shut and self._clock() < self._deadline

    def seconds_left(self) -> float:
        """Return the seconds for which writes are allowed from now on.

        Raises:
            NotLeadingError: no write may start.
        """
        left = self._deadline - self._clock()
        if left <= 0.0 or self._is_shut:
            raise NotLeadingError("nothing is written without the lease: another replica leads, or may by now")
        return left
