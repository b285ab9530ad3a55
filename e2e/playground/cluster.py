"""The cluster of the playground: what runs, and that all of it ends."""

import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.controlplane.build import binary
from e2e.controlplane.client import Object
from e2e.controlplane.credentials import write_kubeconfig
from e2e.controlplane.deployed import DeployedReplica
from e2e.controlplane.installation import OVERLAYS
from e2e.controlplane.objects import node
from e2e.controlplane.plane import STOP_SECONDS, ControlPlane, ControlPlaneOptions
from e2e.playground.kubelet import LIFETIME_SECONDS, Kubelet, write_stages
from e2e.playground.log_server import serving_logs
from e2e.playground.tour import NAMESPACE
from e2e.scenarios.alert_rules import shipped_groups, write_groups
from e2e.scenarios.monitoring import install_scraper, scrape_settings
from e2e.scenarios.prometheus_server import PrometheusServer

GPU_NODES, GPUS = 2, 4
TURN_SECONDS = 0.5

_USER = "playground"
_PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
_START_SECONDS = 180.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReplicaTargets:
    """Bayplan's replicas as Prometheus finds them: in a file that is written anew when they change.

    `settings` is how one endpoint of theirs is scraped.
    """

    file: Path
    settings: Mapping[str, Any]

    def scrape_config(self) -> dict[str, Any]:
        """The entry of `scrape_configs`, but for the job's name."""
        return {"file_sd_configs": [{"files": [str(self.file)]}], **self.settings}

    def write(self, replicas: list[DeployedReplica]) -> None:
        """Names those that are there now."""
        found = [
            {
                "targets": [f"127.0.0.1:{each.port}"],
                "labels": {"job": "bayplan", "cluster": "playground", "namespace": NAMESPACE, "pod": each.name},
            }
            for each in replicas
        ]
        _replace(self.file, json.dumps(found))


def _replace(file: Path, text: str) -> None:
    """Have a file hold a text, if it does not yet; who reads it meanwhile finds all of this or of the one before."""
    if not file.exists() or file.read_text() != text:
        scratch = file.with_suffix(".new")
        scratch.write_text(text)
        scratch.rename(file)


class Playground:
    """A running cluster with bayplan in it; everything it keeps is in `folder`."""

    def __init__(self, plane: ControlPlane, kubelet: Kubelet, folder: Path) -> None:
        self.folder = folder
        self.prometheus_url: str | None = None
        self.address_file = folder / "leader"
        """Has the address of the replica that leads; after a failover that of another one."""
        self._plane = plane
        self._kubelet = kubelet
        self._targets: ReplicaTargets | None = None

    def scrape(self, targets: ReplicaTargets, url: str) -> None:
        """Keeps the targets of a Prometheus right from now on."""
        self._targets, self.prometheus_url = targets, url

    def turn(self) -> None:
        """Does the kubelet's work; call it from the main thread every TURN_SECONDS.

        Raises:
            RuntimeError: a part of the control plane ended; the message has the end of its log.
            UnsupportedPodError: somebody changed the Deployment to what the kubelet cannot do.
        """
        for part in _PARTS:
            self._plane.process(part).check_alive()
        self._kubelet.turn()
        if (url := self.scheduler_url) is not None:
            _replace(self.address_file, f"{url}\n")
        if self._targets is not None:
            self._targets.write(self._kubelet.processes)

    @property
    def scheduler_url(self) -> str | None:
        """Where the replica that leads serves HTTPS; another one does after a failover, and none meanwhile."""
        port = self._kubelet.leader_port
        return None if port is None else f"https://127.0.0.1:{port}"

    def wait_leading(self, replicas: int) -> None:
        """Waits until all replicas are ready and one of them leads.

        Raises:
            TimeoutError: that did not happen; the message has the ends of their logs.
        """
        deadline = time.monotonic() + _START_SECONDS
        while True:
            self.turn()
            if self._kubelet.ready == replicas and self._kubelet.leader is not None:
                return
            if time.monotonic() >= deadline:
                logs = "\n".join(f"{each.name}:\n{each.log_tail()}" for each in self._kubelet.processes)
                raise TimeoutError(f"{replicas} replicas are not ready after {_START_SECONDS:g} s\n{logs}".rstrip())
            time.sleep(TURN_SECONDS)


@contextlib.contextmanager
def start_playground(*, nodes: int, replicas: int, say: Say) -> Iterator[Playground]:
    """Starts everything and yields when the replicas are there, not yet ready; ends everything with the block.

    Raises:
        BuildError, ToolchainError: the control plane is not there and cannot be built.
        RuntimeError, TimeoutError: a part did not start; the message has the end of its log.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="bayplan-playground-"))
        stack.callback(_remove, folder)
        options = ControlPlaneOptions(
            kube_controller_manager=True, kwok=True, kwok_stages=write_stages(folder / "kwok.yaml"), parent=folder
        )
        say("starting the API server, its controllers and kube-scheduler")
        plane = stack.enter_context(ControlPlane.start(options))
        plane.start_kube_scheduler({})
        _write_access(plane, folder)
        say(f"making {nodes} nodes, and installing manifests/overlays/production")
        kubelet_port = stack.enter_context(serving_logs(folder / "pods", folder / "kubelet"))
        plane.client.create_all("nodes", playground_nodes(nodes, kubelet_port))
        plane.kubectl("apply", "-k", OVERLAYS / "production")
        plane.client.patch("deployments", "bayplan", {"spec": {"replicas": replicas}}, namespace=NAMESPACE)
        kubelet = Kubelet(plane, NAMESPACE, folder / "pods")
        stack.callback(kubelet.stop, STOP_SECONDS)
        playground = Playground(plane, kubelet, folder)
        if shutil.which("prometheus"):
            say("starting Prometheus")
            _start_prometheus(plane, playground, stack)
        yield playground


def _remove(folder: Path) -> None:
    """Remove the folder, after a program whose start a signal broke off: nobody else knows it, and it writes there."""
    for number in map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)
    shutil.rmtree(folder, ignore_errors=True)


def playground_nodes(count: int, kubelet_port: int) -> list[Object]:
    """Returns `count` nodes of 4 CPUs and 16 GiB in three zones; two of them have four GPUs each, and a taint.

    All have one kubelet, at a port of 127.0.0.1.
    """
    nodes = [_node(number, has_gpus=number >= count - GPU_NODES) for number in range(count)]
    for each in nodes:
        each["status"]["addresses"] = [{"type": "InternalIP", "address": "127.0.0.1"}]
        each["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": kubelet_port}}
    return nodes


def _node(number: int, *, has_gpus: bool) -> Object:
    labels = {
        "topology.kubernetes.io/zone": f"zone-{'abc'[number % 3]}",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    name = f"node-{number + 1:02}"
    if not has_gpus:
        return node(name, labels=labels)
    taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    gpus = {"nvidia.com/gpu": str(GPUS)}
    return node(name, labels={**labels, "nvidia.com/gpu.present": "true"}, resources=gpus, taints=[taint])


def _write_access(plane: ControlPlane, folder: Path) -> None:
    """The admin's kubeconfig, and a kubectl of the API server's version."""
    admin = json.loads(plane.kubeconfig_for(_USER, groups=("system:masters",)).read_text())
    user = admin["users"][0]["user"]
    write_kubeconfig(folder / "kubeconfig", url=plane.url, ca_file=plane.ca_file, user=user, name=_USER)
    (folder / "bin").mkdir()
    (folder / "bin" / "kubectl").symlink_to(binary("kubectl"))


def _start_prometheus(plane: ControlPlane, playground: Playground, stack: contextlib.ExitStack) -> None:
    folder = playground.folder / "prometheus"
    folder.mkdir()
    token = install_scraper(plane, folder, expirationSeconds=LIFETIME_SECONDS)
    targets = [ReplicaTargets(folder / "replicas.json", settings) for settings in scrape_settings(token)]
    rules = write_groups(folder, shipped_groups())
    server = stack.enter_context(PrometheusServer(folder, targets, [rules]))
    playground.scrape(targets[0], f"http://127.0.0.1:{server.port}/alerts")
