"""Numbers or names by what they hold, kept current one at a time."""

from collections.abc import Hashable, Iterable
from collections.abc import Set as AbstractSet
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)


class InvertedIndex(Generic[K, V]):
    """Maps each key to its holders, such as claims to rows; keys that nobody holds take no memory."""

    __slots__ = ("_holders",)

    def __init__(self) -> None:
        self._holders: dict[K, set[V]] = {}

    def get(self, key: K) -> AbstractSet[V]:
        """Return the holders of a key, not to be written to."""
        return self._holders.get(key, frozenset())

    def add(self, keys: Iterable[K], holder: V) -> None:
        """Make `holder` one of the holders of each key."""
        for key in keys:
            self._holders.setdefault(key, set()).add(holder)

    def remove(self, keys: Iterable[K], holder: V) -> None:
        """Undo `add` for keys that `holder` holds."""
        for key in keys:
            holders = self._holders[key]
            holders.discard(holder)
            if not holders:
                del self._holders[key]

    def clear(self) -> None:
        """Forget all holders."""
        self._holders.clear()
