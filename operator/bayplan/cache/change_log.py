"""What changed in a collection, and since when, so that nobody reads again what stayed the same."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.pod_info import PodInfo

if TYPE_CHECKING:
    from bayplan.cache.incremental_view import PodView
    from bayplan.cache.node_table import NodeTable

T = TypeVar("T")

Rows = NDArray[np.intp]
"""Row numbers of the node table, each at most once, `(rows,) intp`."""

PodChange = tuple[int, PodInfo | None, PodInfo | None]
"""A row, the pod that went or looked different before, and the pod that came or how it looks now."""

KEPT_POD_BYTES: Final = 48 * 2**20
"""How much of the pods that came and went `pods_changed` keeps at least, as `PodInfo.size` counts it."""

_UNASKED_BYTES: Final = 2 * 2**20
"""How much may come before readers are asked again what they have seen."""

_LARGEST_POD_BYTES: Final = 2**20
"""Larger pods are not kept there, but told to all readers at once: nobody makes these start over by a few pods."""


class _Log(Generic[T]):
    """An append-only list that readers follow by position; old entries are dropped in bulk.

    A reader remembers `position` and asks `since(position)`, which is None when the log no longer reaches back that far
    and the reader must start over. At least the last `keep` entries are there.
    """

    __slots__ = ("_dropped", "_entries", "_keep", "position")

    def __init__(self, keep: int = 4096) -> None:
        self._entries: list[T] = []
        self._dropped = 0
        self._keep = keep
        self.position = 0
        """Where the log ends now; grows by one with every entry. Read ten times a decision, so it is no property."""

    def append(self, entry: T) -> None:
        """Record an entry."""
        entries = self._entries
        entries.append(entry)
        self.position += 1
        if len(entries) > 2 * self._keep:
            del entries[: self._keep]
            self._dropped += self._keep

    def _since(self, position: int) -> list[T] | None:
        start = position - self._dropped
        return None if start < 0 else self._entries[start:]


class EntryLog(_Log[T]):
    """For readers that are told every entry; `keep` is the size of those kept at least.

    Never more than twice `keep` is held, and no entry larger than `keep`: after such a one all readers start over.
    `size_of` must always say the same of an entry.
    """

    __slots__ = ("_shrink_at", "_size", "_size_of")

    def __init__(self, keep: int, size_of: Callable[[T], int]) -> None:
        super().__init__(keep)
        self._size = 0
        self._size_of = size_of
        self._shrink_at = 2 * keep

    @property
    def size(self) -> int:
        """The size of all entries held."""
        return self._size

    def append(self, entry: T) -> None:
        """Record an entry."""
        size = self._size_of(entry)
        self._entries.append(entry)
        self.position += 1
        self._size += size
        if size > self._keep:
            self.forget_until(self.position)
        elif self._size > self._shrink_at:
            self._shrink()

    def set_kept(self, keep: int) -> None:
        """Hold at least the last entries of `keep` in all from now on, and at most twice as much."""
        self._keep = keep
        self._shrink_at = min(self._shrink_at, 2 * keep)
        if self._size > self._shrink_at:
            self._shrink()

    def _shrink(self) -> None:
        count, left = 0, self._size
        while left > self._keep:
            left -= self._size_of(self._entries[count])
            count += 1
        self.forget_until(self._dropped + count)

    def forget_until(self, position: int) -> None:
        """Hold no entry before `position`."""
        count = max(position - self._dropped, 0)
        self._size -= sum(map(self._size_of, self._entries[:count]))
        del self._entries[:count]
        self._dropped += count

    def since(self, position: int) -> list[T] | None:
        """The entries after `position`, in order; None if they are not known any more."""
        return self._since(position)


class KeyLog(_Log[str]):
    """The keys of objects that came, changed or went."""

    __slots__ = ()

    def since(self, position: int) -> list[str] | None:
        """The distinct keys changed after `position`, in order; None if that is not known any more."""
        keys = self._since(position)
        return None if keys is None else list(dict.fromkeys(keys))


class KeyFollower:
    """One reader's position in a log of keys; its first look is at everything that was ever logged.

    `there` follows the keys of all objects that there are.
    """

    __slots__ = ("_log", "_position", "_there")

    def __init__(self, log: KeyLog, there: Collection[str]) -> None:
        self._log = log
        self._there = there
        self._position = 0

    def follow(self, known: Iterable[str]) -> Collection[str]:
        """The distinct keys that changed since the last call, in order.

        If that is not known any more, they are all of those that the reader has `known` and all that there are.
        """
        position, self._position = self._position, self._log.position
        keys = self._log.since(position)
        return dict.fromkeys([*known, *self._there]) if keys is None else keys


class ChangeLog(_Log[int]):
    """The rows of the node table that changed."""

    __slots__ = ()

    def since(self, position: int) -> Rows | None:
        """The distinct rows changed after `position`; None if that is not known any more."""
        rows = self._since(position)
        return None if rows is None else np.array(list(dict.fromkeys(rows)), dtype=np.intp)


class PodLog(EntryLog[PodChange]):
    """The pods that came, went or look different; at most twice `keep` bytes of them.

    Large pods are not among them. Entries that all of `readers` have seen are let go of now and then, so that pods that
    are gone stay in memory only while somebody has yet to hear of it. A reader that fell too far behind reads all pods
    again. Without readers nothing is held: whoever comes reads all pods first.
    """

    __slots__ = ("readers",)

    def __init__(self, keep: int = KEPT_POD_BYTES) -> None:
        super().__init__(keep, _pod_bytes)
        self.readers: WeakSet[PodView] = WeakSet()
        self._shrink_at = min(_UNASKED_BYTES, 2 * keep)

    def append(self, entry: PodChange) -> None:
        """Record a change, or tell it to all readers if it is about a large pod."""
        if not self.readers:
            # Mostly nobody counts the pods of a scratch table, and measuring them took longer than the rest of a move.
            self.position += 1
            self.forget_until(self.position)
            return
        if _pod_bytes(entry) <= _LARGEST_POD_BYTES:
            super().append(entry)
            return
        for reader in self.readers:
            reader.take(entry)

    def forget(self) -> None:
        """Hold nothing; readers that lag behind read all pods."""
        self.forget_until(self.position)
        self._shrink_at = min(_UNASKED_BYTES, 2 * self._keep)

    def _shrink(self) -> None:
        # Those that have read nothing yet will read all pods.
        self.forget_until(min([each.read_to for each in self.readers if each.read_to], default=self.position))
        if self._size > 2 * self._keep:
            super()._shrink()
        self._shrink_at = min(self._size + _UNASKED_BYTES, 2 * self._keep)


def _pod_bytes(change: PodChange) -> int:
    _, before, after = change
    return (0 if before is None else before.size) + (0 if after is None else after.size)


_NO_ROWS: Rows = np.empty(0, dtype=np.intp)


def together(*rows: Rows) -> Rows:
    """Return the rows that are in any of these, in growing order; whoever adds up changes relies on it.

    Mostly they are few. np.unique would load numpy's masked arrays for it: two megabytes that nothing else needs.
    """
    return np.array(sorted(set().union(*[each.tolist() for each in rows])), dtype=np.intp)


@dataclass(slots=True)  # made twice a cycle: a frozen one takes three times as long
class RowChange:
    """What changed since a reader last looked.

    `usage` are rows whose pods or node object changed, `objects` those of them whose node object did; both are empty
    when `everything` must be read anew.
    """

    everything: bool
    usage: Rows
    objects: Rows


EVERYTHING = RowChange(everything=True, usage=_NO_ROWS, objects=_NO_ROWS)
NOTHING = RowChange(everything=False, usage=_NO_ROWS, objects=_NO_ROWS)

_Position = tuple[int, int, int]
"""Layout, and where the logs of objects and of usage end."""


class RowFollower:
    """One reader's position in a node table's logs; its first look is at everything."""

    __slots__ = ("_nodes", "_position")

    def __init__(self, nodes: "NodeTable") -> None:
        self._nodes = nodes
        self._position: _Position = (-1, 0, 0)

    def follow(self) -> RowChange:
        """What changed since the last call."""
        nodes, before = self._nodes, self._position
        position = (nodes.layout, nodes.objects_changed.position, nodes.usage_changed.position)
        if before == position:
            return NOTHING
        self._position = position
        if before[0] != position[0]:
            return EVERYTHING
        usage = nodes.usage_changed.since(before[2]) if before[2] != position[2] else _NO_ROWS
        objects = nodes.objects_changed.since(before[1]) if before[1] != position[1] else _NO_ROWS
        if usage is None or objects is None:
            return EVERYTHING
        return RowChange(everything=False, usage=usage, objects=objects)
