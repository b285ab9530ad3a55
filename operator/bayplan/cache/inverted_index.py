"""Finds who holds a key, for everything that is looked up the other way round than it comes."""

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)


class InvertedIndex(Generic[K, V]):
    """Maps each key to its holders, such as claims to rows; keys that nobody holds take no memory."""

    __slots__ = ("_holders", "_keys_of")

    def __init__(self) -> None:
        # Dicts keep the order the holders came in.
        self._holders: dict[K, dict[V, None]] = {}
        self._keys_of: dict[V, Collection[K]] = {}

    def get(self, key: K) -> Collection[V]:
        """Return the holders of a key in the order they came, not to be written to."""
        return self._holders.get(key, {})

    def keys(self) -> Collection[K]:
        """Return all keys that anybody holds, not to be written to."""
        return self._holders.keys()

    def holders(self) -> Collection[V]:
        """Return all who hold a key, not to be written to."""
        return self._keys_of.keys()

    def keys_of(self, holder: V) -> Collection[K]:
        """Return the keys that a holder holds."""
        return self._keys_of.get(holder, ())

    def set(self, holder: V, keys: Collection[K]) -> None:
        """Let `holder` hold these keys and no others; nobody may write to `keys` from then on."""
        for key in self._keys_of.pop(holder, ()):
            if key not in keys:
                holders = self._holders[key]
                del holders[holder]
                if not holders:
                    del self._holders[key]
        for key in keys:
            self._holders.setdefault(key, {})[holder] = None
        if keys:
            self._keys_of[holder] = keys

    def clear(self) -> None:
        """Forget all holders."""
        self._holders.clear()
        self._keys_of.clear()
