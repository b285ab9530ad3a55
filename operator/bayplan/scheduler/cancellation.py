"""Tasks that nobody awaits: told to end they end, and what escapes any other is logged."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

logger = logging.getLogger(__name__)


def is_being_cancelled() -> bool:
    """Return whether the current task was told to end.

    A CancelledError that a library comes up with in any other task is an error like others: who takes it for the end
    leaves work undone that nobody looks after.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@dataclass(eq=False)
class Tasks:
    """Work that goes on beside all else; what escapes it is logged as `message`, so that nothing ends unheard.

    `ended` is called at the end of each, `broken` if somebody else ended one.
    """

    name: str
    message: str
    ended: Callable[[], None] = field(default=lambda: None, kw_only=True)
    broken: Callable[[], None] = field(default=lambda: None, kw_only=True)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    def __len__(self) -> int:
        """Return how many are not at their end."""
        return len(self._tasks)

    def start(self, work: Callable[[], Awaitable[object]], leave: Callable[[], None] = lambda: None) -> None:
        """Begin work of its own; `leave` is called at its end, even if it never ran."""
        task = asyncio.create_task(self._logged(work), name=self.name)
        self._tasks.add(task)
        task.add_done_callback(partial(self._done, leave))

    def cancel(self) -> set[asyncio.Task[None]]:
        """Tell all to end, and give them."""
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            task.cancel()
        return tasks

    async def stop(self) -> None:
        """End all."""
        await asyncio.gather(*self.cancel(), return_exceptions=True)

    async def _logged(self, work: Callable[[], Awaitable[object]]) -> None:
        try:
            await work()
        except (Exception, asyncio.CancelledError):
            if is_being_cancelled():
                raise
            logger.exception(self.message)

    def _done(self, leave: Callable[[], None], task: asyncio.Task[None]) -> None:
        is_known = task in self._tasks
        self._tasks.discard(task)
        leave()
        self.ended()
        if is_known and task.cancelled():
            self.broken()
