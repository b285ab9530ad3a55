"""Tells a task that is to end from one in which something was cancelled, and logs what escapes any other."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)


def is_being_cancelled() -> bool:
    """Return whether the current task was told to end.

    A CancelledError that a library comes up with in any other task is an error like others: who takes it for the end
    leaves work undone that nobody looks after.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def logged(work: Callable[[], Awaitable[object]], message: str) -> None:
    """Do work in a task that nobody awaits: what escapes it is logged as `message`, unless the task was told to end."""
    try:
        await work()
    except (Exception, asyncio.CancelledError):
        if is_being_cancelled():
            raise
        logger.exception(message)
