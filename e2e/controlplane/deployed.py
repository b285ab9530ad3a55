"""Runs what a container of the installed Deployment would run."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.installation import SERVICE_ACCOUNT
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import free_ports


class DeployedReplica(BayplanProcess):
    """An instance with the flags and the mounted configuration of the Deployment that is in a namespace.

    It serves HTTPS on `port`, which is free, in the place of 10259. `leader_election` replaces fields of the
    configuration. Without a kubeconfig it has a new token of the Deployment's ServiceAccount.
    """

    def __init__(
        self,
        plane: ControlPlane,
        namespace: str,
        directory: Path,
        *,
        kubeconfig: Path | None = None,
        leader_election: Mapping[str, object] | None = None,
    ) -> None:
        spec = plane.client.get("deployments", "bayplan", namespace)["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        (mounted,) = [each["configMap"]["name"] for each in spec["volumes"] if "configMap" in each]
        configuration = yaml.safe_load(plane.client.get("configmaps", mounted, namespace)["data"]["config.yaml"])
        configuration["leaderElection"] |= leader_election or {}
        (self.port,) = free_ports(1)
        flags = dict(each.removeprefix("--").split("=", 1) for each in container["args"] if each != "run")
        given = {"secure-port": str(self.port), "leader-elect-resource-namespace": namespace}
        if flags.keys() != {"config", *given}:
            raise RuntimeError(f"the Deployment has other flags than those this stands in for: {sorted(flags)}")
        super().__init__(
            directory,
            config=configuration,
            kubeconfig=kubeconfig or plane.service_account_kubeconfig(namespace, SERVICE_ACCOUNT),
            arguments=[f"--{name}={value}" for name, value in given.items()],
        )
