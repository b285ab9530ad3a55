"""What a process of bayplan does at its begin and its end, over the network, and on the terminal."""

import asyncio
import ctypes
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import msgspec

from bayplan.cli import BAD_INPUT, FAILED, tell_line

if TYPE_CHECKING:
    from rich.progress import Progress

# mallopt(3), <malloc.h>
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8

_TRIM_BYTES: Final = 128 << 10
_MMAP_BYTES: Final = 64 << 10


def return_large_blocks() -> bool:
    """Have each block of 64 KiB and more go back to the system when it is freed (ADR 20); `bayplan run` begins so.

    glibc lets its thresholds follow the largest block that was freed, up to 32 MiB. From then on large blocks come from
    the heap, and the small ones that stay between them hold all of it. pyreqwest has an allocator of its own, mimalloc,
    which gives back what is free when it is next asked for memory: in a standby, hardly ever. It reads its settings
    when it is imported. Return False where the C library has no such settings: musl and macOS have allocators of their
    own.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "0")
    os.environ.setdefault("MIMALLOC_GENERIC_COLLECT", "1000")
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    settings = ((_M_MMAP_THRESHOLD, _MMAP_BYTES), (_M_TRIM_THRESHOLD, _TRIM_BYTES), (_M_ARENA_MAX, 1))
    return all(mallopt(name, value) for name, value in settings)


_FLUSH_SECONDS: Final = 3.0
"""So long the end waits for who reads log and output."""


def end_process(code: int) -> NoReturn:
    """End with `code` and without taking the interpreter apart (ADR 17); each command that asked an API server ends so.

    All parts have ended by now, but threads of libraries go on: the HTTP client's, and kopf's if it hangs. One that
    wants the interpreter while that is taken apart aborts the process, or is waited for. What is still to be written is
    waited for three seconds: who reads it may stand still.
    """
    writing = threading.Thread(target=_write_all, name="end", daemon=True)
    writing.start()
    writing.join(_FLUSH_SECONDS)
    os._exit(code)


def _write_all() -> None:
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()


T = TypeVar("T")

AFTER_SECONDS: Final = 1.0
"""Who waits no longer than this sees no bar."""
_EVERY: Final = 64


def progress_bar(text: str, *, auto_refresh: bool) -> "Progress":
    """Return a bar on standard error, which is to be a terminal, with how many are done and how long the rest takes."""
    from rich.console import Console  # noqa: PLC0415  slow to import, and not needed by programs
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn(text), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # What a thread of its own draws need not be smooth.
    return Progress(
        *columns, console=Console(file=sys.stderr), transient=True, auto_refresh=auto_refresh, refresh_per_second=2
    )


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
    bar = progress_bar("Deciding", auto_refresh=False)
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


def answer_or_end(question: Coroutine[Any, Any, Any], kind: type | None = None) -> Any:  # noqa: ANN401 - of the kind
    """Return what is asked for, JSON read as of a kind if that is given; where there is no answer, end with a line."""
    from bayplan.api.errors import CredentialsError  # noqa: PLC0415
    from bayplan.client.errors import CannotLogInError, ClientError  # noqa: PLC0415

    code = FAILED
    try:
        answer = asyncio.run(question)
        return answer if kind is None else msgspec.json.decode(answer, type=kind)
    except (ClientError, CredentialsError) as error:
        tell_line(str(error))
        code = BAD_INPUT if isinstance(error, CannotLogInError | CredentialsError) else FAILED
    except msgspec.ValidationError as error:
        tell_line(f"the scheduler is of another version, its answer is not understood: {error}; try -o json")
    sys.exit(code)
