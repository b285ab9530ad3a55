"""What is written on claims, request by request (upstream: dynamicresources.go bindClaim, Unreserve, PostFilter).

Each write is a patch that names the version it was made for, so that nothing of a claim is overwritten that is not read
here. After a conflict the claim is read again.
"""

from collections.abc import Generator
from typing import Any, Final

import msgspec

from bayplan.api.claim_objects import AllocationResult, ResourceClaim
from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.kinds import path_segment
from bayplan.api.meta_objects import key_of
from bayplan.api.objects import Pod
from bayplan.api.response import ApiResponse, decode_status
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.status import Conversation, EffectError, Notice, Request
from bayplan.plugins.dynamic_resources.pod_claims import is_reserved_for

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps a claim from vanishing while it has devices."""
_MERGE_PATCH: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_TRIES: Final = 5
_PAUSE_SECONDS: Final = 0.01
"""As often as client-go tries, and after as long (util/retry DefaultRetry)."""

_decoder = msgspec.json.Decoder(ResourceClaim)
_pod_decoder = msgspec.json.Decoder(Pod)

_Writing = Generator[Request | Notice | float, ApiResponse | None, ResourceClaim]


def bind_claim(claim: ResourceClaim, allocation: AllocationResult | None, pod: PodInfo) -> _Writing:
    """Write the allocation, if there is one to write, and that the pod may use the claim; return what it is then.

    An allocation that is there already is ours if it has the same devices: the answer to its write was lost, or another
    pod of the group wrote it.

    Raises:
        EffectError: the claim is not what it was, or the API server refuses.
    """
    key = key_of(claim.metadata)
    for attempt in range(_TRIES):
        if attempt:
            yield _PAUSE_SECONDS
            claim = _read((yield Request("GET", _path(claim), key)), f"get updated claim {key} after conflict")
        _check(claim, allocation)
        if is_reserved_for(claim, pod):
            return claim
        is_new = claim.status.allocation is None
        if is_new and FINALIZER not in (claim.metadata.finalizers or ()):
            answer = yield _patch(claim, _STRATEGIC, {"metadata": {**_version(claim), "finalizers": [FINALIZER]}})
            if _is_conflict(answer):
                continue
            claim = _read(answer, f"add finalizer to claim {key}")
        answer = yield _patch(claim, _STRATEGIC, _status(claim, allocation if is_new else None, pod), "/status")
        if not _is_conflict(answer):
            return _read(answer, f"add {'allocation and ' if is_new else ''}reservation to claim {key}")
    raise EffectError(f"add reservation to claim {key}: the claim was changed by others at each of {_TRIES} tries")


def _check(claim: ResourceClaim, allocation: AllocationResult | None) -> None:
    """Make sure that the claim can be bound as it was decided.

    Raises:
        EffectError: it cannot.
    """
    key, is_there = key_of(claim.metadata), claim.status.allocation is not None
    if claim.metadata.deletion_timestamp is not None:
        raise EffectError(f"claim {key} got deleted in the meantime")
    if allocation is None and not is_there:
        raise EffectError(f"claim {key} got deallocated elsewhere in the meantime")
    if allocation is not None and is_there and not _is_same(claim.status.allocation, allocation):
        raise EffectError(f"claim {key} got allocated elsewhere in the meantime")


def _status(claim: ResourceClaim, allocation: AllocationResult | None, pod: PodInfo) -> dict[str, Any]:
    status: dict[str, Any] = {"reservedFor": [{"resource": "pods", "name": pod.name, "uid": pod.uid}]}
    if allocation is not None:
        status["allocation"] = msgspec.to_builtins(allocation)
    return {"metadata": _version(claim), "status": status}


def deallocate(claim: ResourceClaim) -> _Writing:
    """Take a claim's devices away, unless it was changed since it was read; return what it is then.

    Raises:
        EffectError: it was, or the API server refuses.
    """
    status = {"allocation": None, "reservedFor": None, "devices": None}
    body = {"metadata": _version(claim), "status": status}
    answer = yield _patch(claim, _MERGE_PATCH, body, "/status")
    return _read(answer, f"deallocate claim {key_of(claim.metadata)}")


def unreserve(claim: ResourceClaim, pod: PodInfo) -> Conversation:
    """Have the pod use the claim no longer, unless it has a node after all: its kubelet would not run it.

    Raises:
        EffectError: the API server refuses.
    """
    path = f"/api/v1/namespaces/{path_segment(pod.namespace)}/pods/{path_segment(pod.name)}"
    answer = yield Request("GET", path, pod.key)
    if answer is None or (answer.status != 404 and _has_node(answer, pod)):
        return
    entry = {"$patch": "delete", "uid": pod.uid}
    body = {"metadata": {"uid": claim.metadata.uid}, "status": {"reservedFor": [entry]}}
    answer = yield _patch(claim, _STRATEGIC, body, "/status")
    if answer is None or answer.status != 404:
        _read(answer, f"unreserve claim {key_of(claim.metadata)}")


def _has_node(answer: ApiResponse, pod: PodInfo) -> bool:
    """Return whether the pod has a node, or that cannot be said."""
    try:
        shown = _pod_decoder.decode(answer.body)
    except DECODE_ERRORS:
        return True
    return answer.status != 200 or (shown.metadata.uid == pod.uid and bool(shown.spec.node_name))


def _is_same(one: AllocationResult | None, other: AllocationResult) -> bool:
    return one is not None and _devices(one) == _devices(other)


def _devices(allocation: AllocationResult) -> list[tuple[str | None, ...]]:
    results = allocation.devices.results or ()
    return [(each.request, each.driver, each.pool, each.device, each.share_id) for each in results]


def _version(claim: ResourceClaim) -> dict[str, str]:
    return {"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version}


def _path(claim: ResourceClaim) -> str:
    namespace, name = path_segment(claim.metadata.namespace), path_segment(claim.metadata.name)
    return f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}"


def _patch(claim: ResourceClaim, kind: str, body: dict[str, Any], subresource: str = "") -> Request:
    return Request("PATCH", _path(claim) + subresource, key_of(claim.metadata), body, kind, versioned=True)


def _is_conflict(answer: ApiResponse | None) -> bool:
    return answer is not None and answer.status == 409


def _read(answer: ApiResponse | None, doing: str) -> ResourceClaim:
    """Return the claim that was answered.

    Raises:
        EffectError: it was not, with what was being done.
    """
    if answer is None:
        raise EffectError(f"{doing}: no answer from the API server")
    if answer.status >= 300:
        raise EffectError(f"{doing}: {decode_status(answer.body)[1]}")
    try:
        return _decoder.decode(answer.body)
    except DECODE_ERRORS as error:
        raise EffectError(f"{doing}: the answer cannot be read: {error}") from error
