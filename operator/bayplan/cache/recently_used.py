"""Keeps what was used last, up to a number, so that what anybody can make up cannot fill the memory."""

from collections import OrderedDict
from collections.abc import Hashable, ItemsView
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentlyUsed(Generic[K, V]):
    """The `keep` values that were used last, by key; tables and compiled rules that several pods share rely on it."""

    __slots__ = ("_values", "keep")

    def __init__(self, keep: int) -> None:
        self.keep = keep
        """How many stay at most; a lower number takes effect with the next `put`."""
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value under `key`, now the most recently used one."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> V:
        """Keep `value` in place of the key's earlier one, drop the least recently used too many; returns `value`."""
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self.keep:
            self._values.popitem(last=False)
        return value

    def items(self) -> ItemsView[K, V]:
        """All keys and values that are kept, the least recently used first."""
        return self._values.items()

    def drop(self, key: K) -> None:
        """Keep a value no longer."""
        del self._values[key]

    def clear(self) -> None:
        """Keep nothing."""
        self._values.clear()
