"""The scheduling queue (upstream: backend/queue/scheduling_queue.go); README.md draws its states."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import count

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULABLE_TIMEOUT,
    WILDCARD,
    ClusterEvent,
)
from bayplan.queue.backoff import backoff_expiration, is_backing_off, release_time
from bayplan.queue.in_flight import InFlightPod, InFlightPods
from bayplan.queue.keyed_heap import SortKey
from bayplan.queue.nominator import Nominator
from bayplan.queue.observer import NoObserver, QueueObserver
from bayplan.queue.places import Places
from bayplan.queue.pod_change import unschedulable_pod_changes
from bayplan.queue.queue_profile import QueueProfile
from bayplan.queue.queued_pod import NO_PLUGINS, Place, QueuedPodInfo
from bayplan.queue.queueing_hints import Audiences, Happening, Requeue, Verdicts, judge, judge_missed
from bayplan.queue.retries import Retries

BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF_Q = "PopFromBackoffQ"
RETRY_TIME = "RetryTime"
SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"

NO_OBSERVER = NoObserver()


def priority_sort(pod: PodInfo, timestamp: float) -> SortKey:
    """PrioritySort: higher priority first, then whoever has waited longer."""
    return (-pod.priority, timestamp)


class SchedulingQueue:
    """Says which pod is tried next, and keeps every other pending pod until it is worth trying.

    The scheduling loop relies on it: a pod is popped by one cycle at a time, an event that comes during a
    cycle is not lost on the pod in that cycle, and a pod leaves only by `done` or `delete`. Pods are known by
    uid. Not thread-safe; no method waits. `clock` gives seconds and must never go back.

    After `pop`, the caller hands the pod back with `add_unschedulable` or calls `done`: while it does
    neither, events are kept for the pod. A pod is best kept in flight until it is bound, because after `done`
    the queue no longer hears that it was deleted.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        profiles: Mapping[str, QueueProfile],
        initial_backoff_seconds: int = 1,
        max_backoff_seconds: int = 10,
        max_in_unschedulable_seconds: float = 300.0,
        sort_key: Callable[[PodInfo, float], SortKey] = priority_sort,
        observer: QueueObserver = NO_OBSERVER,
        nominator: Nominator | None = None,
    ) -> None:
        self.nominator = Nominator() if nominator is None else nominator
        self._clock = clock
        self._profiles = profiles
        self._initial_backoff = initial_backoff_seconds
        self._max_backoff = max_backoff_seconds
        self._max_in_unschedulable = max_in_unschedulable_seconds
        self._audiences = Audiences(profiles)
        self._sequence = count()
        self._places = Places(clock=clock, sort_key=sort_key, observer=observer)
        self._in_flight = InFlightPods()
        self._retries = Retries()

    # Pod objects come and go.

    def add(self, pod: PodInfo) -> None:
        """Takes in a pending pod; one that is known already counts as updated.

        Raises:
            ValueError: no profile has the pod's schedulerName.
        """
        if pod.uid in self._places.pods or self._in_flight.get(pod.uid) is not None:
            self.update(None, pod)
            return
        if pod.pod.spec.scheduler_name not in self._profiles:
            raise ValueError(f"pod {pod.key}: no profile is named {pod.pod.spec.scheduler_name!r}")
        queued = QueuedPodInfo(pod, timestamp=self._clock(), sequence=next(self._sequence))
        if pod.pod.status.nominated_node_name:
            self.nominator.add(pod, pod.pod.status.nominated_node_name)
        self._requeue(queued, Requeue.IMMEDIATELY, UNSCHEDULABLE_POD_ADD.label)

    def update(self, old: PodInfo | None, new: PodInfo) -> None:
        """Replaces the pod's object and requeues the pod if that may help; an unknown pod is added.

        `old` is the version to compare with, None for the one the queue holds.
        """
        flying = self._in_flight.get(new.uid)
        queued = self._places.pods.get(new.uid)
        if flying is not None:
            self._update_in_flight(flying, old or flying.pod_info, new)
        elif queued is None:
            self.add(new)
        elif not _same_version(queued.pod_info, new):
            before = old or queued.pod_info
            queued.pod_info = new
            self._follow_nomination(before, new)
            if queued.place in (Place.GATED, Place.UNSCHEDULABLE):
                self._wake_updated(queued, before)
            else:
                self._places.sort(queued)

    def _update_in_flight(self, flying: InFlightPod, old: PodInfo, new: PodInfo) -> None:
        flying.deleted = False
        if _same_version(flying.pod_info, new):
            return
        flying.latest = new
        # The attempt decides on the nomination; its outcome meets the newest object when the pod is handed back.
        self.nominator.refresh(new)
        for event in unschedulable_pod_changes(old, new):
            self._in_flight.record(self._audiences.happening(event, old, new, target=new.uid))

    def _wake_updated(self, queued: QueuedPodInfo, old: PodInfo) -> None:
        new = queued.pod_info
        events = unschedulable_pod_changes(old, new)
        if queued.place is Place.GATED:
            # The gate looks at the pod itself, so it is asked again rather than a hint about it.
            self._requeue(queued, Requeue.AFTER_BACKOFF, events[0].label)
            return
        failures: Counter[str] = Counter()
        for event in events:
            verdict = judge(queued, self._audiences.happening(event, old, new), failures)
            if verdict is not Requeue.SKIP:
                self._requeue(queued, verdict, event.label)
                return

    def delete(self, uid: str) -> None:
        """Forgets the pod wherever it is, and its nomination; one in flight is dropped when it is handed back."""
        queued = self._places.pods.get(uid)
        if queued is not None:
            self._places.leave(queued)
        flying = self._in_flight.get(uid)
        if flying is not None:
            flying.deleted = True
        self._retries.set(uid, None)
        self.withdraw(uid)

    # Room kept for pods on a node.

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Keeps room on `node` for the pod, in place of any earlier nomination, whose room others may now use."""
        before = self.nominator.nominated_node(pod.uid)
        self.nominator.add(pod, node)
        if before not in (None, node):
            self._room_left(pod, spared=pod.uid)

    def withdraw(self, uid: str, *, wake: bool = False) -> None:
        """Keeps no room for the pod any more; others of its priority or lower may use it.

        `wake` is for a pod whose room another one took: it looks for a place anew.
        """
        pod = self.nominator.get(uid)
        if pod is not None:
            self.nominator.delete(uid)
            self._room_left(pod, spared=None if wake else uid)

    def placed(self, uid: str, node: str) -> None:
        """The pod takes `node`, which ends its nomination; a nomination to another node leaves room there."""
        if self.nominator.nominated_node(uid) == node:
            self.nominator.delete(uid)
        else:
            self.withdraw(uid)

    def _follow_nomination(self, old: PodInfo, new: PodInfo) -> None:
        before = self.nominator.nominated_node(new.uid)
        self.nominator.update(old, new)
        if before is not None and self.nominator.nominated_node(new.uid) != before:
            self._room_left(new, spared=None)

    def _room_left(self, pod: PodInfo, *, spared: str | None) -> None:
        # To pods of its priority or lower a nominated pod is as if it were on the node (upstream: eventhandlers.go).
        self._move(self._audiences.happening(ASSIGNED_POD_DELETE, pod, None, ceiling=pod.priority, spared=spared))

    # Attempts.

    def pop(self) -> QueuedPodInfo | None:
        """The next pod to try, now in flight; None when there is none.

        When no pod is active, the first pod backing off after a rejection is taken before its time: an idle
        scheduler has nothing better to do. A pod backing off after an error always waits.
        """
        queued = self._places.active.peek() or self._places.backoff.peek()
        if queued is None:
            return None
        if queued.place is Place.BACKOFF:
            self._places.enter(queued, Place.ACTIVE, POP_FROM_BACKOFF_Q)
        self._places.leave(queued)
        queued.attempts += 1
        self._in_flight.start(queued)
        return queued

    def done(self, uid: str) -> None:
        """Ends the tracking of a popped pod that does not come back, and its nomination."""
        self._in_flight.done(uid)
        self.withdraw(uid)

    def add_unschedulable(
        self,
        queued: QueuedPodInfo,
        *,
        rejector_plugins: frozenset[str],
        error: bool,
        pending_plugins: frozenset[str] = NO_PLUGINS,
        retry_at: float | None = None,
    ) -> None:
        """Takes a popped pod back after a failed attempt.

        With rejectors the pod waits for an event they want, unless one came during the attempt. After an
        error, or when nothing rejected it (no nodes), it is tried again once its back-off is over. An event
        for one of `pending_plugins` skips the back-off. At `retry_at` it is tried again without an event. A pod
        deleted meanwhile, or queued again already, is dropped.
        """
        uid = queued.uid
        flying = self._in_flight.get(uid)
        if uid in self._places.pods or (flying is not None and flying.deleted):
            self._in_flight.done(uid)
            return
        if flying is not None:
            queued.pod_info = flying.pod_info
        told = queued.pod_info.pod.status.nominated_node_name
        if told and self.nominator.nominated_node(uid) is None:
            self.nominator.add(queued.pod_info, told)
        rejectors = NO_PLUGINS if error else rejector_plugins | pending_plugins
        if rejectors:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        queued.pending_plugins = pending_plugins & rejectors
        queued.flushed = False
        queued.timestamp = self._clock()
        queued.sequence = next(self._sequence)
        queued.backoff_expiration = backoff_expiration(
            queued.timestamp,
            queued.consecutive_errors or queued.unschedulable_count,
            self._initial_backoff,
            self._max_backoff,
        )
        self._places.set_rejectors(queued, rejectors)
        self._retries.set(uid, retry_at)
        verdict = Requeue.AFTER_BACKOFF
        if flying is not None and rejectors:
            verdict = judge_missed(queued, self._in_flight.missed(flying))
        self._in_flight.done(uid)
        if verdict is Requeue.SKIP:
            self._places.enter(queued, Place.UNSCHEDULABLE, SCHEDULE_ATTEMPT_FAILURE)
        else:
            self._requeue(queued, verdict, SCHEDULE_ATTEMPT_FAILURE)

    # What wakes waiting pods.

    def move_all(self, event: ClusterEvent, old: object | None, new: object | None) -> None:
        """Requeues the waiting pods that the event may help, and keeps it for the pods in flight.

        Only plugins that registered for the event are asked, and only about pods they rejected. A gated pod
        moves only by an event its gating plugin registered for. A wildcard event moves every pod that is not
        gated.
        """
        self._move(self._audiences.happening(event, old, new))

    def _move(self, happening: Happening) -> None:
        event = happening.event
        self._in_flight.record(happening)
        if not self._places.waiting:
            return
        if happening.wildcard:
            for queued in self._places.waiting.rejected():
                self._requeue(queued, Requeue.AFTER_BACKOFF, event.label)
            return
        verdicts = Verdicts(happening, self._profiles)
        for profile, plugins in happening.audience.items():
            for queued in self._places.waiting.waiting_for(profile, plugins):
                if queued.gating_plugin is not None and queued.gating_plugin not in plugins:
                    continue
                if not happening.concerns(queued.pod_info):
                    continue
                verdict = verdicts.of(queued)
                if verdict is not Requeue.SKIP:
                    self._requeue(queued, verdict, event.label)

    def activate(self, uids: Iterable[str]) -> None:
        """Makes these pods active regardless of back-off; one in flight will not wait when it comes back."""
        for uid in uids:
            queued = self._places.pods.get(uid)
            if queued is None:
                if self._in_flight.get(uid) is not None:
                    self._in_flight.record(self._audiences.happening(WILDCARD, None, None, target=uid))
            elif queued.place in (Place.BACKOFF, Place.ERROR_BACKOFF):
                self._places.enter(queued, Place.ACTIVE, WILDCARD.label)
            elif queued.place is not Place.ACTIVE:
                self._requeue(queued, Requeue.IMMEDIATELY, WILDCARD.label)

    def flush(self, now: float) -> None:
        """Activates pods whose back-off is over, and requeues those that waited too long, or until their time."""
        for heap in (self._places.backoff, self._places.error_backoff):
            while (queued := heap.peek()) and not is_backing_off(queued.backoff_expiration, now):
                self._places.enter(queued, Place.ACTIVE, BACKOFF_COMPLETE)
        while (queued := self._places.waiting.oldest()) and queued.timestamp + self._max_in_unschedulable <= now:
            queued.flushed = True
            self._requeue(queued, Requeue.AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT.label)
        for uid in self._retries.due(now):
            self._requeue(self._places.pods[uid], Requeue.AFTER_BACKOFF, RETRY_TIME)

    def next_deadline(self) -> float | None:
        """When `flush` has something to do next; None while nothing waits for time to pass."""
        heads = (self._places.backoff.peek(), self._places.error_backoff.peek())
        times = [
            release_time(head.backoff_expiration) for head in heads if head and head.backoff_expiration is not None
        ]
        if oldest := self._places.waiting.oldest():
            times.append(oldest.timestamp + self._max_in_unschedulable)
        if (retry := self._retries.next()) is not None:
            times.append(retry)
        return min(times, default=None)

    # What others may ask.

    def has_ready(self) -> bool:
        """Whether `pop` would give a pod."""
        return bool(self._places.active or self._places.backoff)

    def pending(self) -> dict[str, int]:
        """The number of pods by part of the queue, for scheduler_pending_pods."""
        return self._places.pending()

    def uids(self) -> set[str]:
        """Every pod the queue counts as existing, queued or in flight."""
        return {*self._places.pods, *(pod.queued.uid for pod in self._in_flight if not pod.deleted)}

    def get(self, uid: str) -> QueuedPodInfo | None:
        """The pod, queued or in flight; None when unknown or deleted."""
        flying = self._in_flight.get(uid)
        return flying.queued if flying is not None and not flying.deleted else self._places.pods.get(uid)

    def newest(self, uid: str) -> PodInfo | None:
        """The newest version of the pod that the queue was told of; None when unknown or deleted."""
        flying = self._in_flight.get(uid)
        if flying is not None and not flying.deleted:
            return flying.pod_info
        queued = self._places.pods.get(uid)
        return None if queued is None else queued.pod_info

    def validate(self) -> None:
        """Asserts every invariant of README.md; O(n), for tests and debugging."""
        self._places.validate()
        self._in_flight.validate()
        assert not any(pod.queued.uid in self._places.pods for pod in self._in_flight), "a pod is queued and in flight"

    # The one way back towards an attempt.

    def _requeue(self, queued: QueuedPodInfo, how: Requeue, event: str) -> None:
        self._retries.set(queued.uid, None)
        rejection = self._profiles[queued.profile].gate(queued.pod_info)
        if rejection is not None:
            if queued.place is Place.GATED and queued.gating_plugin == rejection.plugin:
                queued.gating_message = rejection.message
            else:
                self._places.enter(queued, Place.GATED, event, rejection)
        elif how is Requeue.AFTER_BACKOFF and is_backing_off(queued.backoff_expiration, self._clock()):
            self._places.enter(queued, Place.BACKOFF if queued.rejector_plugins else Place.ERROR_BACKOFF, event)
        else:
            self._places.enter(queued, Place.ACTIVE, event)


def _same_version(known: PodInfo, new: PodInfo) -> bool:
    version = known.pod.metadata.resource_version
    return version != "" and version == new.pod.metadata.resource_version
