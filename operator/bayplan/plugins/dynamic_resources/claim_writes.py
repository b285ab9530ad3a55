"""What is written on claims, request by request (upstream: dynamicresources.go bindClaim, Unreserve, PostFilter).

Each write is a patch that names the version it was made for, so that nothing of a claim is overwritten that is not read
here. After a conflict the claim is read again.
"""

from collections.abc import Container, Generator, Sequence
from typing import Any, Final
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from bayplan.api.claim_objects import AllocationResult, ResourceClaim
from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.kinds import path_segment
from bayplan.api.meta_objects import generated_name, key_of
from bayplan.api.objects import Pod
from bayplan.api.response import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiCall, ApiResponse, decode_status
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.status import Conversation, EffectError, Notice
from bayplan.plugins.dynamic_resources.extended_claim import pod_of
from bayplan.plugins.dynamic_resources.pod_claims import is_reserved_for
from bayplan.plugins.dynamic_resources.stored_claim import PROTOBUF, with_finalizer

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps a claim from vanishing while it has devices."""
_TRIES: Final = 5
_PAUSE_SECONDS: Final = 0.01
"""As often as client-go tries, and after as long (util/retry DefaultRetry)."""
_INVALID: Final = 422
"""What a write in JSON is answered for a claim whose opaque parameters were stored with white space."""
_NO_ANSWER: Final = "no answer from the API server"
_RANDOM: Final = 5
"""A name that is made ends in so many random letters (upstream: apiserver pkg/storage/names/generate.go)."""

_decoder = msgspec.json.Decoder(ResourceClaim)
_pod_decoder = msgspec.json.Decoder(Pod)

_Writing = Generator[ApiCall | Notice | float, ApiResponse | None, ResourceClaim]


class UnansweredError(EffectError):
    """Nobody answered: what was sent may yet be carried out."""


def bind_claim(
    claim: ResourceClaim, known: ResourceClaim, allocation: AllocationResult | None, pod: PodInfo
) -> _Writing:
    """Write the allocation, if there is one to write, and that the pod may use the claim; return what it is then.

    It was decided when the claim was as `known`: it must have these devices still, or none if there are some to write.
    An allocation that is there already is ours if it has the same devices: the answer to its write was lost, or another
    pod of the group wrote it.

    Raises:
        EffectError: the claim is not what it was, or the API server refuses.
    """
    key = key_of(claim.metadata)
    for attempt in range(_TRIES):
        if attempt:
            yield _PAUSE_SECONDS
            claim = _read((yield ApiCall("GET", _path(claim), key)), f"get updated claim {key} after conflict")
        check(claim, known, allocation)
        if is_reserved_for(claim, pod):
            return claim
        is_new = claim.status.allocation is None
        if is_new and FINALIZER not in (claim.metadata.finalizers or ()):
            answer = yield _patch(
                claim, STRATEGIC_MERGE_PATCH, {"metadata": {**_version(claim), "finalizers": [FINALIZER]}}
            )
            if _is_conflict(answer):
                continue
            if answer is not None and answer.status == _INVALID and claim.spec.devices.config:
                yield from _add_finalizer_as_stored(claim)
                continue
            claim = _read(answer, f"add finalizer to claim {key}")
        answer = yield _patch(
            claim, STRATEGIC_MERGE_PATCH, _status(claim, allocation if is_new else None, pod), "/status"
        )
        if not _is_conflict(answer):
            return _read(answer, f"add {'allocation and ' if is_new else ''}reservation to claim {key}")
    raise EffectError(f"add reservation to claim {key}: the claim was changed by others at each of {_TRIES} tries")


def _add_finalizer_as_stored(claim: ResourceClaim) -> Generator[ApiCall, ApiResponse | None, None]:
    """Add the finalizer to a claim of which JSON is refused; one that was changed meanwhile stays as it is."""
    key = key_of(claim.metadata)
    doing = f"add finalizer to claim {key}"
    stored = _taken((yield ApiCall("GET", _path(claim), key, accept=PROTOBUF)), doing)
    try:
        body = with_finalizer(stored.body, FINALIZER)
    except ValueError as error:
        raise EffectError(f"{doing}: {error}") from error
    answer = yield ApiCall("PUT", _path(claim), key, body, PROTOBUF, versioned=True)
    if not _is_conflict(answer):
        _read(answer, doing)


def check(claim: ResourceClaim | None, known: ResourceClaim, allocation: AllocationResult | None) -> ResourceClaim:
    """Return the claim if it can be bound as it was decided when it was as `known`.

    Raises:
        EffectError: it cannot.
    """
    key, decided = key_of(known.metadata), allocation or known.status.allocation
    if claim is None or claim.metadata.uid != known.metadata.uid or claim.metadata.deletion_timestamp is not None:
        raise EffectError(f"claim {key} got deleted in the meantime")
    if allocation is None and claim.status.allocation is None:
        raise EffectError(f"claim {key} got deallocated elsewhere in the meantime")
    if claim.status.allocation is not None and _devices(claim.status.allocation) != _devices(decided):
        raise EffectError(f"claim {key} got allocated elsewhere in the meantime")
    return claim


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
    answer = yield _patch(claim, MERGE_PATCH, body, "/status")
    return _read(answer, f"deallocate claim {key_of(claim.metadata)}")


def unreserve(
    claim: ResourceClaim, pod: PodInfo
) -> Generator[ApiCall | Notice | float, ApiResponse | None, ResourceClaim | None]:
    """Have the pod use the claim no longer, unless it has a node after all: its kubelet would not run it.

    Returns what the claim is then, None if it is gone or was left as it was.

    Raises:
        EffectError: the API server refuses.
    """
    answer = yield ApiCall("GET", _pod_path(pod.namespace, pod.name), pod.key)
    if _has_node(answer, pod.uid):
        return None
    entry = {"$patch": "delete", "uid": pod.uid}
    body = {"metadata": {"uid": claim.metadata.uid}, "status": {"reservedFor": [entry]}}
    answer = yield _patch(claim, STRATEGIC_MERGE_PATCH, body, "/status")
    if answer is not None and answer.status == 404:
        return None
    return _read(answer, f"unreserve claim {key_of(claim.metadata)}")


def others_may_run(
    claim: ResourceClaim, pod: PodInfo, binding: Container[str]
) -> Generator[ApiCall, ApiResponse | None, bool]:
    """Return whether anybody else who may use the claim has a node or is in `binding`, or nobody can say."""
    others = [user for user in claim.status.reserved_for or () if user.uid != pod.uid]
    for user in others:
        if user.resource != "pods" or user.uid in binding:
            return True
        answer = yield ApiCall("GET", _pod_path(pod.namespace, user.name), key_of(claim.metadata))
        if _has_node(answer, user.uid):
            return True
    return any(user.uid in binding for user in others)


def create(claim: ResourceClaim) -> _Writing:
    """Make a claim that has no name yet; return what it is then.

    It gets its name here, as an API server would make it, so that it is made once however often it is asked for.

    Raises:
        EffectError: the API server refuses, or does not answer.
    """
    meta = claim.metadata
    named = replace(meta, name=generated_name(meta.generate_name, uuid4().hex[:_RANDOM]), uid="")
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": msgspec.to_builtins(named),
        "spec": msgspec.to_builtins(claim.spec),
    }
    about = f"create claim for extended resources {key_of(meta)}"
    answer = yield ApiCall("POST", _collection(claim), about, body)
    if _is_conflict(answer):
        # The answer to an earlier try may have been lost.
        shown = yield ApiCall("GET", _path(replace(claim, metadata=named)), about)
        if shown is not None and shown.status == 200 and pod_of(_read(shown, about)) == pod_of(claim):
            answer = shown
    return _read(answer, about)


def delete(claim: ResourceClaim, pod: PodInfo) -> Conversation:
    """Let go of a claim on extended resources and delete it, unless the pod has a node after all.

    Raises:
        EffectError: the API server refuses.
    """
    doing, uid = f"delete claim {key_of(claim.metadata)}", claim.metadata.uid
    answer = yield ApiCall("GET", _pod_path(pod.namespace, pod.name), pod.key)
    if _has_node(answer, pod.uid):
        return
    let_go = {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
    answer = yield _patch(claim, STRATEGIC_MERGE_PATCH, let_go)
    if answer is not None and answer.status == 404:
        return
    _read(answer, doing)
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    answer = yield ApiCall("DELETE", _path(claim), key_of(claim.metadata), body)
    if answer is None or (answer.status >= 300 and answer.status != 404):
        raise EffectError(f"{doing}: {_refusal(answer)}")


def tell_pod(claim: ResourceClaim, pod: PodInfo, mappings: Sequence[dict[str, Any]]) -> Conversation:
    """Write on the pod which claim stands for its extended resources, and which container has which request.

    Raises:
        EffectError: the API server refuses, or does not answer.
    """
    told = {"resourceClaimName": claim.metadata.name, "requestMappings": mappings}
    body = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": told}}
    answer = yield ApiCall("PATCH", _pod_path(pod.namespace, pod.name) + "/status", pod.key, body, MERGE_PATCH)
    _taken(answer, f"update pod {pod.key} ExtendedResourceClaimStatus")


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{path_segment(namespace)}/pods/{path_segment(name)}"


def _has_node(answer: ApiResponse | None, uid: str) -> bool:
    """Return whether the pod has a node, or that cannot be said."""
    if answer is None or answer.status != 200:
        return answer is None or answer.status != 404
    try:
        shown = _pod_decoder.decode(answer.body)
    except DECODE_ERRORS:
        return True
    return shown.metadata.uid == uid and bool(shown.spec.node_name)


def _devices(allocation: AllocationResult | None) -> list[tuple[str | None, ...]]:
    results = () if allocation is None else allocation.devices.results or ()
    return [(each.request, each.driver, each.pool, each.device, each.share_id) for each in results]


def _version(claim: ResourceClaim) -> dict[str, str]:
    return {"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version}


def _collection(claim: ResourceClaim) -> str:
    return f"/apis/resource.k8s.io/v1/namespaces/{path_segment(claim.metadata.namespace)}/resourceclaims"


def _path(claim: ResourceClaim) -> str:
    return f"{_collection(claim)}/{path_segment(claim.metadata.name)}"


def _patch(claim: ResourceClaim, kind: str, body: dict[str, Any], subresource: str = "") -> ApiCall:
    return ApiCall("PATCH", _path(claim) + subresource, key_of(claim.metadata), body, kind, versioned=True)


def _is_conflict(answer: ApiResponse | None) -> bool:
    return answer is not None and answer.status == 409


def _refusal(answer: ApiResponse | None) -> str:
    return _NO_ANSWER if answer is None else decode_status(answer.body)[1]


def _taken(answer: ApiResponse | None, doing: str) -> ApiResponse:
    """Return the answer to a request that was carried out.

    Raises:
        EffectError: it was not, with what was being done.
    """
    if answer is None:
        raise UnansweredError(f"{doing}: {_NO_ANSWER}")
    if answer.status >= 300:
        raise EffectError(f"{doing}: {_refusal(answer)}")
    return answer


def _read(answer: ApiResponse | None, doing: str) -> ResourceClaim:
    """Return the claim that was answered.

    Raises:
        EffectError: it was not, with what was being done.
    """
    try:
        return _decoder.decode(_taken(answer, doing).body)
    except DECODE_ERRORS as error:
        raise EffectError(f"{doing}: the answer cannot be read: {error}") from error
