"""Keeps what was used last, up to a number or a size, so that what anybody can make up cannot fill the memory."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, ItemsView, ValuesView
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _one_each(*_: object) -> int:
    return 1


class RecentlyUsed(Generic[K, V]):
    """The values that were used last, by key; tables and compiled rules that several pods share rely on it.

    With `size_of` they are as many as have the size `keep` together, without it they are `keep` in number. What
    `size_of` says of a key and its value must never change. A value that is larger than `keep` is not kept.
    """

    __slots__ = ("_size", "_size_of", "_values", "keep")

    def __init__(self, keep: int, size_of: Callable[[K, V], int] = _one_each) -> None:
        self.keep = keep
        """How much stays at most; less takes effect with the next `put`."""
        self._size = 0
        self._size_of = size_of
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    @property
    def size(self) -> int:
        """The size of all values that are kept."""
        return self._size

    def get(self, key: K) -> V | None:
        """The value under `key`, now the most recently used one."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def peek(self, key: K) -> V | None:
        """The value under `key`, for whoever only looks, in any thread: that is no use of it."""
        return self._values.get(key)

    def put(self, key: K, value: V) -> V:
        """Keep `value` in place of the key's earlier one, drop the least recently used too many; returns `value`."""
        if key in self._values:
            self.drop(key)
        size = self._size_of(key, value)
        if size <= self.keep:
            self._values[key] = value
            self._size += size
        while self._size > self.keep:
            self.drop(next(iter(self._values)))
        return value

    def items(self) -> ItemsView[K, V]:
        """All keys and values that are kept, the least recently used first."""
        return self._values.items()

    def values(self) -> ValuesView[V]:
        """All values that are kept, the least recently used first."""
        return self._values.values()

    def drop(self, key: K) -> None:
        """Keep a value no longer."""
        self._size -= self._size_of(key, self._values.pop(key))

    def clear(self) -> None:
        """Keep nothing."""
        self._values.clear()
        self._size = 0


class UsedOfLate(RecentlyUsed[K, V]):
    """As RecentlyUsed, for values that hold pods, which may be gone: those that nobody needs any more are let go of."""

    __slots__ = ("_used",)

    def __init__(self, keep: int) -> None:
        super().__init__(keep)
        # By the ids of values, which stay while these do: keys may be large, and there may be many.
        self._used: set[int] = set()

    def get(self, key: K) -> V | None:
        """As in RecentlyUsed."""
        value = super().get(key)
        self._used.add(id(value))
        return value

    def put(self, key: K, value: V) -> V:
        """As in RecentlyUsed."""
        self._used.add(id(value))
        return super().put(key, value)

    def release_unused(self) -> None:
        """Let go of what was neither asked for nor put since the last call."""
        for key in [key for key, value in self._values.items() if id(value) not in self._used]:
            self.drop(key)
        self._used.clear()
