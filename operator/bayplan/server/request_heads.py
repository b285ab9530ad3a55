"""Cuts what a client sends into the heads of its requests, before any of it is parsed."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from math import inf
from typing import Final

HEAD_BYTES: Final = 32 * 1024
"""The longest head, from the end of the one before to the empty line: a token takes 16 KiB of it at most."""
_LONGEST_END: Final = len(b"\r\n\r\n")
_DIGITS: Final = 19
_END: Final = re.compile(rb"\r?\n\r?\n")
# The parser waits for more after the preface of HTTP/2, and answers HTTP/0.9 as if it were HTTP/1.0.
_REQUEST_LINE: Final = re.compile(rb"[^\n]* HTTP/1\.[01]\r?\n")
# Go's servers pass over empty lines before a request as well.
_BLANK: Final = b"\r\n"


class HeadRefusedError(Exception):
    """There is no answer to it but `status`, and the connection is of no use any more."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class RequestHeads:
    """Keeps what one client sent and was not looked at yet, and gives it out a head at a time.

    Connection relies on it. It holds no more than `HEAD_BYTES` and what was read at once. Requests that begin with one
    of `taking_bodies`, such as `POST /path `, may have a body of `largest_body` bytes, and no others may.
    """

    __slots__ = ("_largest_body", "_read", "_searched", "_skipped", "_taking_bodies", "body_left")

    def __init__(self, *, taking_bodies: Sequence[bytes] = (), largest_body: int = 0) -> None:
        self._taking_bodies = tuple(taking_bodies)
        self._largest_body = largest_body
        self._read = bytearray()
        self._searched = 0
        self._skipped = 0
        """How many of the bytes before this head were empty lines, which count as part of it."""
        self.body_left = 0
        """How much of the body of the head that was taken last was not given out yet."""

    def __len__(self) -> int:
        return len(self._read)

    def add(self, data: bytes) -> None:
        """Take what was read."""
        self._read += data

    def take(self) -> bytes | None:
        """Return the head of the next request with the empty line at its end, None where the rest is still to come.

        `body_left` is then how much of a body follows, which `take_body` gives.

        Raises:
            HeadRefusedError: it is longer than `HEAD_BYTES`, is none of HTTP/1.0 or 1.1, or announces a body where none
                is taken or one too large.
        """
        self._skip_empty_lines()
        found = _END.search(self._read, max(0, self._searched - _LONGEST_END))
        self._searched = len(self._read)
        end = self._searched if found is None else found.end()
        if self._skipped + end > HEAD_BYTES:
            raise HeadRefusedError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if found is None:
            return None
        head = bytes(self._read[:end])
        del self._read[:end]
        self._searched = self._skipped = 0
        if _REQUEST_LINE.match(head) is None:
            raise HeadRefusedError(HTTPStatus.BAD_REQUEST)
        announced = _announced_body(head)
        if announced and not (head.startswith(self._taking_bodies) and announced <= self._largest_body):
            raise HeadRefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        self.body_left = int(announced)
        return head

    def take_body(self) -> bytes:
        """Return as much of the body as was read and not given out yet."""
        part = bytes(self._read[: self.body_left])
        del self._read[: self.body_left]
        self.body_left -= len(part)
        return part

    def _skip_empty_lines(self) -> None:
        if self._searched == 0:
            before = len(self._read)
            self._read = self._read.lstrip(_BLANK)
            self._skipped += before - len(self._read)


def target_of(head: bytes) -> bytes:
    """Return the path and query that a head asks for, empty where its first line is none of HTTP."""
    parts = head.partition(b"\n")[0].split()
    return parts[1] if len(parts) > 1 else b""


def _announced_body(head: bytes) -> float:
    """How many bytes a head says its body has; infinitely many where it does not say it in one plain number."""
    announced: list[float] = []
    for line in head.split(b"\n")[1:]:
        name, _, value = line.partition(b":")
        name, value = name.strip().lower(), value.strip()
        if name == b"transfer-encoding":
            return inf
        if name == b"content-length" and value != b"0":
            announced.append(int(value) if value.isdigit() and len(value) < _DIGITS else inf)
    return announced[0] if len(announced) == 1 else inf if announced else 0
