"""What a kubelet does, the suite counts on and kwok leaves out, for all nodes of a cluster."""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from http.client import HTTPException

from e2e.controlplane.client import ApiClient, ApiError, Object, Objects
from e2e.controlplane.turns import TurnTaker

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.25


def due_pods(pods: Iterable[Object], now: datetime) -> Objects:
    """Returns the pods on nodes whose grace period has passed and whose end no one has reported yet."""
    return [pod for pod in pods if pod["spec"].get("nodeName") and _is_due(pod["metadata"], now)]


def _is_due(metadata: Object, now: datetime) -> bool:
    deleted_at = metadata.get("deletionTimestamp")
    # With a grace period of 0 the end is reported, and only a finalizer keeps the object.
    return bool(
        deleted_at and metadata.get("deletionGracePeriodSeconds", 0) > 0 and datetime.fromisoformat(deleted_at) <= now
    )


def allocatable_change(node: Object) -> dict[str, str | None]:
    """Returns the merge patch after which all of a node's capacity is allocatable; None takes an entry away."""
    status = node.get("status", {})
    capacity, allocatable = status.get("capacity", {}), status.get("allocatable", {})
    gone = {name: None for name in allocatable if name not in capacity}
    return {name: amount for name, amount in capacity.items() if allocatable.get(name) != amount} | gone


class Kubelets(TurnTaker):
    """Ends deleted pods when their grace period has passed, and makes what nodes have allocatable.

    kwok deletes by name, so that it may end the pod that took the name of the one it was about. Here the UID must be
    the same. An extended resource that a test adds to a node's capacity is allocatable soon after.
    """

    def __init__(self, client: ApiClient) -> None:
        super().__init__("kubelets", every_seconds=POLL_SECONDS)
        self._client = client

    def turn(self) -> None:
        """Looks once at all nodes and pods and does what is due; what cannot be done is left to the next turn."""
        try:
            self._allocate()
            pods = self._client.list("pods", fieldSelector="spec.nodeName!=")
            for pod in due_pods(pods, datetime.now(UTC)):
                self._client.end_pod(pod)
        except (ApiError, OSError, HTTPException) as error:
            logger.warning("kubelets could not do their work error=%r", error)

    def _allocate(self) -> None:
        for node in self._client.list("nodes"):
            change = allocatable_change(node)
            if change:
                patch = {"status": {"allocatable": change}}
                self._client.patch("nodes", node["metadata"]["name"], patch, subresource="status")
