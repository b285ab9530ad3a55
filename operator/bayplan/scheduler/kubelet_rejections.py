"""Pods that a kubelet rejected although a scheduler thought that they fit: counted, logged, and heeded if asked to."""

import logging
from collections.abc import Collection
from typing import Final

from bayplan.api.meta_objects import ObjectMeta, Struct
from bayplan.metrics.table import KUBELET_REASONS, Metrics
from bayplan.scheduler.node_backoff import NodeBackoff

logger = logging.getLogger(__name__)

REJECTED_PODS: Final = "spec.nodeName!=,status.phase=Failed"
"""The field selector of the pods among which those are; the watch of pods on nodes leaves them out."""

_MESSAGE: Final = "Pod was rejected: "
_NO_ROOM: Final = ("OutOf", "UnexpectedAdmissionError")
_OTHER, _EXTENDED = "Other", "OutOfExtendedResources"


class FailedPodSpec(Struct, frozen=True):
    """Where a pod was, and who placed it."""

    node_name: str = ""
    scheduler_name: str = ""


class FailedPodStatus(Struct, frozen=True):
    """Why a pod failed."""

    reason: str = ""
    message: str = ""


class FailedPod(Struct, frozen=True):
    """What is kept of a pod that failed on a node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: FailedPodSpec = FailedPodSpec()
    status: FailedPodStatus = FailedPodStatus()


class KubeletRejections:
    """Hears of failed pods and tells of those of `scheduler_names` that a kubelet did not admit.

    Each is told once, when it fails; those that had failed before the first list are not. With `backoff` the node of a
    pod that found no room there is left alone for a while.
    """

    def __init__(self, scheduler_names: Collection[str], metrics: Metrics, backoff: NodeBackoff | None = None) -> None:
        self._names = scheduler_names
        self._rejections = metrics.kubelet_rejections
        self._backoff = backoff
        self._listed = False

    def on_add(self, pod: FailedPod) -> None:
        """A pod failed."""
        status = pod.status
        if not self._listed or not status.message.startswith(_MESSAGE) or pod.spec.scheduler_name not in self._names:
            return
        self._rejections.add(reason_of(status.reason))
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        logger.warning(
            "kubelet rejected a pod node=%r pod=%r reason=%r message=%r",
            *(text[:200] for text in (pod.spec.node_name, key, status.reason, status.message.removeprefix(_MESSAGE))),
        )
        if self._backoff is not None and status.reason.startswith(_NO_ROOM):
            self._backoff.rejected(pod.metadata.uid, pod.spec.node_name)

    def on_update(self, old: FailedPod, new: FailedPod) -> None:
        """A failed pod changed, perhaps to say only now that it was rejected."""
        if not old.status.message.startswith(_MESSAGE):
            self.on_add(new)

    def on_delete(self, pod: FailedPod) -> None:
        """A failed pod was deleted."""

    def on_synced(self) -> None:
        """All pods that had failed before are known."""
        self._listed = True


def reason_of(reason: str) -> str:
    """Return the one of KUBELET_REASONS that a reason counts as: whoever writes a pod's status can make up others."""
    if reason in KUBELET_REASONS:
        return reason
    return _EXTENDED if reason.startswith("OutOf") else _OTHER
