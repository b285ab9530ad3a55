"""Pods being scheduled or bound and the events they missed, events that have still to move pods, and pods' updates."""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import Final

from bayplan.api.meta_objects import is_later_version
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import EventResource
from bayplan.queue.kept_room import KeptRoom
from bayplan.queue.queued_groups import QueuedGroups
from bayplan.queue.queued_pod import QueuedEntity, QueuedPodInfo, SubQueue
from bayplan.queue.queueing_hints import (
    ObservedEvent,
    QueueingHintMaps,
    is_pod_worth_requeuing,
    may_help,
    pod_changes,
    worth_requeuing,
)
from bayplan.queue.sub_queues import SubQueues

KEPT_EVENT_BYTES: Final = 64 * 2**20
"""What the events kept take at most: of ordinary pods and nodes some ten thousand."""
_NEVER: Final = -1
_POPPED: Final = "PodPopped"


@dataclass(slots=True)
class InFlightPod:
    """A popped pod, the number of the first event after its pop, and what became of the object since."""

    queued: QueuedPodInfo
    since: int
    latest: PodInfo | None = None
    deleted: bool = False

    @property
    def pod_info(self) -> PodInfo:
        """The newest version the queue received; the cycle keeps working on the one it was given."""
        return self.latest or self.queued.pod_info


class InFlightPods:
    """Keeps each event exactly as long as a pod whose attempt was under way when it came is still tried.

    So the record stays as short as the slowest attempt allows, provided every popped pod is handed back, bound or done,
    and it takes no more than about `keep_bytes`. Of a pod that is being bound only its own changes are kept.
    """

    __slots__ = ("_being_bound", "_bytes", "_dropped", "_events", "_keep_bytes", "_pods")

    def __init__(self, keep_bytes: int = KEPT_EVENT_BYTES) -> None:
        # In order of popping, so the first pod is the one that needs the oldest event.
        self._pods: OrderedDict[str, InFlightPod] = OrderedDict()
        self._being_bound: dict[str, InFlightPod] = {}
        self._events: deque[tuple[int, ObservedEvent]] = deque()
        self._dropped = 0
        self._bytes = 0
        self._keep_bytes = keep_bytes

    def __len__(self) -> int:
        return len(self._pods) + len(self._being_bound)

    def __iter__(self) -> Iterator[InFlightPod]:
        return chain(self._pods.values(), self._being_bound.values())

    def get(self, uid: str) -> InFlightPod | None:
        """Return the pod of this uid, if it is in flight."""
        return self._pods.get(uid) or self._being_bound.get(uid)

    def events(self) -> dict[str, int]:
        """Return how many events are kept, by their label; each pod counts as the event of its pop."""
        labels = Counter(map(attrgetter("event.label"), map(itemgetter(1), self._events)))
        return {_POPPED: len(self._pods), **labels}

    def start(self, queued: QueuedPodInfo) -> None:
        """Count a pod that is not yet as in flight; from now on it misses nothing."""
        self._pods[queued.uid] = InFlightPod(queued, self._dropped + len(self._events))

    def start_without_events(self, queued: QueuedPodInfo) -> None:
        """Count a member of a group that is tried as in flight: whatever it misses, the group is tried again."""
        self._being_bound[queued.uid] = InFlightPod(queued, _NEVER)

    def begin_bind(self, uid: str) -> None:
        """Keep no events for the pod any more, whose bind can fail with an error but is rejected by no plugin."""
        pod = self._pods.pop(uid, None)
        if pod is not None:
            pod.since = _NEVER
            self._being_bound[uid] = pod
            self._drop_unneeded()

    def record(self, observed: ObservedEvent) -> None:
        """Keep the event for the pods that are being tried, unless no plugin registered for it."""
        if not self._pods or not observed.hint_map:
            return
        if observed.only_uid is not None and observed.only_uid not in self._pods:
            return
        size = observed.kept_bytes()
        self._events.append((size, observed))
        self._bytes += size
        while self._bytes > self._keep_bytes:
            self._drop_first()

    def knows_what_was_missed(self, pod: InFlightPod) -> bool:
        """Return whether all events are still there that came since the pod's pop; if not, any may have helped it."""
        return pod.since >= self._dropped

    def missed(self, pod: InFlightPod) -> Iterator[ObservedEvent]:
        """Give the events since the pod's pop that concern it, the newest first."""
        number = self._dropped + len(self._events) - pod.since
        for _, observed in islice(reversed(self._events), number):
            if observed.concerns(pod.queued.pod_info):
                yield observed

    def forget_events(self) -> None:
        """Keep nothing of what came so far: no pod that is tried knows any more what may have helped it."""
        self._dropped += len(self._events) + 1
        self._events.clear()
        self._bytes = 0

    def done(self, uid: str) -> None:
        """Forget the pod, and the events that only it still needed."""
        if self._being_bound.pop(uid, None) is None and self._pods.pop(uid, None) is not None and self._events:
            self._drop_unneeded()

    def _drop_unneeded(self) -> None:
        if not self._pods:
            self._dropped += len(self._events)
            self._events.clear()
            self._bytes = 0
            return
        needed = next(iter(self._pods.values())).since
        while self._dropped < needed:
            self._drop_first()

    def _drop_first(self) -> None:
        size, _ = self._events.popleft()
        self._bytes -= size
        self._dropped += 1


@dataclass(slots=True)
class PodUpdates:
    """Replaces the objects of pods that wait or are in flight; the queue alone relies on it.

    A waiting pod is requeued if its own change may help it. For one in flight the change is kept as an event, and its
    attempt goes on with the version that it was given (upstream: scheduling_queue.go Update).
    """

    sub_queues: SubQueues
    in_flight: InFlightPods
    kept_room: KeptRoom
    hint_maps: QueueingHintMaps

    def take(self, new: PodInfo) -> bool:
        """Replace the pod's object and requeue the pod if that may help; False if the pod is unknown."""
        in_flight = self.in_flight.get(new.uid)
        queued = self.sub_queues.pod(new.uid)
        if in_flight is not None:
            self._update_in_flight(in_flight, new)
        elif queued is None:
            return False
        elif not _same_version(queued.pod_info, new):
            before, queued.pod_info = queued.pod_info, new
            new.share_terms_of(before)
            self.kept_room.follow(before, new)
            if queued.sub_queue in (SubQueue.GATED, SubQueue.UNSCHEDULABLE):
                self._wake(queued, before)
            else:
                self.sub_queues.sort(queued)
        return True

    def take_member(self, groups: QueuedGroups, new: PodInfo) -> None:
        """Replace the object of a member of a pod group that waits; its group is requeued if that may help.

        What we write on its status ourselves does not, or each round would bring about the next one.
        """
        member = groups.get(new.uid)
        if member is not None and not _same_version(member.pod_info, new):
            before = member.pod_info
            new.share_terms_of(before)
            self.kept_room.follow(before, new)
            groups.update(member, new)
            events = pod_changes(before, new, EventResource.TARGET_POD)
            if any(may_help(member, ObservedEvent(event, before, new, self.hint_maps[event])) for event in events):
                groups.wake(new.uid)

    def _update_in_flight(self, in_flight: InFlightPod, new: PodInfo) -> None:
        old = in_flight.pod_info
        if in_flight.deleted and not is_later_version(_version(new), _version(old)):
            return
        in_flight.deleted = False
        if _same_version(old, new):
            return
        in_flight.latest = new
        new.share_terms_of(old)
        # The attempt decides on the nomination; its outcome meets the newest object when the pod is handed back.
        self.kept_room.refresh(new)
        for event in pod_changes(old, new, EventResource.TARGET_POD):
            self.in_flight.record(ObservedEvent(event, old, new, self.hint_maps[event], only_uid=new.uid))

    def _wake(self, queued: QueuedEntity, old: PodInfo) -> None:
        new = queued.pod_info
        events = pod_changes(old, new, EventResource.TARGET_POD)
        if queued.sub_queue is SubQueue.GATED:
            # The gate reads the pod itself, so it runs again rather than a hint about the pod.
            self.sub_queues.requeue(queued, events[0].label)
            return
        failures: Counter[str] = Counter()
        for event in events:
            observed = ObservedEvent(event, old, new, self.hint_maps[event])
            if is_pod_worth_requeuing(queued, observed, failures):
                self.sub_queues.requeue(queued, event.label)
                return


def _same_version(known: PodInfo, new: PodInfo) -> bool:
    return _version(known) == _version(new) != ""


def _version(pod: PodInfo) -> str:
    return pod.pod.metadata.resource_version


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
        is_worth = worth_requeuing(observed, sub_queues.settings.profiles)
        asked = 0
        for queued in sub_queues.waiting.held_by(observed.hint_map):
            if queued.sequence < sequence and observed.concerns(queued.pod_info):
                if is_worth(queued):
                    sub_queues.requeue(queued, label)
                asked += 1
                if asked % step == 0:
                    yield
