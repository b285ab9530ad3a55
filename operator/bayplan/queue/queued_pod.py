"""A pod on its way through the scheduling queue, the history of its attempts, and how long it backs off."""

from dataclasses import dataclass, field
from enum import StrEnum
from math import floor

from bayplan.cache.pod_info import PodInfo

NO_PLUGINS: frozenset[str] = frozenset()


class SubQueue(StrEnum):
    """The part of the queue that a queued pod stands in: always exactly one."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error-backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"


@dataclass(slots=True, eq=False, repr=False)
class QueuedPodInfo:
    """A pending pod and the history of its attempts; `SchedulingQueue` alone changes it, a cycle reads it.

    Times are seconds of the queue's clock. `timestamp` is when the pod last entered the queue as new or as failed.
    `sequence` orders pods of equal timestamp. `backoff_expiration` is the whole second up to which the pod backs off.
    `retry_at` is the one at which it is tried without an event, if it waits for a time.

    `rejector_plugins` are the plugins that may wake the pod: those that rejected it and the one gating it
    (`gating_plugin`). A pod in flight has none, and no `sub_queue`.
    `withdrawn_in` is the version of the pod whose nomination was withdrawn last, which its status may still name.
    `flushed` is set while the pod is tried because of the time limit alone, without an event.
    """

    pod_info: PodInfo
    timestamp: float
    sequence: int
    uid: str = field(init=False)
    """The pod's identity, which no later version changes."""
    profile: str = field(init=False)
    attempts: int = 0
    initial_attempt_timestamp: float | None = None
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    flushed: bool = False
    backoff_expiration: int | None = None
    retry_at: int = 0
    rejector_plugins: frozenset[str] = NO_PLUGINS
    gating_plugin: str | None = None
    gating_message: str | None = None
    withdrawn_in: PodInfo | None = None
    sub_queue: SubQueue | None = None

    def __post_init__(self) -> None:
        self.uid = self.pod_info.uid
        self.profile = self.pod_info.pod.spec.scheduler_name

    def __repr__(self) -> str:
        return f"QueuedPodInfo({self.pod_info.key!r}, {self.sub_queue or 'in no queue'})"


def backoff_seconds(count: int, initial: int, maximum: int) -> int:
    """Return the wait after `count` failures, in seconds: `initial`, doubled each time, at most `maximum`.

    Upstream: backend/queue/backoff_queue.go.
    """
    if count <= 0:
        return 0
    shift = count - 1
    if initial > maximum >> shift:
        return maximum
    return initial << shift


def backoff_expiration(timestamp: float, count: int, initial: int, maximum: int) -> int | None:
    """Return the whole second up to which a pod that failed at `timestamp` waits; None when it need not wait.

    Whole seconds let all pods of one second come back together, in priority order.
    """
    if count <= 0 or maximum == 0:
        return None
    return floor(timestamp + backoff_seconds(count, initial, maximum))


def is_backing_off(expiration: int | None, now: float) -> bool:
    """Return whether the pod still waits at `now`: the second in which its back-off ends belongs to the wait."""
    return expiration is not None and expiration >= floor(now)


def release_time(expiration: int) -> float:
    """Return the first moment at which `is_backing_off` is false."""
    return float(expiration + 1)
