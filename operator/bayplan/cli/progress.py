"""A bar on the terminal while many pods are decided, on standard error so that the output stays what it is."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

AFTER_SECONDS: Final = 1.0
"""Who waits no longer than this sees no bar."""
_EVERY: Final = 64


def with_progress(
    steps: Callable[[], T | None], total: int, *, hidden: bool = False, after_seconds: float = AFTER_SECONDS
) -> Iterator[T]:
    """Yield what `steps` returns until that is None; on a terminal a bar shows how many of `total` there were.

    It appears after `after_seconds` and is gone at the end. Who writes to the terminal meanwhile has it `hidden`.
    """
    if hidden or not sys.stderr.isatty() or total <= _EVERY:
        while (step := steps()) is not None:
            yield step
        return
    from rich.console import Console  # noqa: PLC0415  slow to import, and not needed by programs
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("Deciding"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(file=sys.stderr), transient=True, auto_refresh=False)
    task = bar.add_task("", total=total)
    started, done, is_shown = time.monotonic(), 0, False
    try:
        while (step := steps()) is not None:
            yield step
            done += 1
            if done % _EVERY == 0 and time.monotonic() - started > after_seconds:
                if not is_shown:
                    bar.start()
                    is_shown = True
                bar.update(task, completed=min(done, total), refresh=True)
    finally:
        if is_shown:
            bar.stop()
