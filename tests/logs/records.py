"""Records as loggers make them, and streams that tests read."""

import io
import logging
import sys
import threading

import pytest

from bayplan.logs.line_writer import LineWriter

NAME = "bayplan.scene"


def record(template, *arguments, level=logging.INFO, error=None, name=NAME, line=7):
    """A record as `logger.log(level, template, *arguments)` makes it in one place of the code."""
    exc_info = (type(error), error, error.__traceback__) if error is not None else None
    return logging.LogRecord(name, level, f"/src/scheduler/{name}.py", line, template, arguments, exc_info)


def raised(error):
    """The exception with a traceback, as `except` has it."""
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


class Stalled(io.StringIO):
    """A stream whose reader stands still until it goes on."""

    def __init__(self):
        super().__init__()
        self.reached = threading.Event()
        self.goes_on = threading.Event()

    def write(self, text):
        self.reached.set()
        assert self.goes_on.wait(30)
        return super().write(text)


def writer_to(stream, **options):
    """A writer of plain messages."""
    writer = LineWriter(lambda: stream, **options)
    writer.setFormatter(logging.Formatter("%(message)s"))
    return writer


def size_of(line):
    """What a line takes until it is written."""
    return sys.getsizeof(f"{line}\n")
