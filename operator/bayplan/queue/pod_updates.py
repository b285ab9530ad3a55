"""New versions of pods that are known: what they replace, and whom they wake."""

from collections import Counter
from dataclasses import dataclass

from bayplan.api.meta_objects import is_later_version
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import EventResource
from bayplan.queue.in_flight import InFlightPod, InFlightPods
from bayplan.queue.kept_room import KeptRoom
from bayplan.queue.queued_pod import QueuedPodInfo, SubQueue
from bayplan.queue.queueing_hints import ObservedEvent, QueueingHintMaps, is_pod_worth_requeuing, pod_changes
from bayplan.queue.sub_queues import SubQueues


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
        queued = self.sub_queues.pods.get(new.uid)
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

    def _wake(self, queued: QueuedPodInfo, old: PodInfo) -> None:
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
