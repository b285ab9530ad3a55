"""Tells a task that is to end from one in which something was cancelled."""

import asyncio


def is_being_cancelled() -> bool:
    """Return whether the current task was told to end.

    A CancelledError that a library comes up with in any other task is an error like others: who takes it for the end
    leaves work undone that nobody looks after.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
