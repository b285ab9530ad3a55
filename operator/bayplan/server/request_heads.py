"""Cuts what a client sends into the heads of its requests, before any of it is parsed."""

import re
from http import HTTPStatus
from typing import Final

HEAD_BYTES: Final = 32 * 1024
"""The longest head, from the end of the one before to the empty line: a token takes 16 KiB of it at most."""
_LONGEST_END: Final = len(b"\r\n\r\n")
_END: Final = re.compile(rb"\r?\n\r?\n")
# Go's servers pass over empty lines before a request as well.
_BLANK: Final = b"\r\n"


class HeadRefusedError(Exception):
    """There is no answer to it but `status`, and the connection is of no use any more."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class RequestHeads:
    """Keeps what one client sent and was not looked at yet, and gives it out a head at a time.

    Connection relies on it. It holds no more than `HEAD_BYTES` and what was read at once.
    """

    __slots__ = ("_read", "_searched", "_skipped")

    def __init__(self) -> None:
        self._read = bytearray()
        self._searched = 0
        self._skipped = 0
        """How many of the bytes before this head were empty lines, which count as part of it."""

    def __len__(self) -> int:
        return len(self._read)

    def add(self, data: bytes) -> None:
        """Take what was read."""
        self._read += data

    def take(self) -> bytes | None:
        """Return the head of the next request with the empty line at its end, None where the rest is still to come.

        Raises:
            HeadRefusedError: it is longer than `HEAD_BYTES`, or announces a body. Nothing here takes one.
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
        if _announces_body(head):
            raise HeadRefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return head

    def _skip_empty_lines(self) -> None:
        if self._searched == 0:
            before = len(self._read)
            self._read = self._read.lstrip(_BLANK)
            self._skipped += before - len(self._read)


def target_of(head: bytes) -> bytes:
    """Return the path and query that a head asks for, empty where its first line is none of HTTP."""
    parts = head.partition(b"\n")[0].split()
    return parts[1] if len(parts) > 1 else b""


def _announces_body(head: bytes) -> bool:
    for line in head.split(b"\n")[1:]:
        name, _, value = line.partition(b":")
        name = name.strip().lower()
        if name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0"):
            return True
    return False
