"""What the queue tells those who count."""

from typing import Protocol


class QueueObserver(Protocol):
    """Hears of every move; the metrics rely on it. Methods must be cheap and must not call the queue."""

    def incoming(self, queue: str, event: str) -> None:
        """A pod entered `queue` (active, backoff or unschedulable) because of `event`."""

    def unschedulable(self, plugin: str, profile: str, delta: int) -> None:
        """The number of queued pods that `plugin` holds, or rejected last time, changed by `delta`."""


class NoObserver:
    """Counts nothing."""

    __slots__ = ()

    def incoming(self, queue: str, event: str) -> None:
        """Ignores the move."""

    def unschedulable(self, plugin: str, profile: str, delta: int) -> None:
        """Ignores the change."""
