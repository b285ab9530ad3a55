"""Plays scenarios of gangs on a control plane before whichever scheduler runs there."""

import contextlib
import itertools
import json
import threading
import time
from http.client import HTTPConnection, HTTPException
from types import TracebackType
from typing import Self

from e2e.controlplane.client import ApiClient, ApiError, cut_off, path_of
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.waiting import wait_until
from tests.oracle.gangs.recording import GroupState, Outcome, PodState, Run
from tests.oracle.gangs.scenario import (
    CLASSES,
    FIRST,
    NEVER,
    SECOND,
    Bind,
    Change,
    Create,
    Delete,
    Object,
    Rest,
    Scenario,
    Step,
)

GENERIC_WORKLOAD = "GenericWorkload"
SERVED = "scheduling.k8s.io/v1beta1"
CONDITION = "PodGroupInitiallyScheduled"

CONFIGURATION: Object = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "clientConnection": {"qps": 5000, "burst": 5000},
    # A group that does not fit is tried again after a back-off, whatever happens: it should not make rests long.
    "podInitialBackoffSeconds": 1,
    "podMaxBackoffSeconds": 1,
    "profiles": [{"schedulerName": FIRST}, {"schedulerName": SECOND}],
}
"""What every scheduler under comparison runs with."""

QUIET_SECONDS = 3.5
"""The back-off of a group of five, which is longer than a pod's and ends at a whole second, and what a round takes."""
_LONGEST_SECONDS = 40.0
_POLL_SECONDS = 0.1
_NAMESPACE = "NAMESPACE"
_CLUSTER_WIDE = frozenset({"nodes", "namespaces"})


def options(gates: tuple[str, ...] = ()) -> ControlPlaneOptions:
    """Returns a control plane that serves PodGroups, with further feature gates."""
    return ControlPlaneOptions(bench=True, feature_gates=(GENERIC_WORKLOAD, *gates), served=(SERVED,))


class Stage:
    """Plays one scenario after the other on a control plane with PodGroups; use it as a context manager.

    At a rest nothing has changed for `quiet_seconds`.
    """

    def __init__(self, plane: ControlPlane, quiet_seconds: float = QUIET_SECONDS) -> None:
        self._quiet = quiet_seconds
        self._client = plane.client
        self._numbers = itertools.count(1)
        self._were_true = _GroupWatch(plane.client)
        self._told: dict[str, set[str]] = {}

    def __enter__(self) -> Self:
        for name, value in {**CLASSES, NEVER: CLASSES["high"]}.items():
            policy = "Never" if name == NEVER else "PreemptLowerPriority"
            self._client.create(
                "priorityclasses", {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
            )
        wait_until(self._knows_classes, "admission to know the PriorityClasses")
        self._were_true.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._were_true.stop()

    def _knows_classes(self) -> bool:
        asked = {"metadata": {"name": "asked"}, "spec": {"containers": [{"name": "main", "image": "pause"}]}}
        with contextlib.suppress(ApiError):
            for name in (*CLASSES, NEVER):
                pod = {**asked, "spec": {**asked["spec"], "priorityClassName": name}}
                self._client.request("POST", f"{path_of('pods', namespace='default')}?dryRun=All", pod)
            return True
        return False

    def play(self, scenario: Scenario) -> Run:
        """Takes the steps, and returns what there was at each rest; nothing of it is left afterwards."""
        namespace = f"gangs-{next(self._numbers):03d}"
        self._client.create("namespaces", {"metadata": {"name": namespace}})
        outcomes = []
        self._told.clear()
        try:
            for step in scenario.steps:
                if isinstance(step, Rest):
                    outcomes.append(self._rest(namespace))
                else:
                    self._take(step, namespace)
            return tuple(outcomes)
        finally:
            self._clear()

    def _take(self, step: Step, namespace: str) -> None:
        client = self._client
        match step:
            case Create(resource, document):
                client.create(resource, _placed(resource, document, namespace))
            case Change(resource, name, change, subresource):
                where = None if resource in _CLUSTER_WIDE else namespace
                client.patch(resource, name, change, namespace=where, subresource=subresource or None)
            case Delete(resource, name, finalizers):
                where = None if resource in _CLUSTER_WIDE else namespace
                client.delete(resource, name, namespace=where, grace_seconds=0)
                if finalizers:
                    with contextlib.suppress(ApiError):
                        client.patch(resource, name, {"metadata": {"finalizers": None}}, namespace=where)
            case Bind(pod, node):
                client.bind(namespace, pod, node)

    def _rest(self, namespace: str) -> Outcome:
        """Waits until nothing has changed for a while, and returns what there is then."""
        begun = since = time.monotonic()
        seen = self._outcome(namespace)
        while (now := time.monotonic()) - since < self._quiet and now - begun < _LONGEST_SECONDS:
            time.sleep(_POLL_SECONDS)
            found = self._outcome(namespace)
            if found != seen:
                seen, since = found, now
        return seen

    def _outcome(self, namespace: str) -> Outcome:
        failures: dict[str, set[str]] = {}
        for event in self._client.list("events", namespace):
            if event["reason"] == "FailedScheduling":
                text = event.get("note", "").replace(namespace, _NAMESPACE)
                failures.setdefault(event["regarding"]["name"], set()).add(text)
        pods = {}
        for pod in self._client.list("pods", namespace):
            name, status = pod["metadata"]["name"], pod.get("status", {})
            found = _condition(status, "PodScheduled", namespace)
            node, nominated = pod["spec"].get("nodeName", ""), status.get("nominatedNodeName", "")
            # Nobody says anything of a pod that came with its node; of one that was bound it says True.
            told = ("", "", "") if node else found
            # kube-scheduler has one Event for each version of a pod: what comes after it is in the condition alone.
            texts = self._told.setdefault(name, set())
            texts |= failures.get(name, set()) | ({told[2]} - {""})
            pods[name] = PodState(node, *told, nominated, tuple(sorted(texts)))
        groups = {}
        for group in self._client.list("podgroups", namespace):
            name = group["metadata"]["name"]
            found = _condition(group.get("status", {}), CONDITION, namespace)
            groups[name] = GroupState(*found, self._were_true.was_true(namespace, name))
        return Outcome(pods, groups)

    def _clear(self) -> None:
        """Deletes everything but namespaces, whose Events are in nobody's way."""
        client = self._client
        for namespace in {pod["metadata"]["namespace"] for pod in client.list("pods")}:
            client.delete_all("pods", namespace)
        wait_until(lambda: not client.list("pods"), "the end of all pods")
        for group in client.list("podgroups"):
            name, namespace = group["metadata"]["name"], group["metadata"]["namespace"]
            with contextlib.suppress(ApiError):
                client.delete("podgroups", name, namespace=namespace)
                client.patch("podgroups", name, {"metadata": {"finalizers": None}}, namespace=namespace)
        for budget in client.list("poddisruptionbudgets"):
            client.delete("poddisruptionbudgets", budget["metadata"]["name"], namespace=budget["metadata"]["namespace"])
        client.delete_all("nodes")
        with contextlib.suppress(ApiError):
            client.delete("namespaces", "elsewhere")
            client.request("PUT", "/api/v1/namespaces/elsewhere/finalize", _FINALIZED)


_FINALIZED = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}, "spec": {"finalizers": []}}


def _placed(resource: str, document: Object, namespace: str) -> Object:
    if resource in _CLUSTER_WIDE:
        return document
    metadata = document["metadata"]
    return {**document, "metadata": {**metadata, "namespace": metadata.get("namespace") or namespace}}


def _condition(status: Object, kind: str, namespace: str) -> tuple[str, str, str]:
    """The status, reason and message of a condition, with the namespace by another name."""
    found: Object = next((each for each in status.get("conditions") or () if each["type"] == kind), {})
    message = found.get("message", "").replace(namespace, _NAMESPACE)
    return found.get("status", ""), found.get("reason", ""), message


class _GroupWatch:
    """Knows which PodGroups ever had a condition that was True, if only for a moment."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._found: set[tuple[str, str]] = set()
        self._stopping = threading.Event()
        self._connection: HTTPConnection | None = None
        self._thread = threading.Thread(target=self._run, name="group-watch", daemon=True)

    def start(self) -> None:
        self._version = self._client.resource_version("podgroups")
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        cut_off(self._connection)
        self._thread.join(10)

    def was_true(self, namespace: str, name: str) -> bool:
        return (namespace, name) in self._found

    def _run(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(OSError, HTTPException, ValueError, AttributeError):
                self._watch()

    def _watch(self) -> None:
        connection = self._connection = self._client.connect(timeout_seconds=4000)
        query = f"watch=1&timeoutSeconds=3600&resourceVersion={self._version}"
        for line in self._client.send(connection, f"{path_of('podgroups')}?{query}"):
            group = json.loads(line)["object"]
            self._version = group["metadata"]["resourceVersion"]
            if _condition(group.get("status", {}), CONDITION, "")[0] == "True":
                self._found.add((group["metadata"]["namespace"], group["metadata"]["name"]))
