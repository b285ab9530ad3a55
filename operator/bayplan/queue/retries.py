"""Pods that are to be tried again at a set time, because time alone may help them."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import ceil
from typing import Final

_SPARE: Final = 64
"""How many times that no longer hold may be kept besides as many as there are pods."""


class Retries:
    """One time per pod, rounded up to whole seconds of the queue's clock; the queue relies on it beside its events."""

    __slots__ = ("_at", "_heap")

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []

    def set(self, uid: str, at: float | None) -> None:
        """Try the pod again at that time instead of any earlier one told; None for no such time."""
        if at is None:
            self._at.pop(uid, None)
        elif self._at.get(uid) != ceil(at):
            self._at[uid] = ceil(at)
            heappush(self._heap, (ceil(at), uid))
            if len(self._heap) > 2 * len(self._at) + _SPARE:
                self._heap = [(time, each) for each, time in self._at.items()]
                heapify(self._heap)

    def due(self, now: float) -> Iterator[str]:
        """The pods whose time has come, each given once."""
        while (at := self.next()) is not None and at <= now:
            uid = heappop(self._heap)[1]
            del self._at[uid]
            yield uid

    def next(self) -> int | None:
        """The next time, None when there is none."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None
