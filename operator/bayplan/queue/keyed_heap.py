"""A heap of pods from which any pod can leave."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from bayplan.queue.queued_pod import QueuedPodInfo

SortKey = tuple[Any, ...]
_Entry = tuple[SortKey, int, int, str]

_COMPACT_ABOVE = 64


class KeyedHeap:
    """Pods by sort key, then by `sequence`, so that pods of equal keys keep the order in which they came.

    A pod that leaves is let go of at once. Its entry, which has only its UID, goes when it comes to the top, or when
    dead entries outnumber live ones. Push, peek and discard are O(log n) amortised.
    """

    __slots__ = ("_heap", "_live", "_versions")

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._live: dict[str, tuple[_Entry, QueuedPodInfo]] = {}
        self._versions = count()

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """Give the pods, in no particular order."""
        return (queued for _, queued in self._live.values())

    def push(self, queued: QueuedPodInfo, key: SortKey) -> None:
        """Put the pod in, or move it when its key changed."""
        uid = queued.uid
        known = self._live.get(uid)
        if known is not None and known[0][:2] == (key, queued.sequence):
            return
        # The version tells the entries of a pod apart.
        entry = (key, queued.sequence, next(self._versions), uid)
        self._live[uid] = entry, queued
        heappush(self._heap, entry)
        self._compact()

    def discard(self, uid: str) -> None:
        """Take the pod out, wherever it stands."""
        if self._live.pop(uid, None) is not None:
            self._compact()

    def peek(self) -> QueuedPodInfo | None:
        """Return the first pod, which stays."""
        heap = self._heap
        while heap:
            held = self._live.get(heap[0][3])
            if held is not None and held[0] is heap[0]:
                return held[1]
            heappop(heap)
        return None

    def _compact(self) -> None:
        if len(self._heap) > _COMPACT_ABOVE and len(self._heap) > 2 * len(self._live):
            self._heap = [entry for entry, _ in self._live.values()]
            heapify(self._heap)
