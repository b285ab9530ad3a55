"""The scheduling queue (upstream: backend/queue/scheduling_queue.go); README.md draws its states."""

import sys
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from itertools import count

from bayplan.cache.cache import Cache
from bayplan.cache.group_members import PodGroupKey
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import ClusterEvent
from bayplan.framework.nominator import Nominator
from bayplan.groups.pod_groups import PodGroup, PodGroups
from bayplan.metrics.table import Metrics
from bayplan.queue.in_flight import KEPT_EVENT_BYTES, KEPT_MOVE_BYTES, EventMoves, InFlightPods, PodUpdates
from bayplan.queue.kept_room import KeptRoom
from bayplan.queue.queue_contents import QueueContents
from bayplan.queue.queue_settings import QueueSettings
from bayplan.queue.queued_groups import QueuedGroups
from bayplan.queue.queued_pod import NO_PLUGINS, QueuedEntity, QueuedPodInfo
from bayplan.queue.queued_pod_group import QueuedPodGroup
from bayplan.queue.queueing_hints import ObservedEvent, QueueingHintMaps, is_in_flight_pod_worth_requeuing
from bayplan.queue.sub_queues import SubQueues

_CONFIGURATION_CHANGE = "ConfigurationChange"
_SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"


@dataclass(kw_only=True, eq=False, repr=False)
class SchedulingQueue(QueueContents):
    """Decides which pod is tried next, and keeps every other pending pod until it is worth trying.

    The scheduling loop relies on it: a pod is popped by one cycle at a time, an event that comes during a cycle is not
    lost on the pod in that cycle, and a pod leaves only by `done` or `delete`. Pods are known by uid. Not thread-safe;
    no method waits. `clock` gives seconds and must never go back.

    After `pop`, the caller hands the pod back with `add_unschedulable`, or calls `begin_bind` and in the end `done`:
    while it does none of it, events are kept for the pod, up to `kept_event_bytes` for all. A pod is best kept in
    flight until it is bound, because after `done` the queue no longer receives its deletion.

    An event, or a second that comes, moves at most `step` pods in one go; `flush` moves the others. For the same order
    of attempts as without steps, pop no pod while the queue `is_moving`. What events wait for their turn then take at
    most `kept_move_bytes`.

    `wake` ends the sleep of whoever pops: all who give it something to do, here or in the cache, call it afterwards.
    """

    clock: Callable[[], float]
    settings: QueueSettings
    max_in_unschedulable_seconds: float = 300.0
    kept_event_bytes: int = KEPT_EVENT_BYTES
    kept_move_bytes: int = KEPT_MOVE_BYTES
    step: int = sys.maxsize
    metrics: Metrics | None = None
    nominator: Nominator = field(default_factory=Nominator)
    groups: PodGroups = field(default_factory=lambda: PodGroups(Cache()))
    wake: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self._hint_maps = QueueingHintMaps(
            self.settings.profiles, None if self.metrics is None else self.metrics.hint_seconds
        )
        self._sequence = count()
        self._sub_queues = SubQueues(
            clock=self.clock,
            settings=self.settings,
            max_in_unschedulable=self.max_in_unschedulable_seconds,
            metrics=self.metrics,
            kind_of=self._kind_of,
            step=self.step,
        )
        self._groups = QueuedGroups(self.groups, self._sub_queues, self._fail, lambda: next(self._sequence))
        self.preempting = self._groups.preempting
        self._moves = EventMoves(self._sub_queues, self.step, self.kept_move_bytes)
        self._in_flight = InFlightPods(self.kept_event_bytes)
        self._kept_room = KeptRoom(self.nominator, self._hint_maps, self._move)
        self._updates = PodUpdates(self._sub_queues, self._in_flight, self._kept_room, self._hint_maps)

    # Pod objects come and go.

    def add(self, pod: PodInfo) -> None:
        """Take in a pending pod; one that is known already counts as updated.

        Raises:
            ValueError: no profile has the pod's schedulerName.
        """
        if self._waiting(pod.uid) is not None or self._in_flight.get(pod.uid) is not None:
            self.update(pod)
            return
        if pod.pod.spec.scheduler_name not in self.settings.profiles:
            raise ValueError(f"pod {pod.key}: no profile is named {pod.pod.spec.scheduler_name!r}")
        queued = QueuedPodInfo(pod, timestamp=self.clock(), sequence=next(self._sequence))
        if pod.pod.status.nominated_node_name:
            self.nominator.add(pod, pod.pod.status.nominated_node_name)
        self._groups.enter(queued, self.group_of(pod))

    def update(self, new: PodInfo) -> None:
        """Replace the pod's object and requeue the pod if that may help; an unknown pod is added."""
        if new.uid in self._groups:
            self._updates.take_member(self._groups, new)
        elif not self._updates.take(new):
            self.add(new)
        elif (key := self.group_of(new)) and (queued := self._sub_queues.pod(new.uid)):
            self._sub_queues.leave(queued)
            self._groups.add(queued, key)

    def delete(self, uid: str) -> None:
        """Forget the pod wherever it is, and its nomination.

        One in flight is dropped when it is handed back, unless a later version of it comes before.
        """
        queued = self._sub_queues.pod(uid)
        if queued is not None:
            self._sub_queues.leave(queued)
        self._groups.discard(uid)
        in_flight = self._in_flight.get(uid)
        if in_flight is not None:
            in_flight.deleted = True
        self._sub_queues.backoff.forget(uid)
        self._kept_room.end(uid)

    # Pod groups come and go.

    def set_group(self, group: PodGroup) -> None:
        """Take a pod group that is new or changed."""
        self.groups.set(group)
        self._groups.set_group(group)

    def remove_group(self, key: PodGroupKey) -> None:
        """Forget a pod group; its members wait for another of that name, but those of a round under way go on."""
        self.groups.remove(key)
        self._groups.remove_group(key)

    def regroup(self) -> None:
        """Have waiting pods be members that were ordinary ones: another kind of group is served."""
        self._groups.regroup(self.queued())

    # Attempts.

    def pop(self) -> QueuedPodInfo | QueuedPodGroup | None:
        """Take the next pod or group to try; the pod, or each member, is then in flight. None when there is none.

        When no pod is active, the first pod backing off after a rejection is taken before its time: an idle
        scheduler has nothing better to do. A pod backing off after an error always waits.
        """
        queued = self._sub_queues.pop()
        if queued is not None:
            queued.attempts += 1
        if isinstance(queued, QueuedPodGroup):
            self._groups.begin_round(queued)
            for member in queued.members.values():
                self._in_flight.start_without_events(member)
            return queued
        if isinstance(queued, QueuedPodInfo):
            self._in_flight.start(queued)
            return queued
        return None

    def finish_round(self, group: QueuedPodGroup, *, failed: bool, error: bool = False, waits: bool = False) -> None:
        """Put a popped group back if any member was handed back or came meanwhile (upstream: AddAttemptedPodGroup...).

        A round that `failed` is counted, as an `error` or as a rejection, and the group backs off, and if it `waits`
        until there are news; else those that are left are tried at once. Members that a round placed are handed back
        one by one, should their binds fail.
        """
        self._groups.finish_round(group, failed=failed, error=error, waits=waits, event=_SCHEDULE_ATTEMPT_FAILURE)

    def begin_bind(self, uid: str) -> None:
        """Keep no events for the pod any more: no plugin rejects it from here on, only an error brings it back.

        Upstream calls Done here (schedule_one.go bindingCycle), and asks its informer for the rest.
        """
        self._in_flight.begin_bind(uid)

    def done(self, uid: str) -> None:
        """End the tracking of a popped pod that does not come back, and its nomination."""
        self._in_flight.done(uid)
        self._sub_queues.backoff.forget(uid)
        self._kept_room.end(uid)

    def add_unschedulable(
        self,
        queued: QueuedPodInfo,
        *,
        rejector_plugins: frozenset[str],
        error: bool,
        ends_nomination: bool = False,
        retry_at: float | None = None,
        as_its_kind: bool = False,
    ) -> None:
        """Take a popped pod back after a failed attempt (upstream: AddUnschedulablePodIfNotPresent).

        With rejectors the pod waits for an event they registered for, unless one came during the attempt, or one may
        have that was too much to keep. After an error, or when nothing rejected it (no nodes), it is tried again once
        its back-off is over. At `retry_at` it is tried again without an event. A pod deleted meanwhile, or queued again
        already, is dropped. With `ends_nomination` no room is kept for it any more; otherwise it has the nomination
        that its newest status names, unless that was withdrawn. One that was rejected `as_its_kind` would be has the
        pods like it wait for the end of their back-off, or for an event.
        """
        uid, sub_queues = queued.uid, self._sub_queues
        if ends_nomination:
            self.withdraw(uid)
        in_flight = self._in_flight.get(uid)
        if self._waiting(uid) is not None or (in_flight is not None and in_flight.deleted):
            self._in_flight.done(uid)
            return
        if in_flight is not None:
            queued.pod_info = in_flight.pod_info
        if not ends_nomination:
            self._renew_nomination(queued)
        rejectors = NO_PLUGINS if error else rejector_plugins
        key = self.group_of(queued.pod_info)
        # A member that nothing rejected may have had a place in a round that failed.
        self._fail(queued, bool(rejectors) or not (error or key is None))
        if key is not None:
            self._in_flight.done(uid)
            self._groups.add(queued, key, failed=True)
            return
        sub_queues.set_rejectors(queued, rejectors)
        waits = False
        if in_flight is not None and rejectors and self._in_flight.knows_what_was_missed(in_flight):
            waits = not is_in_flight_pod_worth_requeuing(queued, self._in_flight.missed(in_flight))
        self._in_flight.done(uid)
        if waits:
            if as_its_kind:
                sub_queues.backoff.reject(queued)
            sub_queues.wait(queued, _SCHEDULE_ATTEMPT_FAILURE, retry_at)
        else:
            sub_queues.requeue(queued, _SCHEDULE_ATTEMPT_FAILURE)

    def _fail(self, queued: QueuedEntity, rejected: bool) -> None:
        queued.fail(self.clock(), next(self._sequence), self.settings, rejected=rejected)

    # Room kept for pods on a node.

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Keep room on `node` for the pod, in place of any earlier nomination, whose room others may now use."""
        self._kept_room.keep(pod, node)
        if queued := self._sub_queues.pod(pod.uid):
            # It is like no other now.
            self._sub_queues.sort(queued)

    def withdraw(self, uid: str, *, wake: bool = False) -> None:
        """Keep no room for the pod any more; others of its priority or lower may use it.

        The status may name the nomination until that is written: it counts again only in a newer version of the pod.
        With `wake` the pod itself may move too: its room was taken by another.
        """
        if queued := self.get(uid):
            queued.withdrawn_in = self.newest(uid)
        self._kept_room.end(uid, wake=wake)

    def _renew_nomination(self, queued: QueuedPodInfo) -> None:
        node = queued.pod_info.pod.status.nominated_node_name
        if node and queued.withdrawn_in is not queued.pod_info and self.nominator.nominated_node(queued.uid) is None:
            self.nominator.add(queued.pod_info, node)

    def placed(self, uid: str, node: str) -> None:
        """End the nomination of a pod that takes `node`; if it was nominated elsewhere, that room is free again."""
        self._kept_room.take(uid, node)

    # What moves waiting pods.

    def move_all(
        self, event: ClusterEvent, old: object | None, new: object | None, *, except_uid: str | None = None
    ) -> None:
        """Requeue the waiting pods that the event may help, and keep it for the pods in flight, but for one pod.

        Only hints of plugins that registered for the event are called, and only for pods they rejected. A gated pod
        moves only by an event its gating plugin registered for.

        Upstream: MoveAllToActiveOrBackoffQueue.
        """
        hint_map = self._hint_maps[event] if self.metrics is None else self._hint_maps.sampled(event)
        if hint_map:
            self._move(ObservedEvent(event, old, new, hint_map, except_uid=except_uid))
        self._groups.observe(event, old, new)

    def _kind_of(self, queued: QueuedEntity) -> Hashable:
        """Return what tells the pod from those that any attempt ends alike for; None if there are none."""
        pod = queued.pod_info
        shape = self.settings.profiles[queued.profile].shape_or_none(pod)
        if shape is None or self.nominator.nominated_node(queued.uid) is not None:
            return None
        return (queued.profile, shape, pod.priority, pod.pod.spec.preemption_policy)

    def _move(self, observed: ObservedEvent) -> None:
        self._in_flight.record(observed)
        self._sub_queues.news(observed.event.label)
        if self._sub_queues.waiting:
            self._moves.take(observed, next(self._sequence))

    @property
    def is_moving(self) -> bool:
        """Whether an event came that may help pods that were not asked yet."""
        return bool(self._moves)

    def flush(self, now: float) -> bool:
        """Activate pods whose back-off is over, and requeue those that waited too long, or until their time.

        Takes a step of it, and of what events have still to move; returns whether there may be more to do.
        """
        self._moves.go_on()
        return self._sub_queues.flush(now) or self.is_moving

    def next_deadline(self) -> float | None:
        """Return when `flush` has something to do next; None while nothing waits for time to pass."""
        return self.clock() if self.is_moving else self._sub_queues.next_deadline()

    def take_over(self, settings: QueueSettings, changed: Collection[str]) -> None:
        """Go on with a changed configuration; every pod keeps its history, its nomination and the back-off it is in.

        What waits in the `changed` profiles is tried again, since what rejected it may be gone, and so is every pod in
        flight that is handed back. Nothing else moves. The settings must have all profiles that pods are of.
        """
        self.settings = settings
        self._hint_maps.take_over(settings.profiles)
        if changed:
            self._in_flight.forget_events()
        self._groups.take_over(settings.profiles)
        self._sub_queues.take_over(settings, changed, _CONFIGURATION_CHANGE)

    def has_ready(self) -> bool:
        """Return whether `pop` would give a pod, or `flush` may bring one now."""
        return self.is_moving or self._sub_queues.has_ready()

    def has_at_most(self, number: int) -> bool:
        """Return whether no more than so many pods are active: the queue is short."""
        return self._sub_queues.has_at_most(number)
