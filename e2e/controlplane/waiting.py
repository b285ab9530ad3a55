"""Waiting for something to become true, with a deadline and a reason."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
POLL_SECONDS = 0.05


def wait_until(
    check: Callable[[], T | None],
    what: str,
    *,
    timeout_seconds: float = 30.0,
    detail: Callable[[], str] = str,
) -> T:
    """Calls `check` until it returns something true, and returns that.

    Raises:
        TimeoutError: `what` did not happen in time; `detail()` is added to the message.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what} did not happen within {timeout_seconds:g} s {detail()}".rstrip())
        time.sleep(POLL_SECONDS)
