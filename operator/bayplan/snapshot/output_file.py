"""The file of a snapshot: there is the whole of it, or what was there before."""

import gzip
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, cast

STDOUT: Final = "-"
"""The file name that stands for standard output."""
_GZIP: Final = ".gz"
_LEVEL: Final = 6


def write(name: str, pieces: Iterable[bytes]) -> None:
    """Write the pieces to the file, compressed by gzip if its name ends in .gz; only its owner may read it.

    They are written to a file beside it that takes its place when all of them are on the disk. What is no regular file,
    such as a pipe, is written to as it is.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    if name == STDOUT:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    path = Path(os.path.realpath(name))
    if path.exists() and not path.is_file():
        with path.open("wb") as opened:
            _write(opened, pieces, compressed=name.endswith(_GZIP))
        return
    with _replacing(path) as opened:
        _write(opened, pieces, compressed=name.endswith(_GZIP))


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    descriptor, beside = tempfile.mkstemp(prefix=f".{path.name[:64]}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            yield opened
            opened.flush()
            os.fsync(opened.fileno())
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _write(opened: IO[bytes], pieces: Iterable[bytes], *, compressed: bool) -> None:
    if not compressed:
        opened.writelines(pieces)
        return
    # Without a time, so that equal snapshots are equal files.
    with gzip.GzipFile(fileobj=opened, mode="wb", compresslevel=_LEVEL, filename="", mtime=0) as packed:
        for piece in pieces:
            cast("IO[bytes]", packed).write(piece)
