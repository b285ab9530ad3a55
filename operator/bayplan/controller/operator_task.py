"""Runs the kopf operator as a task beside the scheduler's, and starts it again whenever it ends."""

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import kopf
from kopf._core.reactor.inventory import ResourceMemories, ResourceMemory  # What `memories` must be is not public.

logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0

Work = Coroutine[Any, Any, Any] | Generator[Any, None, Any]
_inside_kopf = contextvars.ContextVar("inside_kopf", default=False)


class OperatorTask:
    """Keeps a kopf operator running until stopped.

    kopf ends its operator on many faults that pass (a broken line, a 5xx that lasts, a token not renewed yet), and on
    ending it cancels every task born on its loop meanwhile that it is not told to leave alone. It is told to leave
    alone all that it did not spawn itself, so watches, binds and probes go on. After each start kopf lists all pods
    anew, so nothing is missed; what vanished meanwhile is the resync's to find.

    `keep_signals` is called after each start: kopf takes SIGTERM and SIGINT for itself, and here they are not its.
    """

    def __init__(
        self,
        registry: Callable[[], kopf.OperatorRegistry],
        settings: Callable[[], kopf.OperatorSettings],
        *,
        keep_signals: Callable[[], None],
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._keep_signals = keep_signals
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self.restarts = 0

    def start(self) -> None:
        """Start the operator."""
        for name in ("kopf", "kopf.objects", "kopf.activities"):
            logging.getLogger(name).setLevel(logging.ERROR)
        if not self._stopping:
            self._task = asyncio.create_task(self._run(), name="kopf")

    @property
    def ready(self) -> bool:
        """Whether an operator is up."""
        return self._ready.is_set()

    def stop(self) -> None:
        """Tell the operator to end; `join` waits for it."""
        self._stopping = True
        if self._task is not None:
            self._task.cancel()

    async def join(self, seconds: float) -> bool:
        """Wait for the operator's end; False if it takes longer than `seconds`."""
        if self._task is None:
            return True
        done, _ = await asyncio.wait([self._task], timeout=seconds)
        return bool(done)

    async def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            started = time.monotonic()
            problem = "it returned"
            try:
                await self._operate()
            except (Exception, asyncio.CancelledError) as error:
                # kopf may also end by a cancellation of its own making.
                if self._stopping:
                    raise
                problem = f"{type(error).__name__}: {error}"
            finally:
                self._ready.clear()
            self.restarts += 1
            if time.monotonic() - started >= _STEADY_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            logger.warning("kopf operator ended and is started again problem=%r pause=%.0fs", problem, pause)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _MAX_PAUSE_SECONDS)

    async def _operate(self) -> None:
        # Not kopf's stop flag: what waits for it outlives an operator that fails, so the next would never start.
        with _births_marked():
            tasks = await kopf.spawn_tasks(
                registry=self._registry(),
                settings=self._settings(),
                clusterwide=True,
                standalone=True,
                ready_flag=self._ready,
                memories=_NothingRemembered(),
            )
            self._keep_signals()
            await kopf.run_tasks(tasks, ignored=_AllOthers())


class _NothingRemembered(ResourceMemories):
    """Forgets each object between its events.

    kopf keeps a record of every object it has seen until a watch says it is gone, which no watch says of pods that go
    while there is none, and WatchFilter says of no bound pod. Spying handlers use none of it.
    """

    async def recall(
        self,
        raw_body: kopf.RawBody,
        *,
        memobase: Any = None,  # noqa: ANN401  kopf passes what its users gave it
        noticed_by_listing: bool = False,
        ephemeral: bool = False,
    ) -> ResourceMemory:
        """Give a new record."""
        return await super().recall(raw_body, memobase=memobase, noticed_by_listing=noticed_by_listing, ephemeral=True)


class _KopfTask(asyncio.Task[Any]):
    """A task that kopf spawned, itself or by another of its tasks."""


class _AllOthers(Collection["asyncio.Task[Any]"]):
    """Every task of the running loop that is not kopf's, now and later: what kopf is told to leave alone."""

    def __contains__(self, task: object) -> bool:
        return isinstance(task, asyncio.Task) and not isinstance(task, _KopfTask)

    def __iter__(self) -> Iterator["asyncio.Task[Any]"]:
        return (task for task in asyncio.all_tasks() if task in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@contextmanager
def _births_marked() -> Iterator[None]:
    """Make tasks spawned, directly or by one another, from inside the block a _KopfTask.

    A task inherits the context of its creator, so a context variable tells them from tasks born at the same time
    elsewhere on the loop.
    """
    loop = asyncio.get_running_loop()

    def factory(
        loop: asyncio.AbstractEventLoop,
        work: Work,
        **options: Any,  # noqa: ANN401  whatever this Python's create_task passes on
    ) -> asyncio.Task[Any]:
        context = options.get("context")
        inside = _inside_kopf.get() if context is None else context.get(_inside_kopf, False)
        return (_KopfTask if inside else asyncio.Task)(work, loop=loop, **options)

    previous = loop.get_task_factory()
    loop.set_task_factory(factory)
    token = _inside_kopf.set(True)
    try:
        yield
    finally:
        with suppress(ValueError):  # The block was left in another context.
            _inside_kopf.reset(token)
        loop.set_task_factory(previous)


__all__ = ["OperatorTask"]
