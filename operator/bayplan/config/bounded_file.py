"""Reads files that a configuration or a command line names: so many bytes at most, and without waiting for ever."""

import errno
import os
import select
import stat
from pathlib import Path
from typing import Final

WAIT_SECONDS: Final = 60.0
"""How long a pipe may be silent while somebody holds it open for writing."""

_CHUNK: Final = 1 << 16


class UnreadableFileError(ValueError):
    """Raised when a file cannot be read; the message says why, without the file's name."""


def read_file(path: Path, limit: int, *, only_regular: bool = False, wait_seconds: float = WAIT_SECONDS) -> bytes:
    """Return the first `limit` bytes at `path`, which may be a file, a terminal or a pipe that somebody writes to.

    With `only_regular` it must be a file.

    Raises:
        UnreadableFileError: it cannot be opened or read, or it is a pipe that has no writer or stays silent.
    """
    try:
        # Opened without waiting: a pipe that nobody writes to would not open otherwise.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            kind = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(kind):
                raise UnreadableFileError(f"cannot be read: {os.strerror(errno.EISDIR)}")
            if only_regular and not stat.S_ISREG(kind):
                raise UnreadableFileError("is no regular file")
            data = _read(descriptor, limit, wait_seconds)
        finally:
            os.close(descriptor)
    except UnreadableFileError:
        raise
    except OSError as error:
        raise UnreadableFileError(f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        # A name with a zero byte.
        raise UnreadableFileError(f"cannot be read: {error}") from None
    if not data and stat.S_ISFIFO(kind):
        raise UnreadableFileError("is a pipe that nobody writes to")
    return data


def _read(descriptor: int, limit: int, wait_seconds: float) -> bytes:
    data = bytearray()
    while len(data) < limit:
        try:
            chunk = os.read(descriptor, min(_CHUNK, limit - len(data)))
        except BlockingIOError:
            # People may take their time.
            timeout = None if os.isatty(descriptor) else wait_seconds
            if not select.select([descriptor], [], [], timeout)[0]:
                raise UnreadableFileError(f"is a pipe that was silent for {wait_seconds:g} s") from None
            continue
        if not chunk:
            break
        data += chunk
    return bytes(data)
