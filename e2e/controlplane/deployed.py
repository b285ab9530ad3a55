"""Runs what the container of a pod of the installed Deployment would run."""

import os
import sys
from pathlib import Path

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.container import arguments_of, config_maps_of, environment_of, readiness_path_of
from e2e.controlplane.health import is_healthy
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process, free_ports

LOG_NAME = "bayplan.log"


def pod_of_deployment(client: ApiClient, namespace: str, name: str, *, deployment: str = "bayplan") -> Object:
    """Returns a pod of a Deployment as a controller would make it; the API server does not have it."""
    template: Object = client.get("deployments", deployment, namespace)["spec"]["template"]
    template["metadata"] |= {"name": name, "namespace": namespace, "uid": f"{name}-uid"}
    return template


class DeployedReplica(Process):
    """The container of one of bayplan's pods as a process; it serves HTTPS at `port` of 127.0.0.1.

    Arguments, environment, mounted configuration and readiness probe are those of the pod. Only addresses are others: a
    kubeconfig says where the API server is and who asks, and all pods share one network.
    """

    def __init__(self, pod: Object, plane: ControlPlane, folder: Path, *, kubeconfig: Path) -> None:
        (self.port,) = free_ports(1)
        self._readiness_path = readiness_path_of(pod)
        arguments = [
            *arguments_of(pod, _write_volumes(plane.client, pod, folder)),
            f"--kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
        ]
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "PYTHONPATH": str(REPOSITORY / "operator"),
            **environment_of(pod),
        }
        super().__init__(
            pod["metadata"]["name"],
            [sys.executable, "-m", "bayplan", *arguments],
            log_path=folder / LOG_NAME,
            environment=environment,
            directory=folder,
        )

    def is_ready(self) -> bool:
        """Whether its readiness probe passes."""
        return is_healthy(self.port, path=self._readiness_path, tls=True)


def _write_volumes(client: ApiClient, pod: Object, folder: Path) -> dict[str, Path]:
    """Where the files of the pod's ConfigMaps are, by volume."""
    written: dict[str, Path] = {}
    for volume, name in config_maps_of(pod).items():
        written[volume] = folder / volume
        written[volume].mkdir(exist_ok=True)
        for key, text in client.get("configmaps", name, pod["metadata"]["namespace"])["data"].items():
            (written[volume] / key).write_text(text)
    return written
