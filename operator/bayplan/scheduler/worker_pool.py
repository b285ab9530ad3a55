"""Runs jobs on a few long-lived tasks: that costs less per job than a task each, and bounds how many run at once."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from math import inf

from bayplan.scheduler.cancellation import is_being_cancelled

logger = logging.getLogger(__name__)

Job = Callable[[], Awaitable[object]]


class _Worker:
    """A task of the pool; `since` is when its job began, in seconds of the loop's clock, None while it has none."""

    __slots__ = ("aside", "since", "task")

    def __init__(self) -> None:
        self.since: float | None = None
        self.aside = False
        self.task: asyncio.Task[None] | None = None


class WorkerPool:
    """Runs the jobs that `take` gives, up to `size` at once; whoever has a new job calls `wake`.

    A job that raises is logged and costs nothing else. `settled` is called whenever a worker has nothing to do, `ended`
    with the pool's name when one ends although nobody stopped the pool, which nothing it runs can cause.
    """

    def __init__(
        self,
        name: str,
        size: int,
        take: Callable[[], Job | None],
        settled: Callable[[], None],
        ended: Callable[[str], None],
    ) -> None:
        self._name = name
        self._size = size
        self._take = take
        self._settled = settled
        self._ended = ended
        self._slow_seconds = inf
        self._max_slow = 0
        self._made_room: Callable[[], None] = lambda: None
        self._idle: deque[asyncio.Future[None]] = deque()
        self._workers: set[_Worker] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._stopping = False
        self.busy = 0
        """Jobs that hold one of the places."""
        self.slow = 0
        """Jobs under way that hold none."""

    @property
    def unfinished(self) -> int:
        """Jobs under way."""
        return self.busy + self.slow

    def put_aside_after(self, seconds: float, *, at_most: int, made_room: Callable[[], None]) -> None:
        """Have jobs that take longer, so many at once, hold no place, and others run in their stead.

        `made_room` is called whenever places became free that way.
        """
        self._slow_seconds, self._max_slow, self._made_room = seconds, at_most, made_room

    def start(self) -> None:
        """Start the workers on the running loop."""
        self._stopping = False
        for _ in range(self._size):
            self._add()

    def wake(self, number: int = 1) -> None:
        """Have so many idle workers look for a job; where none is idle, slow jobs make room in time."""
        idle = self._idle
        while number and idle:
            waiter = idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                number -= 1
        if number and self._alarm is None and self._max_slow and self._workers:
            self._alarm = asyncio.get_running_loop().call_later(self._slow_seconds, self._put_aside)

    @property
    def idle(self) -> int:
        """Workers that wait for a job."""
        return len(self._idle)

    async def stop(self) -> None:
        """End the workers, and with them the jobs under way."""
        self._stopping = True
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        tasks = [worker.task for worker in self._workers if worker.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._idle.clear()

    def _add(self) -> None:
        worker = _Worker()
        self._workers.add(worker)
        task = worker.task = asyncio.create_task(self._run(worker), name=f"{self._name}-{len(self._workers)}")
        task.add_done_callback(lambda _: self._leave(worker))

    def _leave(self, worker: _Worker) -> None:
        self._workers.discard(worker)
        if not (self._stopping or worker.aside):
            self._ended(self._name)

    def _put_aside(self) -> None:
        """Give the places of slow jobs to others; look again while there may be jobs that wait."""
        self._alarm = None
        loop = asyncio.get_running_loop()
        latest, before = loop.time() - self._slow_seconds, self.slow
        for worker in [each for each in self._workers if each.since is not None and not each.aside]:
            if self.slow < self._max_slow and worker.since is not None and worker.since <= latest:
                worker.aside = True
                self.busy -= 1
                self.slow += 1
                self._add()
        if self.slow > before:
            self._made_room()
        if not self._idle:
            self._alarm = loop.call_later(self._slow_seconds, self._put_aside)

    async def _run(self, worker: _Worker) -> None:
        loop = asyncio.get_running_loop()
        while not worker.aside:
            job = self._take()
            if job is None:
                waiter: asyncio.Future[None] = loop.create_future()
                self._idle.append(waiter)
                self._settled()
                await waiter
                continue
            worker.since = loop.time()
            self.busy += 1
            try:
                await job()
            except (Exception, asyncio.CancelledError):
                if is_being_cancelled():
                    raise
                # A worker must outlive any job: without it the queue behind it would stand still.
                logger.exception("an API call failed unexpectedly")
            finally:
                worker.since = None
                if worker.aside:
                    self.slow -= 1
                else:
                    self.busy -= 1
        self._settled()
