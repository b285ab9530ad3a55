"""Builds mpi-operator and KubeRay, installs what they read, and runs them as their users do."""

import os
from dataclasses import dataclass
from pathlib import Path

from e2e.controlplane.build import Programs, build, module_sources, say_on_stderr
from e2e.controlplane.health import is_healthy
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process, free_ports

_FOLDER = Path(__file__).resolve().parent
_MPI_HEALTH_PORT = 8080  # no flag of it says another
# What KubeRay's published role lacks, as docs/gangs.md has its users add it.
_PODGROUPS = "kuberay-podgroups"
_RIGHTS = ("--verb=get,list,watch,create", "--resource=podgroups.scheduling.x-k8s.io")


@dataclass(frozen=True, slots=True)
class Controller:
    """A program of go.mod, the module it is published in, and where its definitions, role and samples are there."""

    program: str
    module: str
    definitions: str
    role: str
    role_name: str
    samples: str

    def sample(self, name: str) -> Path:
        """Returns a manifest as published."""
        return module_sources(PROGRAMS, self.module) / self.samples / name


MPI = Controller(
    "mpi-operator",
    "github.com/kubeflow/mpi-operator",
    "manifests/base/kubeflow.org_mpijobs.yaml",
    "manifests/base/cluster-role.yaml",
    "mpi-operator",
    "examples/v2beta1",
)
RAY = Controller(
    "ray-operator",
    "github.com/ray-project/kuberay/ray-operator",
    "config/crd/bases",
    "config/rbac/role.yaml",
    "kuberay-operator",
    "config/samples",
)
PROGRAMS = Programs(
    "controllers", "tool", (MPI.program, RAY.program), "3 to 10 minutes", module=_FOLDER, kubernetes=False
)


class ControllerProcess(Process):
    """A running controller with the role that is published with it, and flags as its users give them."""

    def __init__(self, plane: ControlPlane, controller: Controller, *flags: str) -> None:
        folder, user = module_sources(PROGRAMS, controller.module), f"--user={controller.program}"
        plane.kubectl("apply", "--server-side", "-f", folder / controller.definitions, "-f", folder / controller.role)
        plane.kubectl("create", "clusterrolebinding", controller.program, f"--clusterrole={controller.role_name}", user)
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        self._health_port = _MPI_HEALTH_PORT
        own: tuple[str, ...] = ("-lock-namespace=default",)
        if controller is RAY:
            (self._health_port,) = free_ports(1)
            address = f"127.0.0.1:{self._health_port}"
            plane.kubectl("create", "clusterrole", _PODGROUPS, *_RIGHTS)
            plane.kubectl("create", "clusterrolebinding", _PODGROUPS, f"--clusterrole={_PODGROUPS}", user)
            own = ("--metrics-addr=0", f"--health-probe-bind-address={address}", "--enable-leader-election=false")
        super().__init__(
            controller.program,
            [build(say_on_stderr, PROGRAMS) / controller.program, *own, *flags],
            log_path=plane.directory / "logs" / f"{controller.program}.log",
            environment={**os.environ, "KUBECONFIG": str(plane.kubeconfig_for(controller.program))},
            directory=plane.directory,
        )

    def is_ready(self) -> bool:
        """Whether it leads and answers."""
        return is_healthy(self._health_port)


if __name__ == "__main__":
    print(build(say_on_stderr, PROGRAMS))
