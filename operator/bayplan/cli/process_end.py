"""How a process ends that has had an HTTP client."""

import logging
import os
import sys
from contextlib import suppress
from typing import NoReturn


def end_process(code: int) -> NoReturn:
    """End with `code` and without taking the interpreter apart (ADR 17); `bayplan run` and benchmarks end so.

    All parts have ended by now, but threads of libraries go on: the HTTP client's, and kopf's if it hangs. One that
    wants the interpreter while that is taken apart aborts the process, or is waited for.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
