"""Runs the kopf operator in a thread of its own, and starts it again whenever it ends."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import kopf

logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0


class OperatorThread:
    """Keeps a kopf operator running until stopped.

    kopf ends its operator on many faults that pass (a broken line, a 5xx that lasts, a token not renewed yet), and on
    ending it cancels every task that was born on its loop meanwhile. In its own thread and loop it can do both without
    touching watches, cache, queue and binds. After each start kopf lists all pods anew, so nothing is missed; what
    vanished meanwhile is the resync's to find.
    """

    def __init__(
        self, registry: Callable[[], kopf.OperatorRegistry], settings: Callable[[], kopf.OperatorSettings]
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._stop = threading.Event()
        self._cancel: Callable[[], object] | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)
        self.restarts = 0

    def start(self) -> None:
        """Start the thread."""
        for name in ("kopf", "kopf.objects", "kopf.activities"):
            logging.getLogger(name).setLevel(logging.ERROR)
        self._thread.start()

    @property
    def ready(self) -> bool:
        """Whether an operator is up."""
        return self._ready.is_set()

    def stop(self) -> None:
        """Tell the operator to end; `join` waits for it."""
        self._stop.set()
        cancel = self._cancel
        if cancel is not None:
            with suppress(RuntimeError):  # Its loop is closed already.
                cancel()

    async def join(self, seconds: float) -> bool:
        """Wait for the thread's end without blocking the loop; False if it takes longer than `seconds`."""
        if self._thread.ident is None:
            return True
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join, seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._stop.is_set():
            started = time.monotonic()
            problem = "it returned"
            try:
                asyncio.run(self._operate())
            except BaseException as error:  # noqa: BLE001  whatever ends kopf, it is started again
                problem = f"{type(error).__name__}: {error}"
            finally:
                self._ready.clear()
            if self._stop.is_set():
                return
            self.restarts += 1
            if time.monotonic() - started >= _STEADY_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            logger.warning("kopf operator ended and is started again problem=%r pause=%.0fs", problem, pause)
            self._stop.wait(pause)
            pause = min(pause * 2, _MAX_PAUSE_SECONDS)

    async def _operate(self) -> None:
        # Not kopf's stop flag: what waits for it outlives an operator that fails, so the next would never start.
        task = asyncio.current_task()
        assert task is not None
        self._cancel = partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel)
        if self._stop.is_set():
            return
        await kopf.operator(
            registry=self._registry(),
            settings=self._settings(),
            clusterwide=True,
            standalone=True,
            ready_flag=self._ready,
        )
