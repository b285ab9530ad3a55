"""A pod on its way through the scheduling queue, with what the queue remembers of its attempts."""

from enum import StrEnum

from bayplan.cache.pod_info import PodInfo

NO_PLUGINS: frozenset[str] = frozenset()


class SubQueue(StrEnum):
    """The part of the queue that a queued pod stands in: always exactly one."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error-backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"


class QueuedPodInfo:
    """A pending pod and the history of its attempts; `SchedulingQueue` alone changes it, a cycle reads it.

    Times are seconds of the queue's clock. `timestamp` is when the pod last entered the queue as new or as failed.
    `sequence` orders pods of equal timestamp. `backoff_expiration` is the whole second up to which the pod backs off.
    `retry_at` is the one at which it is tried without an event, if it waits for a time.

    `rejector_plugins` are the plugins that may wake the pod: those that rejected it, those still pending
    (`pending_plugins`) and the one gating it (`gating_plugin`). A pod in flight has none, and no `sub_queue`.
    `flushed` is set while the pod is tried because of the time limit alone, without an event.
    """

    __slots__ = (
        "attempts",
        "backoff_expiration",
        "consecutive_errors",
        "flushed",
        "gating_message",
        "gating_plugin",
        "initial_attempt_timestamp",
        "pending_plugins",
        "pod_info",
        "profile",
        "rejector_plugins",
        "retry_at",
        "sequence",
        "sub_queue",
        "timestamp",
        "unschedulable_count",
    )

    def __init__(self, pod_info: PodInfo, *, timestamp: float, sequence: int) -> None:
        self.pod_info = pod_info
        self.profile = pod_info.pod.spec.scheduler_name
        self.timestamp = timestamp
        self.sequence = sequence
        self.attempts = 0
        self.initial_attempt_timestamp: float | None = None
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        self.flushed = False
        self.backoff_expiration: int | None = None
        self.retry_at = 0
        self.rejector_plugins = NO_PLUGINS
        self.pending_plugins = NO_PLUGINS
        self.gating_plugin: str | None = None
        self.gating_message: str | None = None
        self.sub_queue: SubQueue | None = None

    @property
    def uid(self) -> str:
        """The pod's identity."""
        return self.pod_info.uid

    def __repr__(self) -> str:
        return f"QueuedPodInfo({self.pod_info.key!r}, {self.sub_queue or 'in no queue'})"
