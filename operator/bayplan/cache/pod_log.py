"""The pods that came to nodes, left them or look different, for who keeps counts of them."""

from typing import Final, Protocol
from weakref import WeakSet

from bayplan.cache.change_log import EntryLog
from bayplan.cache.pod_info import PodInfo

PodChange = tuple[int, PodInfo | None, PodInfo | None]
"""A row, the pod that went or looked different before, and the pod that came or how it looks now."""

KEPT_POD_BYTES: Final = 48 * 2**20
"""How much of the pods that came and went `pods_changed` keeps at least, as `PodInfo.size` counts it."""
_UNASKED_BYTES: Final = 2 * 2**20
"""How much may come before readers are asked again what they have seen."""
_LARGEST_POD_BYTES: Final = 2**20
"""Larger pods are not kept there, but told to all readers at once: nobody makes these start over by a few pods."""


class PodReader(Protocol):
    """Whoever follows a log of pods."""

    read_to: int
    """The position in the log up to which it knows everything."""

    def take(self, change: PodChange) -> None:
        """Take in a change that the log does not keep, before or after those that it does."""


class PodLog(EntryLog[PodChange]):
    """The pods that came, went or look different; at most twice `keep` bytes of them.

    Large pods are not among them. Entries that all of `readers` have seen are let go of now and then, so that pods that
    are gone stay in memory only while somebody has yet to hear of it. A reader that fell too far behind reads all pods
    again.
    """

    __slots__ = ("readers",)

    def __init__(self, keep: int = KEPT_POD_BYTES) -> None:
        super().__init__(keep, _pod_bytes)
        self.readers: WeakSet[PodReader] = WeakSet()
        self._shrink_at = min(_UNASKED_BYTES, 2 * keep)

    def append(self, entry: PodChange) -> None:
        """Record a change, or tell it to all readers if it is about a large pod."""
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
