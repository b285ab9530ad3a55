"""Restarts of the API server, beside everything else."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from e2e.controlplane.plane import ControlPlane


class ApiServerRestarts:
    """Kills the API server and starts it again, from a thread that lives as long as it: the kernel ends both together.

    `times` are when each began and when it was over, in seconds of `clock`.
    """

    def __init__(self, plane: ControlPlane, clock: Callable[[], float]) -> None:
        self.times: list[tuple[float, float]] = []
        self._plane = plane
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="apiserver")

    async def restart(self) -> float:
        """Restarts it, and returns when it is ready, with the seconds that took."""
        began = self._clock()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._plane.restart_apiserver)
        ended = self._clock()
        self.times.append((began, ended))
        return ended - began

    def close(self) -> None:
        """Lets the thread end, after the control plane has."""
        self._thread.shutdown()
