"""What events have still to move: waiting pods are asked about one event after the other, a step at a time."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from bayplan.queue.queueing_hints import ObservedEvent, WorthRequeuing
from bayplan.queue.sub_queues import SubQueues

STEP_PODS: Final = 200
"""Of how many pods a step is on an event loop: one or two milliseconds, and ten if every hint is slow."""
KEPT_MOVE_BYTES: Final = 16 * 2**20
"""What the events take at most that wait for their turn: of ordinary pods and nodes some thousand."""
_DONE: Final = object()


class EventMoves:
    """Requeues the pods that an event helps among those that waited when it came; the queue alone relies on it.

    The first step of `step` pods is taken at once, which is all for most events. The rest is taken by `go_on`, and what
    comes meanwhile waits its turn: every pod hears of all events in their order. What waits takes about `keep_bytes`;
    beyond that the first is brought to its end before another is taken in.
    """

    __slots__ = ("_bytes", "_keep_bytes", "_later", "_step", "_sub_queues", "_under_way")

    def __init__(self, sub_queues: SubQueues, step: int, keep_bytes: int = KEPT_MOVE_BYTES) -> None:
        self._sub_queues = sub_queues
        self._step = step
        self._under_way: Iterator[None] | None = None
        self._later: deque[tuple[int, ObservedEvent, int]] = deque()
        self._bytes = 0
        self._keep_bytes = keep_bytes

    def __bool__(self) -> bool:
        """Return whether `go_on` has something to do."""
        return self._under_way is not None

    def take(self, observed: ObservedEvent, sequence: int) -> None:
        """Move whom the event helps of the pods that have waited since before `sequence`, or have it wait its turn."""
        if self._under_way is None:
            self._under_way = self._steps(observed, sequence)
            self.go_on()
        elif self._sub_queues.waiting.has_any(observed.hint_map):
            size = observed.kept_bytes()
            self._later.append((size, observed, sequence))
            self._bytes += size
            while self._bytes > self._keep_bytes:
                self._end_first()

    def go_on(self) -> None:
        """Take a step."""
        if self._under_way is not None and next(self._under_way, _DONE) is _DONE:
            self._turn()

    def _turn(self) -> None:
        """Have the next event's turn come."""
        if not self._later:
            self._under_way = None
            return
        size, observed, sequence = self._later.popleft()
        self._bytes -= size
        self._under_way = self._steps(observed, sequence)

    def _end_first(self) -> None:
        for _ in self._under_way or ():
            pass
        self._turn()

    def _steps(self, observed: ObservedEvent, sequence: int) -> Iterator[None]:
        """Give way after each `step` pods. A pod that came or failed since heard of the event in another way."""
        sub_queues, label, step = self._sub_queues, observed.event.label, self._step
        worth = WorthRequeuing(observed, sub_queues.profiles)
        asked = 0
        for queued in sub_queues.waiting.held_by(observed.hint_map):
            if queued.sequence < sequence and observed.concerns(queued.pod_info):
                if worth.is_worth(queued):
                    sub_queues.requeue(queued, label)
                asked += 1
                if asked % step == 0:
                    yield
