"""What the queue needs of a configuration: its profiles, the order of pods, and the back-offs."""

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import EventRegistration
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Status

logger = logging.getLogger(__name__)

SortKey = tuple[Any, ...]


def priority_sort(pod: PodInfo, timestamp: float) -> SortKey:
    """Return PrioritySort's key: higher priority first, then whoever has waited longer."""
    return (-pod.priority, timestamp)


@dataclass(frozen=True, slots=True)
class QueueProfile:
    """What the queue needs of a scheduling profile.

    `pre_enqueue` gives the refusal that holds a pod back, or a status that is ok. `registrations` are the events that
    may help the pods each plugin rejected; a gating plugin must register the event that ends its gate. Pods with the
    same `shape` get the same answers of all hints about nodes; a pod whose shape is None is like no other.
    """

    pre_enqueue: Callable[[PodInfo], Status]
    registrations: Mapping[str, Sequence[EventRegistration]]
    shape: Callable[[PodInfo], Hashable] = lambda pod: None

    def gate(self, pod: PodInfo) -> Status:
        """Return what `pre_enqueue` says; a gate that cannot answer holds the pod."""
        try:
            return self.pre_enqueue(pod)
        except Exception:
            # It runs again on an update.
            logger.exception("PreEnqueue failed, pod is held back pod=%s", pod.key)
            return Status(Code.ERROR, ("the check failed",), "PreEnqueue")

    def shape_or_none(self, pod: PodInfo) -> Hashable:
        """Return the pod's shape; None for a pod nobody can read: its next attempt reports why."""
        try:
            return self.shape(pod)
        except Exception:  # noqa: BLE001  as above
            return None


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """All that a configuration says of the queue: its profiles by name, the order of pods, and the back-offs."""

    profiles: Mapping[str, QueueProfile]
    sort_key: Callable[[PodInfo, float], SortKey] = priority_sort
    initial_backoff_seconds: int = 1
    max_backoff_seconds: int = 10


def queue_settings(frameworks: Mapping[str, Framework], *backoff_seconds: int) -> QueueSettings:
    """Return what the queue needs of these profiles, which all sort alike; with the first and the longest back-off."""
    profiles = {
        name: QueueProfile(each.run_pre_enqueue, each.registrations(), each.signature)
        for name, each in frameworks.items()
    }
    return QueueSettings(profiles, next(iter(frameworks.values())).queue_sort.sort_key, *backoff_seconds)
