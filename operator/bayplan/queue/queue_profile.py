"""What the scheduling queue needs of a scheduling profile."""

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import EventRegistration
from bayplan.framework.runtime import Framework

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GateRejection:
    """A plugin's refusal to let a pod into the queue yet."""

    plugin: str
    message: str


@dataclass(frozen=True, slots=True)
class QueueProfile:
    """What the queue needs of a scheduling profile.

    `pre_enqueue` returns what holds a pod back, None if nothing does. `registrations` are the events that may help the
    pods each plugin rejected; a gating plugin must register the event that ends its gate. Pods with the same `shape`
    get the same answers of all hints about nodes; a pod whose shape is None is like no other.
    """

    pre_enqueue: Callable[[PodInfo], GateRejection | None]
    registrations: Mapping[str, Sequence[EventRegistration]]
    shape: Callable[[PodInfo], Hashable] = lambda pod: None

    def gate(self, pod: PodInfo) -> GateRejection | None:
        """Return what holds the pod back, None if nothing does; a gate that cannot answer holds it."""
        try:
            return self.pre_enqueue(pod)
        except Exception:
            # It runs again on an update or an activation.
            logger.exception("PreEnqueue failed, pod is held back pod=%s", pod.key)
            return GateRejection("PreEnqueue", "the check failed")


def queue_profile(framework: Framework) -> QueueProfile:
    """Return what the queue needs of this profile."""

    def pre_enqueue(pod: PodInfo) -> GateRejection | None:
        status = framework.run_pre_enqueue(pod)
        return None if status.ok else GateRejection(status.plugin, status.message)

    return QueueProfile(pre_enqueue, framework.registrations(), framework.signature)
