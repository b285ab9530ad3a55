"""Sets up the process's log: one writer for our lines and those of libraries."""

import logging
import logging.config
import sys
import threading
from typing import Final

from bayplan.logs.formats import FORMATS, V4, LoggingFormat, level_of
from bayplan.logs.line_writer import LineWriter

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

logger = logging.getLogger(__name__)


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
