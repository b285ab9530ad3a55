"""What is on its way through the scheduling queue, and a heap of it from which any can leave."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heapify, heappop, heappush
from itertools import count
from math import floor

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.status import Status
from bayplan.queue.queue_settings import QueueProfile, QueueSettings, SortKey

NO_PLUGINS: frozenset[str] = frozenset()

_Entry = tuple[SortKey, int, int, str]
_COMPACT_ABOVE = 64
_GIVES_WAY_SECONDS = 1.0


class SubQueue(StrEnum):
    """The part of the queue that an entity stands in: always exactly one."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error-backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"

    @property
    def label(self) -> str:
        """What people are told, and scheduler_pending_pods: after an error it is a back-off like others."""
        return "backoff" if self is SubQueue.ERROR_BACKOFF else self.value


@dataclass(slots=True, eq=False, repr=False)
class QueuedEntity:
    """What is tried in one go, and the history of its attempts; `SchedulingQueue` alone changes it, a cycle reads it.

    `pod_info` says where it stands in the order, and what it is called. Times are seconds of the queue's clock.
    `timestamp` is when the entity last entered the queue as new or as failed. `sequence` orders entities of equal
    timestamp. `backs_off_until` is the whole second at which its back-off is over. `retry_at` is the one at which it is
    tried without an event, if it waits for a time.

    `rejector_plugins` are the plugins that may wake it: those that rejected it and the one gating it
    (`gating_plugin`). An entity in flight has none, and no `sub_queue`.
    `flushed` is set while it is tried because of the time limit alone, without an event.
    `news_seen` is set for a group that waits for news after its back-off: the number of the last news it has seen.
    """

    pod_info: PodInfo
    timestamp: float
    sequence: int
    uid: str = field(init=False)
    """Its identity, which no later version changes."""
    profile: str = field(init=False)
    attempts: int = 0
    initial_attempt_timestamp: float | None = None
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    flushed: bool = False
    backs_off_until: int | None = None
    retry_at: float = 0
    news_seen: int | None = None
    rejector_plugins: frozenset[str] = NO_PLUGINS
    gating_plugin: str | None = None
    gating_message: str | None = None
    sub_queue: SubQueue | None = None

    def __post_init__(self) -> None:
        self.uid = self.pod_info.uid
        self.profile = self.pod_info.pod.spec.scheduler_name

    @property
    def since(self) -> float:
        """Since when it counts as waiting, among those of its priority.

        After an error not before a second after its back-off: the errors of one namespace come back all at once, and
        pods that come while they are tried do not wait for them.
        """
        if self.consecutive_errors and self.backs_off_until is not None:
            return self.backs_off_until + _GIVES_WAY_SECONDS
        return self.timestamp

    def backs_off(self, now: float) -> bool:
        """Whether it still waits after its last attempt."""
        return self.backs_off_until is not None and now < self.backs_off_until

    def is_of(self, profiles: Container[str]) -> bool:
        """Whether one of these profiles decides on it."""
        return self.profile in profiles

    def gate(self, profiles: Mapping[str, QueueProfile]) -> Status:
        """Return the refusal of the plugin that holds it back, or a status that is ok."""
        return profiles[self.profile].gate(self.pod_info)

    def fail(self, now: float, sequence: int, settings: QueueSettings, *, rejected: bool) -> None:
        """Count a failed attempt, which a plugin `rejected` or an error ended, and back off from now on."""
        if rejected:
            self.unschedulable_count += 1
            self.consecutive_errors = 0
        else:
            self.consecutive_errors += 1
        self.flushed = False
        self.timestamp, self.sequence = now, sequence
        failures = self.consecutive_errors or self.unschedulable_count
        initial, maximum = settings.initial_backoff_seconds, settings.max_backoff_seconds
        self.backs_off_until = backs_off_until(now, failures, initial, maximum)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pod_info.key!r}, {self.sub_queue or 'in no queue'})"


@dataclass(slots=True, eq=False, repr=False)
class QueuedPodInfo(QueuedEntity):
    """A pending pod.

    `withdrawn_in` is the version of the pod whose nomination was withdrawn last, which its status may still name.
    """

    withdrawn_in: PodInfo | None = None


def backs_off_until(failed_at: float, failures: int, initial: int, maximum: int) -> int | None:
    """Return when the wait of a pod is over that failed at `failed_at`; None without one, where the `maximum` is 0.

    It is `initial` seconds, doubled with each of its `failures` in a row, at most `maximum`, and what is left of a
    second: all pods of one second come back together, in priority order. Upstream: backend/queue/backoff_queue.go.
    """
    if maximum == 0:
        return None
    doublings = failures - 1
    seconds = maximum if initial > maximum >> doublings else initial << doublings
    return floor(failed_at + seconds) + 1


class KeyedHeap:
    """Entities by sort key, then by `sequence`, so that those of equal keys keep the order in which they came.

    One that leaves is let go of at once. Its entry, which has only its UID, goes when it comes to the top, or when
    dead entries outnumber live ones. Push, peek and discard are O(log n) amortised.
    """

    __slots__ = ("_heap", "_live", "_versions")

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._live: dict[str, tuple[_Entry, QueuedEntity]] = {}
        self._versions = count()

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[QueuedEntity]:
        """Give the entities, in no particular order."""
        return (queued for _, queued in self._live.values())

    def push(self, queued: QueuedEntity, key: SortKey) -> None:
        """Put the entity in, or move it when its key changed."""
        uid = queued.uid
        known = self._live.get(uid)
        if known is not None and known[0][:2] == (key, queued.sequence):
            return
        # The version tells the entries of an entity apart.
        entry = (key, queued.sequence, next(self._versions), uid)
        self._live[uid] = entry, queued
        heappush(self._heap, entry)
        self._compact()

    def discard(self, uid: str) -> None:
        """Take the entity out, wherever it stands."""
        if self._live.pop(uid, None) is not None:
            self._compact()

    def peek(self) -> QueuedEntity | None:
        """Return the first entity, which stays."""
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
