"""What the queue says of the pods it holds."""

from collections.abc import Mapping
from itertools import chain

from bayplan.cache.group_members import PodGroupKey
from bayplan.cache.pod_info import PodInfo
from bayplan.queue.in_flight import InFlightPods
from bayplan.queue.queued_groups import QueuedGroups
from bayplan.queue.queued_pod import QueuedPodInfo, SubQueue
from bayplan.queue.sub_queues import SubQueues


class QueueContents:
    """The questions about pods that the queue answers to everybody, whether they wait alone or in a group."""

    _sub_queues: SubQueues
    _in_flight: InFlightPods
    _groups: QueuedGroups

    def pending(self) -> dict[str, int]:
        """Return the number of pods by sub-queue, under the labels of scheduler_pending_pods."""
        pods, members = self._sub_queues.pending(), self._groups.pending()
        return {label: number + members[label] for label, number in pods.items()}

    def entities(self) -> dict[tuple[str, str], int]:
        """Return how many pods without a group, and groups, stand where, under the labels of scheduler_queued_entities.

        Members whose group is not known are neither.
        """
        groups, counts = self._groups.standing(), self._sub_queues.pending()
        pods = {(queue, "pod"): number - groups[queue] for queue, number in counts.items()}
        return pods | {(queue, "podgroup"): groups[queue] for queue in counts}

    def oldest_age(self) -> float:
        """Return since how many seconds the pod is tried that waits longest, alone or in a group; 0 without any.

        What a gate or its group holds does not wait for room. One in flight does until it has its node.
        """
        waiting = (each for each in self.queued() if each.sub_queue is not SubQueue.GATED)
        in_flight = (each.queued for each in self._in_flight if not each.deleted)
        since = (each.initial_attempt_timestamp for each in chain(waiting, in_flight))
        oldest = min((each for each in since if each is not None), default=None)
        return 0.0 if oldest is None else self._sub_queues.clock() - oldest

    def oldest_group_age(self) -> float:
        """Return since how many seconds the gang is tried that waits longest for room; 0 without any."""
        return self._groups.oldest_age()

    def in_flight_events(self) -> Mapping[str, int]:
        """Return what is kept for the pods in flight by event, under the labels of scheduler_inflight_events."""
        return self._in_flight.events()

    def uids(self) -> set[str]:
        """Return every pod the queue counts as existing, queued or in flight."""
        return {*(each.uid for each in self.queued()), *(pod.queued.uid for pod in self._in_flight if not pod.deleted)}

    def queued(self) -> list[QueuedPodInfo]:
        """Return every pod that stands in a sub-queue, in no particular order; those in flight stand in none."""
        pods = (each for each in self._sub_queues.entities.values() if isinstance(each, QueuedPodInfo))
        return [*pods, *self._groups]

    def in_flight(self) -> list[PodInfo]:
        """Return the pods that are being tried or bound, but for those that were deleted meanwhile."""
        return [pod.pod_info for pod in self._in_flight if not pod.deleted]

    def get(self, uid: str) -> QueuedPodInfo | None:
        """Return the pod, queued or in flight; None when unknown or deleted."""
        in_flight = self._in_flight.get(uid)
        return in_flight.queued if in_flight is not None and not in_flight.deleted else self._waiting(uid)

    def group_of(self, pod: PodInfo) -> PodGroupKey | None:
        """Return the group that the pod is a member of; None for an ordinary pod."""
        return self._groups.key_of(pod)

    def groups_back_off_until(self) -> float | None:
        """Return when the last of the groups that back off may be tried again; None while none does."""
        return self._groups.back_off_until()

    def _waiting(self, uid: str) -> QueuedPodInfo | None:
        return self._sub_queues.pod(uid) or self._groups.get(uid)

    def newest(self, uid: str) -> PodInfo | None:
        """Return the newest version of the pod that the queue received; None when unknown or deleted."""
        in_flight = self._in_flight.get(uid)
        if in_flight is not None and not in_flight.deleted:
            return in_flight.pod_info
        queued = self._waiting(uid)
        return None if queued is None else queued.pod_info

    def is_alive(self, uid: str) -> bool:
        """Return whether the pod is known and its deletion has not begun."""
        newest = self.newest(uid)
        return newest is not None and not newest.is_terminating
