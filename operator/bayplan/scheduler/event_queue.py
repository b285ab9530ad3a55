"""Events that wait to be written: those of one pod one after the other, and no more of them than fit a bound."""

from collections import deque

import msgspec

from bayplan.scheduler.api_calls import ApiCall, namespace_of

MAX_BYTES = 32 * 2**20
"""Some 25,000 Events: what a burst leaves while the API server takes none."""

_OVERHEAD_BYTES = 1_600
"""What a waiting Event takes besides its bodies: two calls with their paths, its turn and its place in the queue."""


_SHARE_OF_FREE = 2
"""A namespace takes so many times what is free."""


class EventWrite(msgspec.Struct, frozen=True, gc=False):
    """A write of an Event about one pod; `if_missing` creates it where `call` finds none to change.

    If it is `repeatable` it says why a pod waits, or how often: it comes last, as another will say the same.
    """

    uid: str
    call: ApiCall
    if_missing: ApiCall | None
    repeatable: bool
    namespace: str
    """Whose share of the room it takes."""
    size: int
    """About how many bytes it takes while it waits."""


def event_write(uid: str, call: ApiCall, if_missing: ApiCall | None, *, repeatable: bool) -> EventWrite:
    """Return the write, with whose room it takes and how much."""
    create = b"" if if_missing is None else if_missing.body or b""
    size = _OVERHEAD_BYTES + len(call.body or b"") + len(create)
    return EventWrite(uid, call, if_missing, repeatable, namespace_of(call.path), size)


class EventQueue:
    """Keeps the Events of each pod in order, and all of them within `max_bytes`; the dispatcher relies on it.

    None of a pod may be written before the one before it is `done`, so that a pod is never said to fail after it was
    said to be bound, and no series is counted before its Event is created. What finds no room is dropped and counted.
    A namespace takes at most twice the room that is free, so that some is left however many are not taken for others:
    a burst in one alone has two thirds (dynamic thresholds: Choudhury and Hahne, 1998).
    """

    __slots__ = ("_behind", "_bytes", "_max_bytes", "dropped")

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes: dict[str, int] = {"": 0}  # By namespace; "" is all of them.
        # What waits for an earlier write of the same pod; a pod without such has None, so that most cost no deque.
        self._behind: dict[str, deque[EventWrite] | None] = {}
        self.dropped = 0

    def put(self, write: EventWrite) -> bool:
        """Keep an Event if there is room; whether it can be written now, as none of its pod comes before it."""
        size, namespace = write.size, write.namespace
        free = self._max_bytes - self._bytes[""]
        if size > free or self._of(namespace) + size > _SHARE_OF_FREE * free:
            self.dropped += 1
            return False
        self._add(namespace, size)
        if write.uid not in self._behind:
            self._behind[write.uid] = None
            return True
        behind = self._behind[write.uid]
        if behind is None:
            behind = self._behind[write.uid] = deque()
        behind.append(write)
        return False

    def done(self, write: EventWrite) -> EventWrite | None:
        """Let go of an Event that was written or given up; the next of its pod, which can be written now."""
        self._add(write.namespace, -write.size)
        behind = self._behind[write.uid]
        if behind:
            return behind.popleft()
        del self._behind[write.uid]
        return None

    def _of(self, namespace: str) -> int:
        return self._bytes.get(namespace, 0) if namespace else 0

    def _add(self, namespace: str, size: int) -> None:
        self._bytes[""] += size
        if namespace:
            self._bytes[namespace] = self._bytes.get(namespace, 0) + size
            if not self._bytes[namespace]:
                del self._bytes[namespace]
