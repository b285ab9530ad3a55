"""Reads a configuration file: so many bytes of it, as plain values, where its fields stand, and whether it changed."""

import errno
import os
import re
import select
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

from bayplan.config.bounded_yaml import MalformedYAMLError, Members, RefusedYAMLError, Rules, YAMLPlace, yaml_documents
from bayplan.config.errors import ConfigurationError, FieldError, Place, Remark, child, quote

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


MAX_BYTES: Final = 1024 * 1024
"""Largest file, in bytes: what a ConfigMap can hold."""
MAX_VALUES: Final = 20_000
"""Most values in a document, counting those behind aliases each time."""
MAX_DEPTH: Final = 64
"""Deepest nesting."""

_ESCAPE: Final = re.compile(r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)", re.DOTALL | re.IGNORECASE)

_SEGMENT: Final = re.compile(r'\.?([A-Za-z0-9_\-]{1,64})|(\[[0-9]+\])|(\["(?:[^"\\]|\\.)*"\])')
# As many values as the largest of the files may hold. Mistakes are told where a file is read.
_RULES: Final = Rules(MAX_DEPTH, 20_000_000, lambda _place, _key: None, max_aliased=400_000)
AnyRemark = TypeVar("AnyRemark", bound=Remark)


def read_data(path: Path, *, only_regular: bool = False) -> bytes:
    """Return what `parse_document` takes: as much of the file at `path` as shows whether it is too large.

    A pipe is read too, unless `only_regular`.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    try:
        return read_file(path, MAX_BYTES + 1, only_regular=only_regular)
    except UnreadableFileError as error:
        raise ConfigurationError([FieldError("", str(error))], file=str(path)) from None


def parse_document(data: bytes, errors: list[FieldError]) -> dict[str, Any]:
    """Return the object in `data`; a repeated key goes to `errors` and its last value counts.

    Raises:
        ConfigurationError: it is too large, is no UTF-8, is no YAML or JSON, holds several documents or none, or no
            object.
    """
    if len(data) > MAX_BYTES:
        raise _error(f"is larger than {MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _error(f"is not UTF-8 text: byte {error.start} is wrong") from None
    if text.lstrip().startswith("{"):
        # The one thing of JSON that YAML does not have: characters past 16 bits escaped as surrogate pairs.
        text = _ESCAPE.sub(_join_surrogates, text)

    def note(at: YAMLPlace, key: str | None) -> None:
        if key is None:
            errors.append(FieldError(at.container, "map merge requires map or sequence of maps as the value", at))
        else:
            message = f"line {at.line}: key {quote(key)} already set in map"
            errors.append(FieldError(child(at.container, key), message, at))

    rules = Rules(MAX_DEPTH, MAX_VALUES, note, one_document=True)
    try:
        documents = [value for _, value in yaml_documents(text, rules)]
    except MalformedYAMLError as error:
        raise _error(f"is neither YAML nor JSON: {error}", place=error.place) from None
    except RefusedYAMLError as error:
        at = error.place
        raise _error(f"line {at.line}: {error}", at.container, at) from None
    if documents in ([], [None]):
        raise _error("is empty")
    if not isinstance(documents[0], dict):
        raise _error("must be an object with apiVersion and kind")
    return documents[0]


def _join_surrogates(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[0]
    return chr(0x10000 + ((int(escape[1], 16) - 0xD800) << 10) + int(escape[2], 16) - 0xDC00)


def _error(message: str, path: str = "", place: Place | None = None) -> ConfigurationError:
    return ConfigurationError([FieldError(path, message, place)])


class Positions:
    """The places of the fields of documents; from a document on that cannot be read nothing has one."""

    def __init__(self, data: bytes) -> None:
        self._documents: list[Any] = []
        self._members: Members = {}
        # Then one message tells of the whole file, and of the line.
        with suppress(MalformedYAMLError, RefusedYAMLError, UnicodeDecodeError):
            for _, value in yaml_documents(data.decode("utf-8-sig"), _RULES, self._members):
                self._documents.append(value)

    def place(self, path: str, document: int = 1) -> Place | None:
        """Return where the field at `path` begins: its key, or the element of a list. Documents count from 1.

        For one that is not there it is the nearest thing around it that is; None where nothing is.
        """
        found, end = None, 0
        value = self._documents[document - 1] if document <= len(self._documents) else None
        while match := _SEGMENT.match(path, end):
            member = self._members.get(id(value), {}).get(match[1] or match[2] or match[3])
            if member is None:
                break
            (found, value), end = member, match.end()
        return found

    def placed(self, remarks: Iterable[AnyRemark]) -> list[AnyRemark]:
        """Return the remarks with their places; those that have one keep it, and those of no field have none."""
        placed = []
        for each in remarks:
            place = self.place(each.path) if each.place is None else None
            placed.append(each if place is None else replace(each, place=place))
        return placed


class WatchedFile:
    """Tells when a file has another content than the one that was taken.

    The content decides, not the file: the kubelet swaps the link to the folder that a ConfigMap's file is in, editors
    put a new file in the place of the old one, and others write in place. So a change counts once it was seen twice:
    what is half written, or away for a moment, is not taken. Not being readable is a content like any other. A pipe,
    which can be read only once, never changes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_regular = False
        """Whether it is a file and not a pipe, as it was found first."""
        with suppress(OSError, ValueError):
            self.is_regular = stat.S_ISREG(path.stat().st_mode)
        self._taken = self._seen = self._content()

    def take(self) -> None:
        """Count what is there now as taken; call it before the file is read, so that a change meanwhile is seen."""
        self._taken = self._seen = self._content()

    def has_changed(self) -> bool:
        """Look at the file, and return whether it is another than the one that was taken, and the same as last time."""
        before, self._seen = self._seen, self._content()
        return before == self._seen != self._taken

    def _content(self) -> bytes:
        if not self.is_regular:
            return b""
        try:
            return sha256(read_file(self.path, MAX_BYTES + 1, only_regular=True)).digest()
        except UnreadableFileError as error:
            return str(error).encode()
