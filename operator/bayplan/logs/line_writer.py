"""Sets up the log of the process, whose lines are written beside the work: nobody waits for who reads them."""

import logging
import logging.config
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TextIO

from bayplan.logs.formats import FORMATS, V4, LoggingFormat, caller, level_of

LINES_PER_MINUTE: Final = 60
"""So many lines of one place are written in a minute; what is more is counted."""

_WINDOW_SECONDS: Final = 60.0


@dataclass(slots=True)
class _Window:
    ends: float
    lines: int = 0


@dataclass(slots=True)
class LineLimit:
    """Lets LINES_PER_MINUTE lines of each place through from its first one on, and counts those that are left out.

    Places are lines of code, so there are only so many. Times are in seconds of one clock. Whoever asks takes what
    `left_out` has first, when that is `due`.
    """

    _windows: dict[str, _Window] = field(default_factory=dict)
    _due: float | None = None

    def admits(self, place: str, now: float) -> bool:
        """Count a line, and return whether it may be written."""
        window = self._windows.get(place)
        if window is None or now >= window.ends:
            window = self._windows[place] = _Window(now + _WINDOW_SECONDS)
        window.lines += 1
        if window.lines <= LINES_PER_MINUTE:
            return True
        self._due = window.ends if self._due is None else min(self._due, window.ends)
        return False

    def due(self) -> float | None:
        """Return when `left_out` has something to tell; None while nothing was left out."""
        return self._due

    def left_out(self, now: float) -> Iterator[tuple[str, int]]:
        """Emit the places whose minute is over, with the number of lines left out, each once."""
        self._due = None
        for place, window in list(self._windows.items()):
            if window.lines <= LINES_PER_MINUTE:
                continue
            if now >= window.ends:
                del self._windows[place]
                yield place, window.lines - LINES_PER_MINUTE
            else:
                self._due = window.ends if self._due is None else min(self._due, window.ends)


KEPT_BYTES: Final = 8 * 2**20
"""What lines that are not written yet take at most; those that come then are dropped."""

_GATHER_SECONDS: Final = 0.02
"""So long lines are gathered: a write gives the interpreter away, and each would cost a busy loop some milliseconds."""

_FLUSH_SECONDS: Final = 2.0
"""So long the end waits for who reads the log."""

logger = logging.getLogger(__name__)


class LineWriter(logging.Handler):
    """Writes formatted lines to a stream, by itself until `start` and in a thread of its own from then on.

    The event loop relies on it that a reader that is slow or stands still costs it nothing: lines are dropped when
    KEPT_BYTES wait, and the next line that is written tells how many. Lines from INFO on keep to a LineLimit; those
    that `-v` asks for are all written. `stream` is asked for at each write.
    """

    def __init__(
        self,
        stream: Callable[[], TextIO] = lambda: sys.stderr,
        *,
        clock: Callable[[], float] = time.monotonic,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        super().__init__()
        self._stream = stream
        self._clock = clock
        self._kept_bytes = kept_bytes
        self._limit = LineLimit()
        # One that the same thread may take again: a finalizer may log while a line is being added.
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._lines: list[str] = []
        self._bytes = 0
        self._dropped = 0
        self._urgent = threading.Event()
        self._closed = False

    def start(self) -> None:
        """Have a thread write from now on."""
        with self._changed:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="log", daemon=True)
                self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record: format it and have it written, or count it among those that are not."""
        try:
            with self._changed:
                if record.levelno >= logging.INFO and not self._admits(record):
                    return
            self._put(f"{self.format(record)}\n")
        except Exception as error:  # noqa: BLE001  as every handler of the standard library
            # Not handleError: it writes to standard error itself, and would wait for who reads it.
            text = "a line could not be formatted place=%s error=%r"
            self._put(self._line(logging.ERROR, text, caller(record), f"{type(error).__name__}: {error}"))

    def flush(self) -> None:
        """Wait until what was taken is written, or for two seconds."""
        until = time.monotonic() + _FLUSH_SECONDS
        with self._changed:
            while self._thread is not None and self._thread.is_alive() and self._bytes:
                self._urgent.set()
                if not self._changed.wait(max(until - time.monotonic(), 0.0)) and time.monotonic() >= until:
                    return

    def close(self) -> None:
        """Write what was taken, with how many lines were left out in the last minute, and end the thread."""
        with self._changed:
            self._tell_left_out(math.inf)
        self.flush()
        with self._changed:
            self._closed = True
            self._urgent.set()
            self._changed.notify_all()
        super().close()

    def _admits(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        due = self._limit.due()
        if due is not None and now >= due:
            self._tell_left_out(now)
        if self._limit.admits(caller(record), now):
            return True
        if due is None:
            # The thread is to wake when the minute is over.
            self._changed.notify_all()
        return False

    def _tell_left_out(self, now: float) -> None:
        for place, lines in self._limit.left_out(now):
            self._put(self._line(logging.WARNING, "lines like others were left out place=%s lines=%d", place, lines))

    def _put(self, line: str) -> None:
        with self._changed:
            if self._thread is None:
                self._write(line)
                return
            size = sys.getsizeof(line)
            if self._bytes + size > self._kept_bytes:
                self._dropped += 1
                return
            self._lines.append(line)
            self._bytes += size
            if len(self._lines) == 1:
                self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._lines and not self._closed and not self._is_due():
                    due = self._limit.due()
                    self._changed.wait(None if due is None else max(due - self._clock(), 0.0))
                if self._closed and not self._lines:
                    return
                if self._is_due():
                    self._tell_left_out(self._clock())
            self._urgent.wait(_GATHER_SECONDS)
            with self._changed:
                self._urgent.clear()
                lines, self._lines = self._lines, []
                size = self._bytes
            self._write("".join(lines))
            with self._changed:
                self._bytes -= size
                dropped, self._dropped = self._dropped, 0
                if dropped:
                    text = "lines were dropped because standard error takes them too slowly lines=%d"
                    self._put(self._line(logging.WARNING, text, dropped))
                self._changed.notify_all()

    def _is_due(self) -> bool:
        due = self._limit.due()
        return due is not None and self._clock() >= due

    def _line(self, level: int, text: str, *arguments: object) -> str:
        record = logger.makeRecord(logger.name, level, __file__, 0, text, arguments, None)
        return f"{self.format(record)}\n"

    def _write(self, text: str) -> None:
        # Nobody could be told: whoever reads the log is gone, or its disk is full.
        with suppress(OSError, ValueError):
            stream = self._stream()
            stream.write(text)
            stream.flush()


_LIBRARIES: Final = {
    # It has a line for each event of each pod, and what ends it is told by who starts it again.
    "kopf": logging.ERROR,
    # Their lines below a warning show requests and answers whole, tokens included.
    "aiohttp": logging.WARNING,
    "asyncio": logging.WARNING,
    "kubernetes": logging.WARNING,
    "pyreqwest": logging.WARNING,
    "urllib3": logging.WARNING,
}


class _WithoutRetries(logging.Filter):
    """Leaves out kopf's errors about requests that it tries again, unless our own such lines are written."""

    def filter(self, record: logging.LogRecord) -> bool:
        is_retry = record.name.startswith("kopf") and "failed; will retry: " in str(record.msg)
        return not is_retry or logging.getLogger("bayplan").isEnabledFor(V4)


def set_up_logging(logging_format: LoggingFormat, verbosity: int) -> None:
    """Have everything that this process logs written to standard error, in one format.

    `verbosity` is kube-scheduler's `-v` and counts for bayplan's own lines. Libraries keep to warnings, other loggers,
    such as those of plugins from outside, to INFO. Warnings of Python are lines, too, and so are exceptions that end a
    thread or that nobody can catch.
    """
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"line": {"()": FORMATS[logging_format]}},
            "filters": {"retries": {"()": _WithoutRetries}},
            "handlers": {"stderr": {"()": LineWriter, "formatter": "line", "filters": ["retries"]}},
            "root": {"level": logging.INFO, "handlers": ["stderr"]},
            "loggers": {
                "bayplan": {"level": level_of(verbosity)},
                **{name: {"level": level} for name, level in _LIBRARIES.items()},
            },
        }
    )
    logging.captureWarnings(True)
    threading.excepthook = _tell_thread_ended
    sys.unraisablehook = _tell_unraisable


def write_aside() -> None:
    """Have lines written by a thread from now on, so that the event loop never waits for who reads them."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, LineWriter):
            handler.start()


def _tell_thread_ended(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
        logger.error(
            "a thread ended with an exception thread=%r",
            ended.thread.name if ended.thread is not None else "",
            exc_info=ended.exc_value,
        )


def _tell_unraisable(ignored: "sys.UnraisableHookArgs") -> None:
    # Nothing may keep the object, or it would live again: only its name is taken.
    what = ignored.err_msg or "Exception ignored in"
    name = getattr(ignored.object, "__qualname__", type(ignored.object).__name__)
    logger.error("an exception could not be raised what=%r object=%r", what, name, exc_info=ignored.exc_value)
