"""How a process ends that has had an HTTP client."""

import logging
import os
import sys
import threading
from contextlib import suppress
from typing import Final, NoReturn

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
