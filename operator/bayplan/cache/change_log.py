"""Which rows of the node table changed, and since when, so that nobody recomputes what stayed the same."""

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

Rows = NDArray[np.intp]
"""Row numbers of the node table, each at most once, `(rows,) intp`."""


class ChangeLog:
    """An append-only list of changed rows that readers follow by position; old entries are dropped in bulk.

    A reader remembers `position` and asks `since(position)`: the distinct rows changed after it, or None when the
    log no longer reaches back that far and the reader must start over.
    """

    __slots__ = ("_dropped", "_entries", "_keep")

    def __init__(self, keep: int = 4096) -> None:
        self._entries: list[int] = []
        self._dropped = 0
        self._keep = keep

    @property
    def position(self) -> int:
        """Where the log ends now."""
        return self._dropped + len(self._entries)

    def append(self, row: int) -> None:
        """Record that `row` changed."""
        entries = self._entries
        entries.append(row)
        if len(entries) > 2 * self._keep:
            del entries[: self._keep]
            self._dropped += self._keep

    def since(self, position: int) -> Rows | None:
        """The distinct rows changed after `position`; None if that is not known any more."""
        start = position - self._dropped
        if start < 0:
            return None
        return np.array(list(dict.fromkeys(self._entries[start:])), dtype=np.intp)


class EntryLog(Generic[T]):
    """As ChangeLog, for entries that readers are told one by one and in order."""

    __slots__ = ("_dropped", "_entries", "_keep")

    def __init__(self, keep: int = 4096) -> None:
        self._entries: list[T] = []
        self._dropped = 0
        self._keep = keep

    @property
    def position(self) -> int:
        """Where the log ends now."""
        return self._dropped + len(self._entries)

    def append(self, entry: T) -> None:
        """Record an entry."""
        entries = self._entries
        entries.append(entry)
        if len(entries) > 2 * self._keep:
            del entries[: self._keep]
            self._dropped += self._keep

    def since(self, position: int) -> list[T] | None:
        """The entries after `position`; None if they are not known any more."""
        start = position - self._dropped
        return None if start < 0 else self._entries[start:]
