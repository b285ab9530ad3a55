"""The writes a scheduler makes, as values: built here without I/O, performed by the dispatcher."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from bayplan.api.kinds import path_segment
from bayplan.api.objects import Condition
from bayplan.api.response import STRATEGIC_MERGE_PATCH, ApiCall
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import Binding

BINDING = "pod_binding"
STATUS_PATCH = "pod_status_patch"
"""What kube-scheduler calls these calls (upstream: framework/api_calls), in metrics."""
PREEMPTION = "DefaultPreemption"
EVENT = "event"
"""What else is counted as under way."""

# The API server takes 1.5 MB; a reason list never comes near this unless somebody made it.
_MAX_CONDITION_MESSAGE = 32 * 1024

_DRY_RUN = ["All"]


WrittenCondition = tuple[str, str]
"""The reason and the message of a PodScheduled=False condition."""


def pod_path(namespace: str, name: str) -> str:
    """The path of a pod; names are quoted, since objects from outside may hold anything."""
    return f"/api/v1/namespaces/{path_segment(namespace)}/pods/{path_segment(name)}"


def namespace_of(path: str) -> str:
    """The namespace that a request is about, "" for none: whose share of the API server's attention it takes."""
    _, found, rest = path.partition("/namespaces/")
    return rest.partition("/")[0] if found else ""


def resource_of(path: str) -> str:
    """The kind of object that a request is about, in the plural and with the subresource, as in `pods/binding`."""
    parts = path.partition("?")[0].partition("/namespaces/")[2].split("/")[1:]
    return "/".join(parts[::2])


def binding_call(binding: Binding) -> ApiCall:
    """The POST that binds a pod; the UID makes the API server refuse a recreated pod of the same name."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": binding.namespace, "name": binding.name, "uid": binding.uid},
        "target": {"kind": "Node", "name": binding.node_name},
    }
    path = f"{pod_path(binding.namespace, binding.name)}/binding"
    return ApiCall("POST", path, f"{binding.namespace}/{binding.name}", msgspec.json.encode(body))


def pod_scheduled_call(
    pod: PodInfo,
    reason: str,
    message: str,
    now: datetime,
    *,
    written: WrittenCondition | None = None,
    nomination: str | None = None,
) -> ApiCall | None:
    """The PATCH that sets PodScheduled=False, or None if the pod's condition is that already.

    `nomination` is written in the same request, even if the condition stays the same: autoscalers look at both and
    must never see the condition alone. "" ends a nomination, None leaves it alone.

    `written` is what was written since this version of the pod, and then counts instead of the pod's own condition.
    The UID makes the API server refuse a recreated pod. The transition time is left alone while the status stays False,
    as kube-scheduler does (upstream: pkg/api/v1/pod UpdatePodCondition).
    """
    message = condition_message(message)
    old = _condition(pod, "PodScheduled")
    if nomination is None and (written or shown_condition(pod)) == (reason, message):
        return None
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    nominated = {} if nomination is None else {"nominatedNodeName": nomination or None}
    return _condition_call(pod, old, condition, now, nominated)


def shown_condition(pod: PodInfo) -> WrittenCondition | None:
    """The pod's PodScheduled=False condition in this version of it; None if it has none."""
    shown = _condition(pod, "PodScheduled")
    return None if shown is None or shown.status != "False" else (shown.reason, shown.message)


def nomination_call(pod: PodInfo, node_name: str) -> ApiCall:
    """The PATCH that writes a pod's nomination, "" to take it back, and leaves the rest of its status alone."""
    return _status_call(pod, {"nominatedNodeName": node_name or None})


def disruption_target_call(
    victim: PodInfo, scheduler_name: str, now: datetime, preemptor: str = "pod"
) -> ApiCall | None:
    """The PATCH of a victim's DisruptionTarget condition, or None if that is set; `preemptor` is a pod or a podgroup.

    Upstream: preemption/executor.go.
    """
    message = f"{scheduler_name}: preempting to accommodate a higher priority {preemptor}"
    reason = "PreemptionByScheduler"
    old = _condition(victim, "DisruptionTarget")
    if old is not None and (old.status, old.reason, old.message) == ("True", reason, message):
        return None
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    return _condition_call(victim, old, condition, now, {})


def delete_call(victim: PodInfo, *, dry_run: bool = False) -> ApiCall:
    """The DELETE of a victim with its own grace period; the UID spares a recreated pod of the same name.

    A `dry_run` is admitted or refused, and ends nobody.
    """
    body: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": victim.uid}}
    if dry_run:
        body["dryRun"] = _DRY_RUN
    return ApiCall("DELETE", pod_path(victim.namespace, victim.name), victim.key, msgspec.json.encode(body))


def eviction_call(victim: PodInfo, *, dry_run: bool = False) -> ApiCall:
    """The POST that requests a victim's end and is refused with 429 if a PodDisruptionBudget forbids it.

    A `dry_run` is admitted or refused, and ends nobody.
    """
    options: dict[str, Any] = {"preconditions": {"uid": victim.uid}}
    path = f"{pod_path(victim.namespace, victim.name)}/eviction"
    if dry_run:
        # The API server wants both to say the same; webhooks see what the query says.
        options["dryRun"] = _DRY_RUN
        path += "?dryRun=All"
    body = {
        "kind": "Eviction",
        "apiVersion": "policy/v1",
        "metadata": {"namespace": victim.namespace, "name": victim.name},
        "deleteOptions": options,
    }
    return ApiCall("POST", path, victim.key, msgspec.json.encode(body))


def merged_patch(older: ApiCall, newer: ApiCall) -> ApiCall:
    """One status patch that does what both would do in turn, for patches made here; lists are taken from the newer."""
    first, second = msgspec.json.decode(older.body or b"{}"), msgspec.json.decode(newer.body or b"{}")
    second["status"] = {**first.get("status", {}), **second.get("status", {})}
    return replace(newer, body=msgspec.json.encode(second))


def _condition_call(
    pod: PodInfo, old: Condition | None, condition: dict[str, Any], now: datetime, status: dict[str, Any]
) -> ApiCall:
    """The PATCH of a condition that was `old`, and of the rest of `status`."""
    if pod.pod.metadata.generation:
        condition["observedGeneration"] = pod.pod.metadata.generation
    if old is None or old.status != condition["status"]:
        condition["lastTransitionTime"] = rfc3339(now)
    return _status_call(pod, {"conditions": [condition], **status})


def _status_call(pod: PodInfo, status: dict[str, Any]) -> ApiCall:
    body = {"metadata": {"uid": pod.uid}, "status": status}
    path = f"{pod_path(pod.namespace, pod.name)}/status"
    return ApiCall("PATCH", path, pod.key, msgspec.json.encode(body), STRATEGIC_MERGE_PATCH)


def _condition(pod: PodInfo, kind: str) -> Condition | None:
    return next((c for c in pod.pod.status.conditions or () if c.type == kind), None)


def condition_message(message: str) -> str:
    """The message as it can be written: bounded, and Unicode that can be encoded."""
    return message[:_MAX_CONDITION_MESSAGE].encode(errors="replace").decode()


def utc_now() -> datetime:
    """The time that is written on objects."""
    return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """A metav1.Time: whole seconds, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(moment: datetime) -> str:
    """A metav1.MicroTime: six digits, UTC."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
