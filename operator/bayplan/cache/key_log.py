"""Which objects of a keyed collection changed, and since when, so that nobody reads all of them again."""

_KEPT = 4096


class KeyLog:
    """An append-only list of changed keys that readers follow by position; old entries are dropped in bulk.

    A reader remembers `position` and asks `since(position)`, as with the node table's ChangeLog.
    """

    __slots__ = ("_dropped", "_entries")

    def __init__(self) -> None:
        self._entries: list[str] = []
        self._dropped = 0

    @property
    def position(self) -> int:
        """Where the log ends now; grows by one with every change."""
        return self._dropped + len(self._entries)

    def append(self, key: str) -> None:
        """Record that the object under `key` came, changed or went."""
        self._entries.append(key)
        if len(self._entries) > 2 * _KEPT:
            del self._entries[:_KEPT]
            self._dropped += _KEPT

    def since(self, position: int) -> list[str] | None:
        """The distinct keys changed after `position`, in order; None if that is not known any more."""
        start = position - self._dropped
        return None if start < 0 else list(dict.fromkeys(self._entries[start:]))
