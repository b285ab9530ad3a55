"""The writes a scheduler makes, as values: built here without I/O, performed by the dispatcher."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from bayplan.api.client import path_segment
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import Binding

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

# The API server takes 1.5 MB; a reason list never comes near this unless somebody made it.
_MAX_CONDITION_MESSAGE = 32 * 1024


WrittenCondition = tuple[str, str]
"""The reason and the message of a PodScheduled=False condition."""


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request: what to send where; `about` names the object for logs."""

    method: str
    path: str
    body: bytes | None
    content_type: str
    about: str


def pod_path(namespace: str, name: str) -> str:
    """The path of a pod; names are quoted, since objects from outside may hold anything."""
    return f"/api/v1/namespaces/{path_segment(namespace)}/pods/{path_segment(name)}"


def binding_call(binding: Binding) -> ApiCall:
    """The POST that binds a pod; the UID makes the API server refuse a recreated pod of the same name."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": binding.namespace, "name": binding.name, "uid": binding.uid},
        "target": {"kind": "Node", "name": binding.node_name},
    }
    path = f"{pod_path(binding.namespace, binding.name)}/binding"
    return ApiCall("POST", path, msgspec.json.encode(body), JSON, f"{binding.namespace}/{binding.name}")


def pod_scheduled_call(
    pod: PodInfo, reason: str, message: str, now: datetime, *, written: WrittenCondition | None = None
) -> ApiCall | None:
    """The PATCH that sets PodScheduled=False, or None if the pod says exactly that already.

    `written` is what was written since this version of the pod, which then counts instead of what the pod says. The UID
    makes the API server refuse a recreated pod. The transition time is left alone while the status stays False, as
    kube-scheduler does (upstream: pkg/api/v1/pod UpdatePodCondition).
    """
    message = condition_message(message)
    old = next((c for c in pod.pod.status.conditions or () if c.type == "PodScheduled"), None)
    if written is None and old is not None and old.status == "False":
        written = (old.reason, old.message)
    if written == (reason, message):
        return None
    condition: dict[str, Any] = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    if pod.pod.metadata.generation:
        condition["observedGeneration"] = pod.pod.metadata.generation
    if old is None or old.status != "False":
        condition["lastTransitionTime"] = rfc3339(now)
    body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
    path = f"{pod_path(pod.namespace, pod.name)}/status"
    return ApiCall("PATCH", path, msgspec.json.encode(body), STRATEGIC_MERGE_PATCH, pod.key)


def condition_message(message: str) -> str:
    """The message as it can be written: bounded, and Unicode that can be encoded."""
    return message[:_MAX_CONDITION_MESSAGE].encode(errors="replace").decode()


def rfc3339(moment: datetime) -> str:
    """A metav1.Time: whole seconds, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(moment: datetime) -> str:
    """A metav1.MicroTime: six digits, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
