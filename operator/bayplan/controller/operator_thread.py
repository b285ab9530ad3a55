"""Runs the kopf operator in a thread of its own, and starts it again whenever it ends."""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress

import kopf

from bayplan.controller.api_access import KopfSessions
from bayplan.controller.handlers import build_registry
from bayplan.controller.handover import Handover

logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0
_END_SECONDS = 1.0


class OperatorThread:
    """Keeps a kopf operator running, on a loop that is kopf's alone.

    kopf ends its operator on many faults that pass (a broken line, a 5xx that lasts, a token not renewed yet), and on
    ending it cancels every task of its loop. Watches, binds and probes are on the scheduler's loop and go on. After
    each start kopf lists all pods anew; `on_restart` is called then, for what vanished meanwhile kopf does not tell.
    Events go to `take`, on the scheduler's loop.
    """

    def __init__(
        self,
        scheduler_names: Collection[str],
        sessions: KopfSessions,
        *,
        take: Callable[[kopf.RawEvent], None],
        on_restart: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._scheduler_names = scheduler_names
        self._sessions = sessions
        self._take = take
        self._on_restart = on_restart
        self._clock = clock
        self._sleep = sleep
        self._is_up = False
        self.restarts = 0

    def problem(self) -> str | None:
        """Why pods are not heard of, in constant words; None while an operator is up."""
        return None if self._is_up else "kopf is not running"

    async def run(self) -> None:
        """Run operators for ever; when cancelled, return once the last one ended, or after a second without it."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            started = self._clock()
            problem = await self._operate()
            self.restarts += 1
            if self._clock() - started >= _STEADY_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            logger.warning("kopf operator ended and is started again problem=%r pause=%.0fs", problem, pause)
            await self._sleep(pause)
            pause = min(pause * 2, _MAX_PAUSE_SECONDS)

    async def _operate(self) -> str:
        """Run one operator until it ends; return why it did."""
        loop = asyncio.get_running_loop()
        handover = Handover(loop, self._take, self._started)
        registry = build_registry(self._scheduler_names, self._sessions, handover)
        ended: asyncio.Future[str] = loop.create_future()

        def tell_end(problem: str) -> None:
            if not ended.done():
                ended.set_result(problem)

        def operate() -> None:
            problem = _run_operator(registry, handover.stop, type(loop))
            with suppress(RuntimeError):  # The scheduler's loop did not wait for it and is closed.
                loop.call_soon_threadsafe(tell_end, problem)

        # A daemon, so that the process can end although kopf does not.
        threading.Thread(target=operate, name="kopf", daemon=True).start()
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            handover.stop.set()
            await asyncio.wait([ended], timeout=_END_SECONDS)
            raise
        finally:
            self._is_up = False

    def _started(self) -> None:
        self._is_up = True
        if self.restarts:
            self._on_restart()


def _run_operator(
    registry: kopf.OperatorRegistry, stop: threading.Event, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> str:
    async def operate() -> None:
        try:
            await kopf.operator(registry=registry, clusterwide=True, standalone=True, stop_flag=stop)
        finally:
            # However it ended: a thread of kopf's waits for the flag, and the loop's end for that thread.
            stop.set()

    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(operate())
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  it is reported by who starts the next one
        return f"{type(error).__name__}: {error}"
    return "it returned"
