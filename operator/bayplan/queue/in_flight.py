"""Pods being scheduled or bound, and the events they missed meanwhile (upstream: inFlightPods, inFlightEvents)."""

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from bayplan.cache.pod_info import PodInfo
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.queueing_hints import ObservedEvent


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
    """Keeps each event exactly as long as a pod that was in flight when it came is still in flight.

    So the record stays as short as the slowest cycle allows, provided every popped pod is handed back or done.
    """

    __slots__ = ("_dropped", "_events", "_pods")

    def __init__(self) -> None:
        # In order of popping, so the first pod is the one that needs the oldest event.
        self._pods: OrderedDict[str, InFlightPod] = OrderedDict()
        self._events: deque[ObservedEvent] = deque()
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[InFlightPod]:
        return iter(self._pods.values())

    def get(self, uid: str) -> InFlightPod | None:
        """Return the pod of this uid, if it is in flight."""
        return self._pods.get(uid)

    def start(self, queued: QueuedPodInfo) -> None:
        """Count the pod as in flight; from now on it misses nothing."""
        assert queued.uid not in self._pods, f"pod {queued.pod_info.key} is in flight already"
        self._pods[queued.uid] = InFlightPod(queued, self._dropped + len(self._events))

    def record(self, observed: ObservedEvent) -> None:
        """Keep the event for the pods in flight, unless no plugin registered for it."""
        if self._pods and observed.hint_map:
            self._events.append(observed)

    def missed(self, pod: InFlightPod) -> Iterator[ObservedEvent]:
        """Give the events since the pod's pop that concern it, oldest first."""
        for observed in islice(self._events, pod.since - self._dropped, None):
            if observed.concerns(pod.queued.pod_info):
                yield observed

    def done(self, uid: str) -> None:
        """Forget the pod, and the events that only it still needed."""
        if self._pods.pop(uid, None) is None:
            return
        if not self._pods:
            self._dropped += len(self._events)
            self._events.clear()
            return
        needed = next(iter(self._pods.values())).since
        while self._dropped < needed:
            self._events.popleft()
            self._dropped += 1

    def validate(self) -> None:
        """Assert that no event is kept that no pod in flight needs, and none is gone that one needs."""
        since = [pod.since for pod in self._pods.values()]
        assert since == sorted(since), "pods in flight out of order"
        assert not since or since[0] == self._dropped, "the first pod in flight and the first event do not meet"
        assert since or not self._events, "events kept for nobody"
