"""Finds the pod that schedules now, by the Lease that the replicas contend for."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import msgspec

from bayplan.api.client import ApiClient
from bayplan.api.decoding import DECODE_ERRORS
from bayplan.api.kinds import path_segment
from bayplan.client.api_answers import answer_to, unexpected
from bayplan.client.errors import ClientError, NotReachedError
from bayplan.client.target import LEASE

NAMESPACES: Final = ("bayplan-system", "kube-system")
"""Where the manifests put it."""


@dataclass(frozen=True, slots=True)
class SchedulerPod:
    """The pod that holds the Lease."""

    namespace: str
    name: str


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


async def find_leader(api: ApiClient, namespaces: Sequence[str] = NAMESPACES, lease: str = LEASE) -> SchedulerPod:
    """Return the pod that holds the Lease in the first of `namespaces` that has one.

    A replica's identity is its host name, which is its pod's, and what tells it from the one before it.

    Raises:
        NotReachedError: there is no such Lease, or nobody holds it.
        ClientError: it may not be read, or the API server answers otherwise.
    """
    for namespace in namespaces:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{path_segment(namespace)}/leases/{path_segment(lease)}"
        answer = await answer_to(api, "GET", path)
        if answer.status == HTTPStatus.NOT_FOUND:
            continue
        where = f"Lease {namespace}/{lease}"
        if answer.status == HTTPStatus.FORBIDDEN:
            raise ClientError(f"you may not read {where}: the right to it is `get` of leases in {namespace}")
        if answer.status != HTTPStatus.OK:
            raise unexpected(where, answer)
        try:
            holder = msgspec.json.decode(answer.body, type=_Lease).spec.holder_identity or ""
        except DECODE_ERRORS:
            raise ClientError(f"{where} cannot be read") from None
        if not holder:
            raise NotReachedError(f"nobody holds {where}: no replica schedules at the moment")
        return SchedulerPod(namespace, holder.rpartition("_")[0] or holder)
    there = " or ".join(f"{namespace}/{lease}" for namespace in namespaces)
    raise NotReachedError(
        f"there is no Lease {there}: say where the scheduler runs by --scheduler-namespace and --lease"
    )
