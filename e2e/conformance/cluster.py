"""The cluster the suite runs on: nodes in two zones, their kubelets, and one scheduler."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from e2e.conformance.configurations import scheduler_configuration
from e2e.conformance.kubelets import Kubelets
from e2e.controlplane import kube_scheduler_process
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import Object
from e2e.controlplane.commands import KWOK_STAGES
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.kube_scheduler_process import KubeSchedulerProcess
from e2e.controlplane.objects import node
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import Process
from e2e.controlplane.waiting import wait_until

BAYPLAN, KUBE_SCHEDULER = "bayplan", "kube-scheduler"
NODES = 4
NODE_AGENTS = ("kube-proxy", "fluentd-elasticsearch", "node-problem-detector")
"""The pods that the suite wants on every node; without them, it waits a minute in vain before most specs."""
_ZONES = ("zone-a", "zone-b")
_POD_END_STAGE = "pod-ends"
_SYSTEM_NAMESPACE = "kube-system"
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster with one scheduler; what runs in it logs to files in `directory`."""

    plane: ControlPlane
    scheduler: Process


@contextlib.contextmanager
def start_cluster(directory: Path, scheduler: str, configuration: str) -> Iterator[Cluster]:
    """Starts API server, controllers, kwok and one scheduler, and yields when nodes and what runs on each are ready.

    Raises:
        BuildError, ToolchainError: the binaries are not there and cannot be built.
        RuntimeError, TimeoutError: a part did not become ready.
    """
    stages = directory / "kwok.yaml"
    stages.write_text(stages_without(KWOK_STAGES.read_text(), _POD_END_STAGE))
    options = ControlPlaneOptions(kube_controller_manager=True, kwok=True, kwok_stages=stages, audit=True)
    with ControlPlane.start(options) as plane, Kubelets(plane.client):
        plane.client.create_all("nodes", (suite_node(number) for number in range(NODES)))
        with _start_scheduler(plane, directory, scheduler, configuration) as process:
            plane.client.create_all("daemonsets", map(agents, NODE_AGENTS))
            wait_until(lambda: _has_settled(plane), "every node having its agents", timeout_seconds=_START_SECONDS)
            yield Cluster(plane, process)


def stages_without(stages: str, name: str) -> str:
    """Returns kwok's stages, as YAML, without the one of this name.

    Raises:
        ValueError: there is none.
    """
    documents = list(yaml.safe_load_all(stages))
    kept = [each for each in documents if each["metadata"]["name"] != name]
    if len(kept) == len(documents):
        raise ValueError(f"kwok plays no stage {name!r}")
    return yaml.safe_dump_all(kept)


def suite_node(number: int) -> Object:
    """Returns one of the nodes: as many in one zone as in the other, each with an address of its own.

    An address of the loopback network would collide with the one that the specs about host ports use.
    """
    labels = {
        "topology.kubernetes.io/zone": _ZONES[number % len(_ZONES)],
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    found = node(f"node-{number}", labels=labels, resources={"ephemeral-storage": "100Gi"})
    found["status"]["addresses"] = [
        {"type": "InternalIP", "address": f"192.0.2.{number + 1}"},
        {"type": "Hostname", "address": f"node-{number}"},
    ]
    return found


def agents(name: str) -> Object:
    """Returns the DaemonSet of one of NODE_AGENTS.

    The scheduler under test places its pods, as in any cluster, and no preemption may end them.
    """
    labels = {"k8s-app": name}
    return {
        "metadata": {"name": name, "namespace": _SYSTEM_NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "priorityClassName": "system-node-critical",
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": name, "image": f"registry.k8s.io/{name}"}],
                },
            },
        },
    }


def _start_scheduler(plane: ControlPlane, directory: Path, scheduler: str, configuration: str) -> Process:
    document = scheduler_configuration(configuration)
    if scheduler == KUBE_SCHEDULER:
        kubeconfig = plane.kubeconfig_for(kube_scheduler_process.USER)
        return KubeSchedulerProcess(directory, document, kubeconfig)
    # A pod of the Deployment would wait for the scheduler that it is, and then only seem to run.
    kubeconfig = install_bayplan(plane, without=("Deployment",))
    return BayplanProcess(directory, config=document, kubeconfig=kubeconfig)


def _has_settled(plane: ControlPlane) -> bool:
    tainted = [found for found in plane.client.list("nodes") if found["spec"].get("taints")]
    system_pods = plane.client.list("pods", _SYSTEM_NAMESPACE)
    running = [found for found in system_pods if found["status"].get("phase") == "Running"]
    return not tainted and len(running) == NODES * len(NODE_AGENTS)
