"""Records which metrics kube-scheduler exports: `python -m tests.server.record`.

Needs the control plane that `make controlplane` builds; test_kube_scheduler_metrics.py holds bayplan against the file.
"""

import sys
import time
from collections.abc import Iterable
from pathlib import Path

from e2e.controlplane import kube_scheduler_process
from e2e.controlplane.client import ApiClient
from e2e.controlplane.health import get_local
from e2e.controlplane.kube_scheduler_process import KubeSchedulerProcess
from e2e.controlplane.objects import claim, local_volume, node, pod, pod_of_class, storage_class
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until
from prometheus_client.parser import text_string_to_metric_families

DATA = Path(__file__).parent / "data" / "kube-scheduler-metrics.txt"
"""A line a metric: its name, type and stability, its labels, and the upper bounds of a histogram's buckets."""

_OF_THE_RUNTIME = "go_"
_NAMESPACE = "default"
_ME = "default-scheduler"
_GOES_ON_SECONDS = 12.0


def described(text: str) -> Iterable[str]:
    """Describes each metric of an exposition on one line."""
    for family in text_string_to_metric_families(text):
        if family.name.startswith(_OF_THE_RUNTIME):
            continue
        name = family.name + ("_total" if family.type == "counter" else "")
        stability, _, _ = family.documentation.removeprefix("[").partition("]")
        stage = stability if family.documentation.startswith("[") else "-"
        labels = sorted({label for sample in family.samples for label in sample.labels} - {"le", "quantile"})
        bounds = [sample.labels["le"] for sample in family.samples if sample.name.endswith("_bucket")]
        first = bounds[: bounds.index("+Inf")] if bounds else []
        yield f"{name} {family.type} {stage} {','.join(labels) or '-'} {','.join(first) or '-'}"


def _live(client: ApiClient) -> None:
    """Has pods bound, rejected, gated, preempted, and bound with a volume."""
    hostname = "kubernetes.io/hostname"
    for name, value in (("low", 1), ("high", 1000)):
        client.create("priorityclasses", {"metadata": {"name": name}, "value": value})
    client.create_all("nodes", [node(f"node-{index}") for index in range(3)])
    client.create("storageclasses", storage_class("local"))
    term = {"matchExpressions": [{"key": hostname, "operator": "In", "values": ["node-0"]}]}
    client.create("persistentvolumes", local_volume("disk", "local", term))
    client.create("persistentvolumeclaims", claim("disk", _NAMESPACE, "local"))
    with_claim = [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]
    gates = [{"name": "example.com/gate"}]
    client.create("pods", pod("first", _NAMESPACE, scheduler=_ME))
    client.create("pods", pod("volume", _NAMESPACE, scheduler=_ME, volumes=with_claim))
    client.create("pods", pod("gated", _NAMESPACE, scheduler=_ME, schedulingGates=gates))
    client.create("pods", pod("never", _NAMESPACE, scheduler=_ME, requests={"cpu": "1000"}))
    client.create_all(
        "pods", [pod_of_class(f"low-{index}", _NAMESPACE, "low", "3", scheduler=_ME) for index in range(3)]
    )
    time.sleep(2)
    client.create("pods", pod_of_class("high", _NAMESPACE, "high", "3", scheduler=_ME))
    # What comes later has hints called, and is bound often enough that a tenth of the cycles is measured.
    for index in range(60):
        name = f"later-{index}"
        client.create("pods", pod(name, _NAMESPACE, scheduler=_ME, requests={"cpu": "1m"}))
    time.sleep(2)
    client.create_all("nodes", [node(f"more-{index}", cpu="8") for index in range(20)])


def record() -> None:
    """Writes the file."""
    with ControlPlane.start() as plane:
        directory = plane.directory / "recorded"
        directory.mkdir()
        configuration = {"leaderElection": {"leaderElect": True}}
        arguments = [
            "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics",
            # Off by default, and with it metrics that mean something here.
            "--feature-gates=SchedulerAsyncAPICalls=true",
        ]
        kubeconfig = plane.kubeconfig_for(kube_scheduler_process.USER)
        with KubeSchedulerProcess(directory, configuration, kubeconfig, arguments=arguments) as process:
            wait_until(process.is_ready, "kube-scheduler")
            _live(plane.client)
            time.sleep(_GOES_ON_SECONDS)
            status, text = get_local(process.port, "/metrics", tls=True)
    if status != 200:
        raise SystemExit(f"kube-scheduler answered {status}: {text}")
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_text("".join(f"{line}\n" for line in sorted(described(text))))


if __name__ == "__main__":
    record()
    sys.exit(0)
