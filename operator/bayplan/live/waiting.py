"""Where pods wait: the queue as it is told, worked out of a copy of what stands in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, Final

from bayplan.api.timestamps import format_time
from bayplan.cache.pod_info import PodInfo
from bayplan.live.answers import PodAhead, QueueAnswer, QueueItem
from bayplan.queue.queued_pod import QueuedPodInfo, SubQueue, release_time
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.recent_decisions import LONGEST_MESSAGE, RecentDecisions

MOST_AHEAD: Final = 5
_NAMES: Final = {
    SubQueue.ACTIVE: "active",
    SubQueue.BACKOFF: "backoff",
    SubQueue.ERROR_BACKOFF: "backoff",
    SubQueue.UNSCHEDULABLE: "unschedulable",
    SubQueue.GATED: "gated",
}
_RANKS: Final = {"active": 0, "backoff": 1, "unschedulable": 2, "gated": 3}


@dataclass(frozen=True, slots=True)
class _Standing:
    """A pod and where it stood; read once, as the queue goes on while others are worked out."""

    queued: QueuedPodInfo
    pod: PodInfo
    queue: str
    key: tuple[Any, ...]


class WaitingPodsCopy:
    """The pods that stood in the queue when it was made; made on the loop, asked on a thread.

    Only the list of pods is copied. What is told of a pod is read when it is asked for, so it may be newer by the time
    that takes. `now` is in seconds since the epoch.
    """

    def __init__(self, queue: SchedulingQueue, decisions: RecentDecisions, now: float) -> None:
        self._queued = queue.queued()
        self._sort_key: Callable[[PodInfo, float], tuple[Any, ...]] = queue.sort_key
        self._longest_wait = queue.max_in_unschedulable_seconds
        self._nominated_node = queue.nominator.nominated_node
        self._decisions = decisions
        self._now = now
        self._epoch = now - queue.clock()
        """What makes a time of the queue's clock one since the epoch."""

    def find(self, namespace: str, name: str) -> QueuedPodInfo | None:
        """Return the pod of that name, if it stood in the queue."""
        return next(
            (each for each in self._queued if each.pod_info.name == name and each.pod_info.namespace == namespace), None
        )

    def page(self, start: int, limit: int) -> QueueAnswer:
        """Return so many pods from the one at place `start` on."""
        standing = self._standing()
        # Which leaves the interpreter to others now and then, as sorting all of them does not.
        ordered = nsmallest(start + limit, standing, key=_place)[start:]
        items = [
            self._item(each, start + number + 1 if each.queue == "active" else None)
            for number, each in enumerate(ordered)
        ]
        end = start + len(items)
        return QueueAnswer(
            format_time(self._now), len(standing), items, str(end) if items and end < len(standing) else None
        )

    def of_pod(self, queued: QueuedPodInfo) -> tuple[QueueItem | None, list[PodAhead]]:
        """Return where the pod stands, and the first of those that are tried before it; none while it is in flight."""
        mine = self._one(queued)
        if mine is None:
            return None, []
        as_active = self._sort_key(mine.pod, queued.timestamp), queued.sequence
        active = [each for each in self._standing() if each.queue == "active" and each.queued is not queued]
        before = [each for each in active if each.key < as_active]
        ahead = [
            PodAhead(each.pod.namespace, each.pod.name, each.pod.priority)
            for each in nsmallest(MOST_AHEAD, before, key=_place)
        ]
        is_active = mine.queue == "active"
        return self._item(mine, len(before) + 1 if is_active else None), ahead if mine.queue != "gated" else []

    def _standing(self) -> Sequence[_Standing]:
        return [each for each in map(self._one, self._queued) if each is not None]

    def _one(self, queued: QueuedPodInfo) -> _Standing | None:
        sub_queue, pod = queued.sub_queue, queued.pod_info
        if sub_queue is None:
            return None
        name = _NAMES[sub_queue]
        key: tuple[Any, ...]
        if name == "active":
            key = self._sort_key(pod, queued.timestamp), queued.sequence
        elif name == "backoff":
            key = (queued.backoff_expiration or 0, queued.sequence)
        else:
            key = (queued.timestamp, queued.sequence)
        return _Standing(queued, pod, name, key)

    def _item(self, standing: _Standing, position: int | None) -> QueueItem:
        queued, pod = standing.queued, standing.pod
        since = queued.initial_attempt_timestamp
        return QueueItem(
            namespace=pod.namespace,
            name=pod.name,
            scheduler_name=queued.profile,
            priority=pod.priority,
            queue=standing.queue,
            position=position,
            attempts=queued.attempts,
            waiting_since=self._time(queued.timestamp if since is None else since),
            next_retry=self._next_retry(standing),
            message=self._message(standing),
            rejected_by=sorted(queued.rejector_plugins),
            nominated_node=self._nominated_node(queued.uid),
        )

    def _next_retry(self, standing: _Standing) -> str | None:
        queued = standing.queued
        expiration = queued.backoff_expiration
        if standing.queue == "backoff" and expiration is not None:
            return self._time(release_time(expiration))
        if standing.queue == "unschedulable":
            latest = queued.timestamp + self._longest_wait
            # An earlier wait may have left its time behind.
            return self._time(min(latest, queued.retry_at) if queued.retry_at > queued.timestamp else latest)
        return None

    def _message(self, standing: _Standing) -> str:
        if standing.queue == "gated":
            return standing.queued.gating_message or ""
        if attempts := self._decisions.attempts_on(standing.queued.uid):
            return attempts[-1].message
        conditions = standing.pod.pod.status.conditions or ()
        shown = (each.message for each in conditions if each.type == "PodScheduled" and each.status == "False")
        return next(shown, "")[:LONGEST_MESSAGE]

    def _time(self, seconds: float) -> str:
        return format_time(self._epoch + seconds)


def _place(standing: _Standing) -> tuple[int, tuple[Any, ...]]:
    return _RANKS[standing.queue], standing.key
