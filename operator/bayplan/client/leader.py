"""Asks the API server which pod schedules now, by the Lease of the replicas, and what it knows of another pod."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

import click
import msgspec

from bayplan.api.client import ApiClient
from bayplan.api.credentials import load_credentials
from bayplan.api.errors import DECODE_ERRORS, CredentialsError
from bayplan.api.kinds import path_segment
from bayplan.api.meta_objects import key_of, parse_time
from bayplan.api.objects import Pod
from bayplan.api.response import ApiResponse
from bayplan.client.errors import ClientError, NotReachedError, answer_to, unexpected
from bayplan.config.connections import SHIPPED_NAMESPACES
from bayplan.config.errors import did_you_mean
from bayplan.config.flags import CONTEXT, KUBECONFIG, flag
from bayplan.scheduler.api_calls import pod_path

LEASE: Final = "bayplan"
"""The Lease of the manifests."""
ACCOUNT: Final = "bayplan"
"""The ServiceAccount of the manifests that the scheduler's pods run under."""
_LONG_SECONDS: Final = 300.0
"""Who did not renew a Lease for so long after it ran out leads no more, whatever the clocks say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which scheduler is asked, and by whom, as flags say it.

    Without `server` it is the pod that holds the Lease, by a port-forward. The token is that of `token_file`, or the
    kubeconfig's own with `own_token`, or one of the ServiceAccount `bayplan-reader`.
    """

    kubeconfig: Path | None = KUBECONFIG()
    context: str | None = CONTEXT()
    namespace: str | None = flag(
        "--scheduler-namespace NAME",
        "Where the scheduler runs; otherwise bayplan-system or kube-system, if one of them has its Lease.",
    )
    lease: str = flag("--lease NAME", "The Lease of its replicas.", default=LEASE)
    service_account: str = flag(
        "--scheduler-service-account NAME",
        "The ServiceAccount of its replicas: no other pod that holds the Lease is asked.",
        default=ACCOUNT,
    )
    server: str | None = flag("--server URL", "Ask the scheduler at https://HOST:10259 instead of by a port-forward.")
    authority: Path | None = flag("--certificate-authority FILE", "Who signed the certificate at --server, PEM.")
    """None leaves that to the system's authorities."""
    insecure: bool = flag("--insecure-skip-tls-verify", "Take any certificate at --server for the scheduler's.")
    token_file: Path | None = flag("--token-file FILE", "Show the scheduler this token instead of bayplan-reader's.")
    own_token: bool = flag(
        "--own-token", "Show the scheduler the token of the kubeconfig: it could act as you with it."
    )

    def __post_init__(self) -> None:
        """Refuse flags that do not go together; raises click.UsageError."""
        if self.server is None and (self.authority is not None or self.insecure):
            raise click.UsageError("--certificate-authority and --insecure-skip-tls-verify are about --server")
        if self.authority is not None and self.insecure:
            raise click.UsageError("--certificate-authority and --insecure-skip-tls-verify exclude each other")
        if self.token_file is not None and self.own_token:
            raise click.UsageError("--token-file and --own-token exclude each other")


@dataclass(frozen=True, slots=True)
class SchedulerPod:
    """The pod that holds the Lease."""

    namespace: str
    name: str


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None
    service_account_name: str = ""

    @property
    def holder(self) -> str:
        """Who leads by this Lease; "" for nobody, also where it ran out long ago."""
        try:
            until = parse_time(self.renew_time or "") + (self.lease_duration_seconds or 0)
        except ValueError:
            until = math.inf
        return self.holder_identity or "" if time.time() - until < _LONG_SECONDS else ""


class _Object(msgspec.Struct):
    """A Lease or a pod."""

    spec: _Spec = msgspec.field(default_factory=_Spec)


async def find_namespace(api: ApiClient, namespace: str | None = None, lease: str = LEASE) -> str:
    """Return the namespace that is named, or the only shipped one with the Lease as far as it may be read.

    Of several Leases those count that somebody holds.

    Raises:
        NotReachedError: there is no such Lease.
        ClientError: there are several, it may not be read, or the API server answers otherwise.
    """
    if namespace is not None:
        return namespace
    found, refused, unheld = list[str](), list[str](), list[str]()
    for each in SHIPPED_NAMESPACES:
        answer = await answer_to(api, "GET", _path_of(each, lease))
        if answer.status == HTTPStatus.FORBIDDEN:
            refused.append(each)
        elif answer.status == HTTPStatus.OK:
            (found if _decoded(answer, f"Lease {each}/{lease}").holder else unheld).append(each)
        elif answer.status != HTTPStatus.NOT_FOUND:
            raise unexpected(f"Lease {each}/{lease}", answer)
    if len(found) > 1:
        there = " and ".join(f"{each}/{lease}" for each in found)
        advice = "say which scheduler is meant by --scheduler-namespace, or delete the one left over"
        raise ClientError(f"there are Leases {there}: {advice}")
    if not (found or refused or unheld):
        there = " or ".join(f"{each}/{lease}" for each in SHIPPED_NAMESPACES)
        raise NotReachedError(
            f"there is no Lease {there}: name the scheduler by --scheduler-namespace and --lease, or by --server"
        )
    return (found or refused or unheld)[0]


async def find_leader(api: ApiClient, target: Target) -> SchedulerPod:
    """Return the pod that holds the Lease, if it runs under the scheduler's ServiceAccount.

    A replica's identity is its host name, which is its pod's, and what tells it from the one before it. Who may write
    the Lease could name any pod, but may not give that the account.

    Raises:
        NotReachedError: there is no such Lease, nobody holds it, or its holder is no pod.
        ClientError: several namespaces have one, the holder has another account, or something may not be read.
    """
    namespace = await find_namespace(api, target.namespace, target.lease)
    where = f"Lease {namespace}/{target.lease}"
    holder = (await _read(api, where, _path_of(namespace, target.lease), "leases")).holder
    if not holder:
        raise NotReachedError(f"nobody holds {where}: no replica schedules at the moment")
    name = holder.rpartition("_")[0] or holder
    no_pod = f"{holder[:253]!a} holds {where} and is no pod there, as where `bayplan run` was started by hand"
    found = await _read(api, f"pod {namespace}/{name}", pod_path(namespace, name), "pods", missing=no_pod)
    account = found.service_account_name
    if account != target.service_account:
        raise ClientError(
            f"pod {namespace}/{name} holds {where} but runs under ServiceAccount {account!a}, not "
            f"{target.service_account!a}, and is not asked; --scheduler-service-account names another"
        )
    return SchedulerPod(namespace, name)


def _path_of(namespace: str, lease: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{path_segment(namespace)}/leases/{path_segment(lease)}"


async def _read(api: ApiClient, what: str, path: str, plural: str, *, missing: str = "") -> _Spec:
    answer = await answer_to(api, "GET", path)
    if answer.status == HTTPStatus.NOT_FOUND:
        raise NotReachedError(
            f"{missing or f'there is no {what}'}: say where the scheduler runs by --scheduler-namespace and --lease, "
            "or ask it at its own address, by --server"
        )
    if answer.status == HTTPStatus.FORBIDDEN:
        raise ClientError(f"you may not read {what}: the right to it is `get` of {plural} there")
    if answer.status != HTTPStatus.OK:
        raise unexpected(what, answer)
    return _decoded(answer, what)


def _decoded(answer: ApiResponse, what: str) -> _Spec:
    try:
        return msgspec.json.decode(answer.body, type=_Object).spec
    except DECODE_ERRORS:
        raise ClientError(f"{what} cannot be read") from None


async def what_is_known(target: Target, namespace: str, name: str, ours: Sequence[str]) -> str | None:
    """Return why the scheduler may not know a pod, as one line; None where the API server does not say.

    `ours` are the names that the scheduler schedules for, as far as they are known.
    """
    try:
        api = ApiClient(load_credentials(target.kubeconfig, target.context), qps=5, burst=5)
    except CredentialsError:
        return None
    try:
        answer = await answer_to(api, "GET", pod_path(namespace, name))
    except NotReachedError:
        return None
    finally:
        await api.close()
    if answer.status == HTTPStatus.NOT_FOUND:
        return f"there is no pod {namespace}/{name}"
    if answer.status != HTTPStatus.OK:
        return None
    try:
        return _told(msgspec.json.decode(answer.body, type=Pod), ours)
    except DECODE_ERRORS:
        return None


def _told(pod: Pod, ours: Sequence[str]) -> str:
    key = key_of(pod.metadata)
    if pod.status.phase in {"Succeeded", "Failed"}:
        return f"pod {key} has ended: {pod.status.phase}"
    where = f" on {pod.spec.node_name}" if pod.spec.node_name else ""
    whose = pod.spec.scheduler_name or "default-scheduler"
    if whose in ours:
        why = "which knows no node of that name" if where else "which may not have heard of it yet: ask again"
        return f"pod {key}{where} is not known to the scheduler that was asked, {why}"
    asked = "the one that was asked does not know it"
    if ours:
        asked += f" and schedules for {', '.join(ours)}{did_you_mean(whose, ours)}"
    return f"pod {key}{where} is for the scheduler {whose[:253]!a}; {asked}"
