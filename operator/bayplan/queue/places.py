"""The parts of the queue, and the moves between them."""

from collections.abc import Callable

from bayplan.cache.pod_info import PodInfo
from bayplan.queue.keyed_heap import KeyedHeap, SortKey
from bayplan.queue.observer import QueueObserver
from bayplan.queue.queue_profile import GateRejection
from bayplan.queue.queued_pod import NO_PLUGINS, Place, QueuedPodInfo
from bayplan.queue.unschedulable_pods import UnschedulablePods

_QUEUE_NAMES = {
    Place.ACTIVE: "active",
    Place.BACKOFF: "backoff",
    Place.ERROR_BACKOFF: "backoff",
    Place.UNSCHEDULABLE: "unschedulable",
    Place.GATED: "unschedulable",
}


class Places:
    """Keeps every queued pod in exactly one place; only this class moves pods, and it reports each move."""

    __slots__ = (
        "_clock",
        "_heaps",
        "_observer",
        "_sort_key",
        "active",
        "backoff",
        "error_backoff",
        "pods",
        "waiting",
    )

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        sort_key: Callable[[PodInfo, float], SortKey],
        observer: QueueObserver,
    ) -> None:
        self._clock = clock
        self._sort_key = sort_key
        self._observer = observer
        self.pods: dict[str, QueuedPodInfo] = {}
        self.active = KeyedHeap()
        self.backoff = KeyedHeap()
        self.error_backoff = KeyedHeap()
        self.waiting = UnschedulablePods()
        self._heaps = {
            Place.ACTIVE: self.active,
            Place.BACKOFF: self.backoff,
            Place.ERROR_BACKOFF: self.error_backoff,
        }

    def enter(self, queued: QueuedPodInfo, place: Place, event: str, gate: GateRejection | None = None) -> None:
        """Moves the pod, from another place or from outside; `gate` is what holds it in GATED."""
        came_from = _QUEUE_NAMES.get(queued.place) if queued.place is not None else None
        self._vacate(queued)
        self.pods[queued.uid] = queued
        queued.gating_plugin = queued.gating_message = None
        if gate is not None:
            queued.gating_plugin, queued.gating_message = gate.plugin, gate.message
            self.set_rejectors(queued, queued.rejector_plugins | {gate.plugin})
        queued.place = place
        if place in self._heaps:
            self.sort(queued)
        else:
            self.waiting.add(queued)
        if place is Place.ACTIVE and queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._clock()
        if _QUEUE_NAMES[place] != came_from:
            self._observer.incoming(_QUEUE_NAMES[place], event)

    def leave(self, queued: QueuedPodInfo) -> None:
        """Takes the pod out of the queue and clears what rejected it."""
        self._vacate(queued)
        del self.pods[queued.uid]
        self.set_rejectors(queued, NO_PLUGINS)
        queued.pending_plugins = NO_PLUGINS
        queued.place = None

    def sort(self, queued: QueuedPodInfo) -> None:
        """Puts a pod of one of the heaps where its sort key belongs."""
        key = self._sort_key(queued.pod_info, queued.timestamp)
        if queued.place is Place.ACTIVE:
            self.active.push(queued, key)
        elif queued.place in self._heaps:
            self._heaps[queued.place].push(queued, (queued.backoff_expiration, *key))

    def set_rejectors(self, queued: QueuedPodInfo, plugins: frozenset[str]) -> None:
        """Says which plugins may wake the pod; it must not be waiting meanwhile."""
        for plugin in queued.rejector_plugins - plugins:
            self._observer.unschedulable(plugin, queued.profile, -1)
        for plugin in plugins - queued.rejector_plugins:
            self._observer.unschedulable(plugin, queued.profile, +1)
        queued.rejector_plugins = plugins

    def _vacate(self, queued: QueuedPodInfo) -> None:
        if queued.place in self._heaps:
            self._heaps[queued.place].discard(queued.uid)
        elif queued.place is not None:
            self.waiting.remove(queued)

    def pending(self) -> dict[str, int]:
        """The number of pods by part of the queue."""
        return {
            "active": len(self.active),
            "backoff": len(self.backoff) + len(self.error_backoff),
            "unschedulable": self.waiting.rejected_count,
            "gated": self.waiting.gated_count,
        }

    def validate(self) -> None:
        """Asserts that every pod is in the one place it names, and that each place may hold it."""
        for place, heap in self._heaps.items():
            heap.validate()
            assert all(queued.place is place for queued in heap), f"a pod in {place.value} thinks otherwise"
        self.waiting.validate()
        sorted_pods = [queued.uid for heap in self._heaps.values() for queued in heap]
        assert len(sorted_pods) == len(set(sorted_pods)), "a pod stands in two heaps"
        assert len(sorted_pods) + self.waiting.rejected_count + self.waiting.gated_count == len(self.pods), (
            "a pod is lost"
        )
        for uid, queued in self.pods.items():
            assert queued.uid == uid, "a pod under another uid"
            assert (queued.gating_plugin is not None) == (queued.place is Place.GATED), "a gate and its place disagree"
            assert queued.pending_plugins <= queued.rejector_plugins, "a pending plugin cannot wake its pod"
        for queued in (*self.backoff, *self.error_backoff):
            assert queued.backoff_expiration is not None, "a pod backs off without end"
        assert all(queued.rejector_plugins for queued in self.backoff), "a pod without rejector may skip its back-off"
        assert not any(queued.rejector_plugins for queued in self.error_backoff), "a rejected pod waits as an error"
