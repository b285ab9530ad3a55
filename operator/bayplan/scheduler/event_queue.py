"""Events that wait to be written: those of one pod one after the other, and no more of them than fit a bound."""

from collections import deque

import msgspec

from bayplan.scheduler.api_calls import ApiCall

_MAX_BYTES = 32 * 2**20
"""Some 25,000 Events: what a burst leaves while the API server takes none."""

_OVERHEAD_BYTES = 1_200
"""What a waiting Event takes besides its bodies: two calls with their paths, and its place in the queue."""


class EventWrite(msgspec.Struct, frozen=True, gc=False):
    """A write of an Event about one pod; `if_missing` creates it where `call` finds none to change.

    If it is `repeatable` it says why a pod waits, or how often: it comes last, as another will say the same.
    """

    uid: str
    call: ApiCall
    if_missing: ApiCall | None
    repeatable: bool
    size: int
    """About how many bytes it takes while it waits."""


class EventQueue:
    """Gives Events in the order of their coming, those that say why pods wait last, and each pod's one by one.

    The dispatcher relies on it: none of a pod is given before the one before it is `done`, so that a pod is never said
    to fail after it was said to be bound, and no series is counted before its Event is created. Once `max_bytes` wait,
    the oldest are dropped and counted, those that say why pods wait first.
    """

    __slots__ = ("_behind", "_bytes", "_first", "_last", "_length", "_max_bytes", "dropped")

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._length = 0
        self._first: deque[EventWrite] = deque()
        self._last: deque[EventWrite] = deque()
        # What waits for an earlier write of the same pod; a pod without such has None, so that most cost no deque.
        self._behind: dict[str, deque[EventWrite] | None] = {}
        self.dropped = 0

    def __len__(self) -> int:
        """Return how many Events wait."""
        return self._length

    @property
    def ready(self) -> int:
        """How many Events could be written now."""
        return len(self._first) + len(self._last)

    def put(self, uid: str, call: ApiCall, if_missing: ApiCall | None = None, *, repeatable: bool = False) -> None:
        """Have an Event about a pod wait, in place of the oldest ones where there is no room."""
        size = _OVERHEAD_BYTES + len(call.body or b"")
        if if_missing is not None:
            size += len(if_missing.body or b"")
        write = EventWrite(uid, call, if_missing, repeatable, size)
        self._bytes += size
        self._length += 1
        if uid not in self._behind:
            self._behind[uid] = None
            self._append(write)
        else:
            behind = self._behind[uid]
            if behind is None:
                behind = self._behind[uid] = deque()
            behind.append(write)
        while self._bytes > self._max_bytes:
            self.dropped += 1
            if oldest := self._last or self._first:
                self.done(self._left(oldest.popleft()).uid)
            elif behind := self._behind[uid]:
                # Nothing waits but for writes under way, of which there are few.
                self._left(behind.pop())

    def take(self, *, repeatable: bool = True) -> EventWrite | None:
        """Give the next Event that can be written, whose pod has no other until it is `done`; None without one.

        Without `repeatable`, none that says why a pod waits.
        """
        if self._first:
            return self._left(self._first.popleft())
        return self._left(self._last.popleft()) if repeatable and self._last else None

    def done(self, uid: str) -> None:
        """Let the next Event of the pod be written, if one waits."""
        behind = self._behind[uid]
        if behind:
            self._append(behind.popleft())
        else:
            del self._behind[uid]

    def _append(self, write: EventWrite) -> None:
        (self._last if write.repeatable else self._first).append(write)

    def _left(self, write: EventWrite) -> EventWrite:
        self._bytes -= write.size
        self._length -= 1
        return write
