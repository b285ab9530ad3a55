"""Builds Karpenter with its kwok provider, installs what it reads, and runs it."""

import json
import os
from pathlib import Path

from e2e.controlplane.build import Programs, build, module_sources, say_on_stderr
from e2e.controlplane.health import is_healthy
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process, free_ports

_FOLDER = Path(__file__).resolve().parent
_MODULE, _NAME = "sigs.k8s.io/karpenter", "karpenter"
_CRDS = ("pkg/apis/crds", "kwok/apis/crds")
PROGRAM = Programs(
    _NAME, "tool", (_NAME,), "3 to 10 minutes", renamed=(("kwok", _NAME),), module=_FOLDER, kubernetes=False
)
INSTANCE_TYPE = "c-16x-amd64-linux"
"""Of the provider's own list: 16 CPUs and 32 GiB, of which kubelet keeps 100m and 10 MiB."""
WHEN_EMPTY, WHEN_UNDERUTILIZED = "WhenEmpty", "WhenEmptyOrUnderutilized"


def build_karpenter() -> Path:
    """Returns the program, built unless it is cached.

    Raises:
        BuildError: the build failed.
        ToolchainError: there is no Go and none can be installed.
    """
    return build(say_on_stderr, PROGRAM) / _NAME


def install_karpenter(plane: ControlPlane, *, consolidation: str, consolidate_after: str) -> None:
    """Applies Karpenter's definitions, and one NodePool of one size of node that consolidates so."""
    module = module_sources(PROGRAM, _MODULE)
    for folder in _CRDS:
        plane.kubectl("apply", "--server-side", "-f", module / folder)
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    documents = {"apiVersion": "v1", "kind": "List", "items": _objects(consolidation, consolidate_after)}
    path = plane.directory / "karpenter.json"
    path.write_text(json.dumps(documents))
    plane.kubectl("apply", "-f", path)


def _objects(consolidation: str, consolidate_after: str) -> list[dict[str, object]]:
    only = {"node.kubernetes.io/instance-type": INSTANCE_TYPE, "karpenter.sh/capacity-type": "on-demand"}
    template = {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "requirements": [{"key": key, "operator": "In", "values": [value]} for key, value in only.items()],
        "expireAfter": "Never",
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAME}},
        {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}},
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "default"},
            "spec": {
                "template": {"spec": template},
                "disruption": {"consolidationPolicy": consolidation, "consolidateAfter": consolidate_after},
            },
        },
    ]


class KarpenterProcess(Process):
    """A running Karpenter with an administrator's rights; its log is in the control plane's folder."""

    def __init__(self, plane: ControlPlane) -> None:
        metrics, self.health_port = free_ports(2)
        super().__init__(
            _NAME,
            [
                build_karpenter(),
                "--disable-leader-election",
                f"--metrics-port={metrics}",
                f"--health-probe-port={self.health_port}",
            ],
            log_path=plane.directory / "logs" / "karpenter.log",
            environment={**os.environ, "SYSTEM_NAMESPACE": _NAME, "KUBECONFIG": str(plane.admin_kubeconfig)},
            directory=plane.directory,
        )

    def is_ready(self) -> bool:
        """Whether /readyz answers 200."""
        return is_healthy(self.health_port, path="/readyz", tls=False)


if __name__ == "__main__":
    print(build_karpenter())
