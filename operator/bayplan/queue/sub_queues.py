"""Where waiting pods are: active, backing off, unschedulable (upstream: unschedulablePods), or gated."""

import logging
import sys
from collections.abc import Callable, Container, Hashable
from dataclasses import dataclass, field
from math import ceil

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE
from bayplan.framework.status import SUCCESS, Status
from bayplan.logs.formats import V4, V5
from bayplan.metrics.table import Metrics
from bayplan.queue.backing_off import BackingOffPods
from bayplan.queue.queue_settings import QueueSettings
from bayplan.queue.queued_pod import NO_PLUGINS, KeyedHeap, QueuedEntity, QueuedPodInfo, SubQueue
from bayplan.queue.unschedulable_pods import UnschedulablePods

logger = logging.getLogger(__name__)
_BACKOFF_COMPLETE = "BackoffComplete"
_POP_FROM_BACKOFF_Q = "PopFromBackoffQ"
_RETRY_TIME = "RetryTime"
_UNSCHEDULABLE_TIMEOUT = "UnschedulableTimeout"
_PODS_END_WITHIN_SECONDS = 0.5


@dataclass(kw_only=True, eq=False, repr=False)
class SubQueues:
    """Keeps every queued entity in exactly one sub-queue; only this class moves them, and it reports each move.

    `max_in_unschedulable` is in seconds of `clock`, `step` the number of pods that time moves in one go.
    """

    clock: Callable[[], float]
    settings: QueueSettings
    max_in_unschedulable: float
    metrics: Metrics | None
    kind_of: Callable[[QueuedEntity], Hashable]
    step: int = sys.maxsize
    entities: dict[str, QueuedEntity] = field(init=False, default_factory=dict)
    waiting: UnschedulablePods = field(init=False, default_factory=UnschedulablePods)

    def __post_init__(self) -> None:
        self._active = KeyedHeap()
        self.backoff = BackingOffPods(self.kind_of, self.step)
        self._error_backoff = KeyedHeap()
        self._heaps: dict[SubQueue, KeyedHeap | BackingOffPods] = {
            SubQueue.ACTIVE: self._active,
            SubQueue.BACKOFF: self.backoff,
            SubQueue.ERROR_BACKOFF: self._error_backoff,
        }
        self._retries = KeyedHeap()
        self._until_news: dict[str, QueuedEntity] = {}

    # Moves.

    def enter(self, queued: QueuedEntity, to: SubQueue, event: str, gate: Status = SUCCESS) -> None:
        """Move the pod, from another sub-queue or from outside; `gate` is the refusal that holds it in GATED."""
        came_from = queued.sub_queue
        self._vacate(queued)
        self.entities[queued.uid] = queued
        queued.gating_plugin = queued.gating_message = None
        if not gate.ok:
            queued.gating_plugin, queued.gating_message = gate.plugin, gate.message
            self.set_rejectors(queued, queued.rejector_plugins | {gate.plugin})
            logger.log(V4, "Pod is gated pod=%r plugin=%s reason=%s", queued.pod_info.key, gate.plugin, gate.message)
        queued.sub_queue = to
        if to in self._heaps:
            self.sort(queued)
        else:
            self.waiting.add(queued)
        if to is SubQueue.ACTIVE and queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self.clock()
        if logger.isEnabledFor(V5):
            key = queued.pod_info.key
            logger.log(V5, "Pod moved to an internal scheduling queue pod=%r event=%s queue=%s", key, event, to)
        if self.metrics is not None and _where(to) != _where(came_from):
            self.metrics.incoming_pods.add(_where(to), event)

    def requeue(self, queued: QueuedEntity, event: str) -> None:
        """Move the pod towards its next attempt: it is active once its back-off is over, unless a gate holds it.

        Upstream: requeuePodWithQueueingStrategy.
        """
        self._retries.discard(queued.uid)
        rejection = queued.gate(self.settings.profiles)
        if not rejection.ok:
            if queued.sub_queue is SubQueue.GATED and queued.gating_plugin == rejection.plugin:
                queued.gating_message = rejection.message
            else:
                self.enter(queued, SubQueue.GATED, event, rejection)
        elif queued.backs_off(self.clock()):
            is_rejected = queued.rejector_plugins and isinstance(queued, QueuedPodInfo)
            self.enter(queued, SubQueue.BACKOFF if is_rejected else SubQueue.ERROR_BACKOFF, event)
        else:
            self.enter(queued, SubQueue.ACTIVE, event)

    def wait(self, queued: QueuedEntity, event: str, retry_at: float | None) -> None:
        """Keep the pod in UNSCHEDULABLE until an event helps it, or the whole second after `retry_at` comes."""
        self.enter(queued, SubQueue.UNSCHEDULABLE, event)
        if retry_at is not None:
            queued.retry_at = ceil(retry_at)
            self._retries.push(queued, (queued.retry_at,))

    def leave(self, queued: QueuedEntity) -> None:
        """Take the pod out of the queue and clear what rejected it."""
        self._vacate(queued)
        del self.entities[queued.uid]
        self._retries.discard(queued.uid)
        self.set_rejectors(queued, NO_PLUGINS)
        queued.sub_queue = None

    def pop(self) -> QueuedEntity | None:
        """Take out the next pod to try; without an active one, the first worth it that backs off after a rejection.

        None if there is none, or if no step of the search found one.
        """
        queued = self._active.peek() or self.backoff.peek_early()
        if queued is None:
            return None
        if queued.sub_queue is SubQueue.BACKOFF:
            self.enter(queued, SubQueue.ACTIVE, _POP_FROM_BACKOFF_Q)
        self.leave(queued)
        return queued

    def sort(self, queued: QueuedEntity) -> None:
        """Put a pod that stands in a heap where its sort key belongs."""
        key = self.settings.sort_key(queued.pod_info, queued.since)
        if queued.sub_queue is SubQueue.ACTIVE:
            self._active.push(queued, key)
        elif queued.sub_queue in self._heaps:
            self._heaps[queued.sub_queue].push(queued, (queued.backs_off_until, *key))

    def set_rejectors(self, queued: QueuedEntity, plugins: frozenset[str]) -> None:
        """Set which plugins may wake the pod; it must not be waiting meanwhile."""
        if self.metrics is not None:
            for plugin in queued.rejector_plugins - plugins:
                self.metrics.unschedulable_pods.add(plugin, queued.profile, by=-1)
            for plugin in plugins - queued.rejector_plugins:
                self.metrics.unschedulable_pods.add(plugin, queued.profile)
        queued.rejector_plugins = plugins

    def take_over(self, settings: QueueSettings, changed: Container[str], event: str) -> None:
        """Sort all anew, and requeue the pods of the `changed` profiles, by their new gates."""
        self.settings = settings
        self.news(event)
        for queued in list(self.entities.values()):
            if queued.is_of(changed):
                self.requeue(queued, event)
            self.sort(queued)

    def news(self, event: str) -> None:
        """Have those tried again whose turn it is and that were not for want of news.

        As with kube-scheduler, whose groups no event wakes, pods that the same event wakes go before groups of their
        priority.
        """
        self.backoff.news()
        waiting, self._until_news = self._until_news, {}
        for queued in waiting.values():
            if event == ASSIGNED_POD_DELETE.label:
                self.try_soon(queued)
            else:
                queued.timestamp = self.clock()
                self.requeue(queued, event)

    def try_soon(self, queued: QueuedEntity) -> None:
        """Have a group that waits for news tried half a second after a pod ended.

        Where a pod ends, others do: of a gang, a Job or a node that is drained. They give their room together, as a
        round that comes too soon costs a group its next back-off.
        """
        queued.retry_at = self.clock() + _PODS_END_WITHIN_SECONDS
        self._retries.push(queued, (queued.retry_at,))

    def _vacate(self, queued: QueuedEntity) -> None:
        self._until_news.pop(queued.uid, None)
        if queued.sub_queue in self._heaps:
            self._heaps[queued.sub_queue].discard(queued.uid)
        elif queued.sub_queue is not None:
            self.waiting.remove(queued)

    # Time.

    def flush(self, now: float) -> bool:
        """Activate pods whose back-off is over, and requeue those that waited too long, or until their time.

        Takes a step of it, and returns whether there may be more to do.
        """
        if self.backoff.is_searching:
            self.backoff.peek_early()
        for _ in range(self.step):
            if not self._flush_one(now):
                return self.backoff.is_searching
        return True

    def _flush_one(self, now: float) -> bool:
        """Move the next pod whose time has come; False if there is none."""
        for heap in (self.backoff, self._error_backoff):
            if (queued := heap.peek()) and not queued.backs_off(now):
                if queued.news_seen != self.backoff.last_news:
                    self.enter(queued, SubQueue.ACTIVE, _BACKOFF_COMPLETE)
                else:
                    self.wait(queued, _BACKOFF_COMPLETE, None)
                    self._until_news[queued.uid] = queued
                return True
        if (queued := self.waiting.oldest()) and queued.timestamp + self.max_in_unschedulable <= now:
            queued.flushed = True
            self.requeue(queued, _UNSCHEDULABLE_TIMEOUT)
            return True
        if (queued := self._retries.peek()) and queued.retry_at <= now:
            self.requeue(queued, _RETRY_TIME)
            return True
        return False

    def next_deadline(self) -> float | None:
        """Return when `flush` has something to do next; None while nothing waits for time to pass."""
        heads = (self.backoff.peek(), self._error_backoff.peek())
        times: list[float] = [head.backs_off_until for head in heads if head and head.backs_off_until is not None]
        if oldest := self.waiting.oldest():
            times.append(oldest.timestamp + self.max_in_unschedulable)
        if first := self._retries.peek():
            times.append(first.retry_at)
        if self.backoff.is_searching:
            times.append(self.clock())
        return min(times, default=None)

    # Questions.

    def pod(self, uid: str) -> QueuedPodInfo | None:
        """Return the pod of this uid, if it stands in a sub-queue of its own."""
        queued = self.entities.get(uid)
        return queued if isinstance(queued, QueuedPodInfo) else None

    def has_ready(self) -> bool:
        """Return whether `pop` would give a pod, or cannot tell yet."""
        return bool(self._active) or self.backoff.peek_early() is not None or self.backoff.is_searching

    def has_at_most(self, number: int) -> bool:
        """Return whether no more than so many pods are active."""
        return len(self._active) <= number

    def pending(self) -> dict[str, int]:
        """Return the number of pods by sub-queue, under the labels of scheduler_pending_pods."""
        return {
            "active": len(self._active),
            "backoff": len(self.backoff) + len(self._error_backoff),
            "unschedulable": len(self.waiting.rejected),
            "gated": len(self.waiting.gated),
        }


def _where(to: SubQueue | None) -> str:
    """Return the label of scheduler_queue_incoming_pods_total, which calls a gated pod unschedulable."""
    return "" if to is None else "unschedulable" if to is SubQueue.GATED else to.label
