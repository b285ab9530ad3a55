"""Several instances of one scheduler, told apart by their tokens: who leads, and what each wrote."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.controlplane.audit import AuditEvent
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.credentials import write_kubeconfig
from e2e.controlplane.installation import NAMESPACE, SERVICE_ACCOUNT
from e2e.controlplane.kube_scheduler_process import KubeSchedulerProcess
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process
from e2e.controlplane.service_account import request_token

KUBE_SCHEDULER_ACCOUNT = "kube-scheduler"
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Replica:
    """A running instance, and what the audit log calls its token."""

    process: Process
    credential: str

    def writes(self, events: Sequence[AuditEvent]) -> list[AuditEvent]:
        """What it wrote in the order it was received: all but its lease, and the Events about that in its namespace."""
        found = [
            event
            for event in events
            if event.credential == self.credential
            and event.verb in _WRITES
            and event.resource not in {"leases", ""}
            and (event.resource, event.namespace) != ("events", NAMESPACE)
        ]
        return sorted(found, key=lambda event: event.received)

    def binds(self, events: Sequence[AuditEvent]) -> list[AuditEvent]:
        """The binds that the API server took from it."""
        return [event for event in self.writes(events) if event.resource == "pods/binding" and event.code == 201]

    def renewals(self, events: Sequence[AuditEvent]) -> list[AuditEvent]:
        """The updates of its lease that the API server took, but for a release."""
        return [
            event
            for event in events
            if event.credential == self.credential
            and event.resource == "leases"
            and event.verb in _WRITES
            and event.code in {200, 201}
            and event.document["spec"]["holderIdentity"]
        ]

    def late_writes(self, events: Sequence[AuditEvent], renew_deadline: float) -> list[AuditEvent]:
        """What it wrote later than the deadline after its last renewal, or after it gave the lease up."""
        renewed = max(event.received for event in self.renewals(events))
        return [event for event in self.writes(events) if event.received > renewed + renew_deadline]


def bayplan_replica(
    plane: ControlPlane,
    directory: Path,
    configuration: Mapping[str, Any],
    arguments: Sequence[str] = (),
    *,
    heeds_other_leases: bool = False,
) -> Replica:
    """Starts an instance of bayplan with its shipped rights and a token of its own; returns at once."""
    kubeconfig, credential = _identity(plane, directory, SERVICE_ACCOUNT)
    process = BayplanProcess(
        directory,
        config=configuration,
        kubeconfig=kubeconfig,
        arguments=arguments,
        heeds_other_leases=heeds_other_leases,
    )
    return Replica(process, credential)


def kube_scheduler_replica(plane: ControlPlane, directory: Path, configuration: Mapping[str, Any]) -> Replica:
    """Starts an instance of kube-scheduler as a service account with its rights; returns at once."""
    kubeconfig, credential = _identity(plane, directory, KUBE_SCHEDULER_ACCOUNT)
    return Replica(KubeSchedulerProcess(directory, configuration, kubeconfig), credential)


def install_kube_scheduler(plane: ControlPlane) -> None:
    """Makes a service account with kube-scheduler's bootstrap roles."""
    client = plane.client
    client.create("serviceaccounts", {"metadata": {"name": KUBE_SCHEDULER_ACCOUNT, "namespace": NAMESPACE}})
    subject = {"kind": "ServiceAccount", "name": KUBE_SCHEDULER_ACCOUNT, "namespace": NAMESPACE}
    for kind, name in (
        ("ClusterRole", "system:kube-scheduler"),
        ("ClusterRole", "system:volume-scheduler"),
        ("Role", "system::leader-locking-kube-scheduler"),
        ("Role", "extension-apiserver-authentication-reader"),
    ):
        binding: dict[str, Any] = {
            "metadata": {"name": f"replicas:{name}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [subject],
        }
        if kind == "Role":
            binding["metadata"]["namespace"] = NAMESPACE
        client.create("rolebindings" if kind == "Role" else "clusterrolebindings", binding)


def _identity(plane: ControlPlane, directory: Path, account: str) -> tuple[Path, str]:
    """A kubeconfig with a new token, and what the audit log calls that."""
    directory.mkdir(parents=True, exist_ok=True)
    token = request_token(plane.client, NAMESPACE, account)
    review = plane.client.request(
        "POST",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}},
    )
    (credential,) = review["status"]["user"]["extra"]["authentication.kubernetes.io/credential-id"]
    path = directory / "kubeconfig"
    return write_kubeconfig(path, url=plane.url, ca_file=plane.ca_file, user={"token": token}), credential


StartReplica = Callable[[ControlPlane, Path, Mapping[str, Any]], Replica]
"""Starts another instance with its files in a folder."""


def holder_of(plane: ControlPlane, name: str) -> str:
    """Returns who holds a lease, empty for nobody."""
    found = plane.client.list("leases", NAMESPACE, fieldSelector=f"metadata.name={name}")
    return str(found[0]["spec"].get("holderIdentity") or "") if found else ""
