"""Runs calls as tasks of their own, each as soon as it has its turn."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from bayplan.scheduler.cancellation import logged
from bayplan.scheduler.turns import SLOW_SECONDS, Turn, Turns


class TurnTasks(Turns):
    """Turns whose calls are jobs, each in a task that begins with its first turn; the dispatcher runs all by it.

    `broken` is called when somebody else ended a task of it.
    """

    def __init__(
        self,
        name: str,
        size: int,
        *,
        limit: Callable[[int], int] | None = None,
        slow_seconds: float = SLOW_SECONDS,
        freed: Callable[[], None] = lambda: None,
        broken: Callable[[str], None] = lambda name: None,
    ) -> None:
        super().__init__(size, limit=limit, slow_seconds=slow_seconds, freed=freed)
        self._name = name
        self._broken = broken
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def tasks(self) -> int:
        """Tasks that began and are not at their end, between two tries or not."""
        return len(self._tasks)

    @property
    def unfinished(self) -> int:
        """Calls that wait for their first turn, and tasks that are not at their end."""
        return self.waiting + self.held + len(self._tasks)

    def start(self, namespace: str, job: Callable[[Turn], Awaitable[object]], rank: int = 0) -> Turn:
        """Run a job in a task of its own as soon as it may send its first request; one that raises is logged.

        Whoever leaves the turn before it began has the job forgotten.
        """
        turn = Turn(self, namespace, rank)
        self.ask(turn, lambda: self._run(job, turn))
        return turn

    async def stop(self) -> None:
        """Forget what waits, and end what is under way."""
        while self._tasks or self.waiting or self.held:
            self.give_up_all()
            tasks, self._tasks = self._tasks, set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _run(self, job: Callable[[Turn], Awaitable[object]], turn: Turn) -> None:
        task = asyncio.create_task(logged(lambda: job(turn), "an API call failed unexpectedly"), name=self._name)
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, turn))

    def _ended(self, turn: Turn, task: asyncio.Task[None]) -> None:
        is_known = task in self._tasks
        self._tasks.discard(task)
        turn.leave()
        self._freed()
        if is_known and task.cancelled():
            self._broken(self._name)
