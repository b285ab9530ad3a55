"""The control plane as the benchmark uses it: nodes kept, pods and Events fresh for each run."""

import contextlib
import time
from collections.abc import Iterable
from http.client import HTTPException
from pathlib import Path

from e2e.bench.created import Created, read_created
from e2e.bench.programs import start_module
from e2e.bench.workload import PODS_PER_NODE
from e2e.controlplane.client import ApiClient, ApiError, Objects, path_of
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process
from e2e.controlplane.waiting import wait_until

_LOAD_SECONDS = 900.0
_CLEAR_SECONDS = 600.0


class BenchCluster:
    """Puts objects on a control plane, takes them off, and checks what a scheduler made of them."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._client = plane.client
        self._nodes = 0
        self._namespaces = 0

    def set_nodes(self, count: int) -> None:
        """Makes the cluster have exactly this many nodes."""
        if count < self._nodes:
            self._client.delete_all("nodes")
            self._nodes = 0
        if count > self._nodes:
            directory = self.plane.directory
            self._finish(self.start_load(directory, first=self._nodes, count=count - self._nodes))
            self._nodes = count

    def new_namespace(self) -> str:
        """Creates a namespace nothing was in before, so that names may repeat, and returns its name."""
        self._namespaces += 1
        name = f"bench-{self._namespaces:03d}"
        self._client.create("namespaces", {"metadata": {"name": name}})
        return name

    def load_pods(self, namespace: str, directory: Path, *, first: int, count: int) -> list[Created]:
        """Creates pods as fast as they are taken, and returns them."""
        return self._finish(self.start_load(directory, namespace=namespace, first=first, count=count))

    def place_pods(self, namespace: str, directory: Path, count: int) -> None:
        """Creates pods that are on all nodes alike from the start."""
        self._finish(self.start_load(directory, namespace=namespace, first=0, count=count, on_nodes=self._nodes))

    def start_load(
        self,
        directory: Path,
        *,
        namespace: str | None = None,
        first: int,
        count: int,
        rate: float = 0.0,
        on_nodes: int = 0,
    ) -> tuple[Process, Path]:
        """Starts creating pods (or nodes, without a namespace), `rate` a second; returns where it writes them.

        With `on_nodes` that many nodes hold the pods already.
        """
        output = directory / f"created-{first}.txt"
        arguments: list[str | Path] = ["--kubeconfig", self.plane.admin_kubeconfig, "--output", output]
        arguments += ["--first", str(first), "--count", str(count), "--rate", str(rate)]
        arguments += ["--on-nodes", str(on_nodes)]
        if namespace is not None:
            arguments += ["--namespace", namespace]
        return start_module("load", "e2e.bench.load", arguments, directory), output

    def _finish(self, load: tuple[Process, Path]) -> list[Created]:
        process, output = load
        if process.wait(_LOAD_SECONDS) != 0:
            raise RuntimeError(f"creating objects failed:\n{process.log_tail()}")
        return read_created(output)

    def event_count(self, namespace: str) -> int:
        """Returns how many Events a namespace holds, at the price of one small request."""
        page = self._client.request("GET", f"{path_of('events', namespace=namespace)}?limit=1")
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))

    def scheduled_events(self, namespace: str) -> int:
        """Returns for how many pods there is an Event that says they were scheduled; reads them all."""
        events = self._client.list("events", namespace)
        return len({event["regarding"]["uid"] for event in events if event["reason"] == "Scheduled"})

    def unbound(self, namespace: str) -> Objects:
        """Returns the pods of a namespace that are on no node yet."""
        return self._client.list("pods", namespace, fieldSelector="spec.nodeName=")

    def is_any_unbound(self, namespace: str) -> bool:
        """Returns whether a pod of a namespace is on no node yet, at the price of one small request."""
        path = path_of("pods", namespace=namespace)
        return bool(self._client.request("GET", f"{path}?fieldSelector=spec.nodeName%3D&limit=1")["items"])

    def nodes_used(self, namespace: str) -> int:
        """Returns how many nodes the namespace's pods are on.

        Raises:
            RuntimeError: a pod is bound to no node, or a node holds more than it has room for.
        """
        counts: dict[str, int] = {}
        for pod in self._client.list("pods", namespace):
            node = pod["spec"].get("nodeName")
            if not node:
                raise RuntimeError(f"{namespace}/{pod['metadata']['name']} is not bound")
            counts[node] = counts.get(node, 0) + 1
        fullest = max(counts, key=lambda node: counts[node])
        if counts[fullest] > PODS_PER_NODE:
            raise RuntimeError(f"{fullest} holds {counts[fullest]} pods and has room for {PODS_PER_NODE}")
        return len(counts)

    def clear(self, namespace: str) -> None:
        """Deletes all pods and Events of a namespace at once and waits until they are gone."""
        delete_until_gone(self._client, [("pods", namespace), ("events", namespace)])


def delete_until_gone(client: ApiClient, collections: Iterable[tuple[str, str | None]]) -> None:
    """Deletes all objects of these resources and namespaces, and waits until they are gone."""
    deadline = time.monotonic() + _CLEAR_SECONDS
    for resource, namespace in collections:

        def gone(resource: str = resource, namespace: str | None = namespace) -> bool:
            # A collection this large may take longer than a request may; what is left is for the next one.
            with contextlib.suppress(ApiError, OSError, HTTPException):
                client.delete_all(resource, namespace)
            return not client.request("GET", f"{path_of(resource, namespace=namespace)}?limit=1")["items"]

        left = max(1.0, deadline - time.monotonic())
        wait_until(gone, f"{resource} of {namespace} being deleted", timeout_seconds=left)
