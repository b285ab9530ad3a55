"""The kubelet of bayplan's own pods: what kwok only pretends is done for these."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

import yaml

from e2e.controlplane.client import ApiClient, ApiError, Object
from e2e.controlplane.commands import KWOK_STAGES
from e2e.controlplane.container import status_of
from e2e.controlplane.credentials import write_kubeconfig
from e2e.controlplane.deployed import DeployedReplica
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import stop_all
from e2e.controlplane.service_account import request_token
from e2e.playground.tour import LEADER_LABEL

LIFETIME_SECONDS = 2 * 24 * 3600
"""How long tokens hold: as long as the certificates of the control plane."""

_LABEL, _VALUE = "app.kubernetes.io/name", "bayplan"
_RESTART_SECONDS = 2.0
_STRATEGIC = "application/strategic-merge-patch+json"


@dataclass
class _Running:
    """A pod, its process, and what was reported of it last."""

    pod: Object
    process: DeployedReplica
    since: str
    restarts: int = 0
    ended: float | None = None
    is_stopping: bool = False
    reported: tuple[bool, int, bool] | None = None
    is_labelled: bool = False


class Kubelet:
    """Runs a process for each of bayplan's pods that has a node, and reports how it is; any number of nodes.

    Call `turn` again and again from the main thread, which must outlive all processes. A deleted pod gets SIGTERM, and
    SIGKILL when its grace period is over. A process that ends by itself is started again. And, as no kubelet does, it
    gives LEADER_LABEL to the pod that leads.
    """

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self._plane = plane
        self._client = plane.client
        self._namespace = namespace
        self._folder = folder
        self._running: dict[str, _Running] = {}
        self._labelled: tuple[str | None, frozenset[str]] | None = None

    @property
    def ready(self) -> int:
        """How many were reported as ready."""
        return sum(each.reported is not None and each.reported[0] for each in self._running.values())

    @property
    def leader(self) -> str | None:
        """The name of the pod that has the label of the leader."""
        return next((each.process.name for each in self._running.values() if each.is_labelled), None)

    @property
    def leader_port(self) -> int | None:
        """Where the pod that has the label of the leader serves HTTPS."""
        return next((each.process.port for each in self._running.values() if each.is_labelled), None)

    @property
    def processes(self) -> list[DeployedReplica]:
        """Those of pods that are not about to end."""
        return [each.process for each in self._running.values() if not each.is_stopping]

    def turn(self) -> None:
        """Looks once at all of bayplan's pods and does what is due.

        Raises:
            UnsupportedPodError: a pod asks for what this kubelet has not.
        """
        try:
            pods = self._client.list(
                "pods", self._namespace, labelSelector=f"{_LABEL}={_VALUE}", fieldSelector="spec.nodeName!="
            )
            present = {pod["metadata"]["uid"]: pod for pod in pods}
            for uid in self._running.keys() - present.keys():
                self._forget(uid)
            for pod in present.values():
                self._take_care_of(pod)
            self._label_leader()
        except (OSError, HTTPException, ApiError):
            return  # the next turn looks at everything again

    def stop(self, grace_seconds: float) -> None:
        """Ends all processes; the pods stay."""
        stop_all([each.process for each in self._running.values()], grace_seconds)
        self._running.clear()

    def _take_care_of(self, pod: Object) -> None:
        running = self._running.get(pod["metadata"]["uid"])
        if "deletionTimestamp" in pod["metadata"]:
            self._end(pod, running)
            return
        if running is None:
            running = self._running[pod["metadata"]["uid"]] = _Running(pod, self._start(pod), _now())
        running.pod = pod
        if running.process.exit_code is not None:
            self._restart(running)
        self._report(running)

    def _start(self, pod: Object) -> DeployedReplica:
        folder = self._folder / pod["metadata"]["name"]
        folder.mkdir(parents=True, exist_ok=True)
        user: dict[str, object] = {"token": _token(self._client, pod)}
        kubeconfig = write_kubeconfig(
            folder / "kubeconfig", url=self._plane.url, ca_file=self._plane.ca_file, user=user
        )
        return DeployedReplica(pod, self._plane, folder, kubeconfig=kubeconfig)

    def _restart(self, running: _Running) -> None:
        if running.ended is None:
            running.ended = time.monotonic()
        elif time.monotonic() >= running.ended + _RESTART_SECONDS:
            running.process, running.since, running.ended = self._start(running.pod), _now(), None
            running.restarts += 1

    def _report(self, running: _Running) -> None:
        is_running = running.process.exit_code is None
        is_ready = is_running and running.process.is_ready()
        found = (is_ready, running.restarts, is_running)
        if found == running.reported:
            return
        since = running.since if is_running else None
        status = status_of(running.pod, is_ready=is_ready, restarts=running.restarts, running_since=since, now=_now())
        name = running.pod["metadata"]["name"]
        self._client.patch(
            "pods", name, status, namespace=self._namespace, subresource="status", content_type=_STRATEGIC
        )
        running.reported = found

    def _label_leader(self) -> None:
        leases = self._client.list("leases", self._namespace, fieldSelector=f"metadata.name={_VALUE}")
        holder = leases[0]["spec"].get("holderIdentity") if leases else None
        seen = (holder, frozenset(uid for uid, each in self._running.items() if not each.is_stopping))
        if seen == self._labelled:
            return
        for each in self._running.values():
            # All have the host name of this machine, so their logs tell who they are.
            leads = bool(holder) and not each.is_stopping and f"identity={holder}" in each.process.log()
            if leads != each.is_labelled:
                change = {"metadata": {"labels": {LEADER_LABEL: "true" if leads else None}}}
                self._client.patch("pods", each.process.name, change, namespace=self._namespace)
                each.is_labelled = leads
        self._labelled = seen

    def _end(self, pod: Object, running: _Running | None) -> None:
        if running is not None and running.process.exit_code is None:
            if not running.is_stopping:
                running.process.terminate()
                running.is_stopping = True
            elif datetime.fromisoformat(pod["metadata"]["deletionTimestamp"]) <= datetime.now(UTC):
                running.process.kill()
            return
        self._client.end_pod(pod)
        self._forget(pod["metadata"]["uid"])

    def _forget(self, uid: str) -> None:
        running = self._running.pop(uid, None)
        if running is not None:
            # A pod that was deleted by force is gone before its process.
            running.process.kill()
            running.process.wait()


def write_stages(path: Path) -> Path:
    """Writes what kwok plays for all pods but bayplan's own, and returns the file."""
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(KWOK_STAGES.read_text()))
    for each in documents:
        if each["spec"]["resourceRef"]["kind"] == "Pod":
            key = f'.metadata.labels["{_LABEL}"]'
            expressions = each["spec"].setdefault("selector", {}).setdefault("matchExpressions", [])
            expressions.append({"key": key, "operator": "NotIn", "values": [_VALUE]})
    path.write_text(yaml.safe_dump_all(documents))
    return path


def _token(client: ApiClient, pod: Object) -> str:
    """A token that is good while the pod is there."""
    metadata = pod["metadata"]
    bound_to = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
    account = pod["spec"]["serviceAccountName"]
    return request_token(
        client, metadata["namespace"], account, boundObjectRef=bound_to, expirationSeconds=LIFETIME_SECONDS
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
