"""Runs kube-scheduler as a process of its own: the oracle, or the other side of a comparison."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from e2e.controlplane import commands
from e2e.controlplane.build import binary
from e2e.controlplane.health import is_healthy
from e2e.controlplane.process import Process, free_ports

USER = "system:kube-scheduler"
"""Who it is to the API server: the user of its bootstrap role."""


class KubeSchedulerProcess(Process):
    """A running kube-scheduler, with its files in `directory`; it serves HTTPS on `port`.

    `configuration` is a KubeSchedulerConfiguration; the kubeconfig is filled in, and leader election is off unless it
    says otherwise.
    """

    def __init__(
        self,
        directory: Path,
        configuration: Mapping[str, Any],
        kubeconfig: Path,
        *,
        verbosity: int = 2,
        arguments: Sequence[str] = (),
    ) -> None:
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            **configuration,
            "clientConnection": {**configuration.get("clientConnection", {}), "kubeconfig": str(kubeconfig)},
        }
        config = directory / "config.yaml"
        config.write_text(json.dumps(document))  # JSON is YAML
        (self.port,) = free_ports(1)
        command = commands.kube_scheduler(
            binary("kube-scheduler"), kubeconfig, config, directory, port=self.port, verbosity=verbosity
        )
        log_path = directory / "kube-scheduler.log"
        super().__init__("kube-scheduler", [*command, *arguments], log_path=log_path, directory=directory)

    def is_ready(self) -> bool:
        """Whether /healthz answers 200."""
        return is_healthy(self.port, tls=True)

    def is_synced(self) -> bool:
        """Whether /readyz answers 200, which a leader's does once its caches are filled."""
        return is_healthy(self.port, path="/readyz", tls=True)
