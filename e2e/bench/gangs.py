"""`python -m e2e.bench.gangs`: pods that wait before the start, in gangs and in none, before both schedulers.

The API server serves PodGroups of scheduling.k8s.io/v1beta1, and kube-scheduler has GenericWorkload on.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.oracle.gangs.stage import GENERIC_WORKLOAD
from tests.oracle.gangs.stage import options as gang_options

from e2e.bench import environment
from e2e.bench.contestants import BAYPLAN, SAMPLED, Contestant, Stage, contestants
from e2e.bench.families.turn import Result, take_turn
from e2e.bench.families.workloads import Workload
from e2e.bench.report import markdown
from e2e.bench.workload import SCHEDULER_NAME, bench_node, scheduler_configuration
from e2e.controlplane import kube_scheduler_process
from e2e.controlplane.client import Object
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.kube_scheduler_process import KubeSchedulerProcess
from e2e.controlplane.objects import pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process
from e2e.gangs.objects import GROUPS, LABEL, group, install_crd

NATIVE, CRD = "native", "crd"
_REQUESTS = {"cpu": "100m", "memory": "500Mi"}
# Finalizers that no controller would take off here.
_NO_ADMISSION = ("PodGroupProtection",)
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """A turn: of which kind and size the gangs were, 0 for none."""

    size: int
    kind: str
    repeat: int
    result: Result

    @property
    def first_bind(self) -> float:
        """Seconds from before the process was started to the first bind."""
        return self.result.seconds_from_start - self.result.seconds


def workload(pods: int, size: int, kind: str, namespace: str) -> Workload:
    """Returns pods in gangs of a size, of which all are needed, or with size 0 in none."""
    measured: list[Object] = []
    groups: list[tuple[str, Object]] = []
    for index in range(pods):
        fields: Object = {}
        if size:
            name = f"gang-{index // size:04d}"
            fields = {"labels": {LABEL: name}} if kind == CRD else {"schedulingGroup": {"podGroupName": name}}
            if index % size == 0:
                groups.append(_group(name, namespace, size, kind))
        measured.append(pod(f"pod-{index:05d}", namespace, scheduler=SCHEDULER_NAME, requests=_REQUESTS, **fields))
    return Workload([], {namespace: {}}, measured, objects=groups)


def _group(name: str, namespace: str, least: int, kind: str) -> tuple[str, Object]:
    if kind == CRD:
        return GROUPS, group(name, namespace, least)
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
    return "podgroups", {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def table(rows: Sequence[Row]) -> str:
    """Returns a line for each turn."""
    heads = [
        "gangs of",
        "kind",
        "scheduler",
        "pods/s",
        "s to 1st bind",
        "s to all bound",
        "CPU ms/pod",
        "peak MB",
        "bound",
    ]
    cells = [
        [
            str(row.size or "none"),
            row.kind if row.size else "-",
            row.result.contestant,
            f"{row.result.pods_per_second:.0f}",
            f"{row.first_bind:.2f}",
            f"{row.result.seconds_from_start:.2f}",
            f"{row.result.cpu_ms_per_pod:.2f}",
            f"{row.result.peak_rss / _MB:.0f}",
            f"{row.result.bound}/{row.result.pods}",
        ]
        for row in rows
    ]
    return "\n".join(markdown(heads, cells))


def _with_gates(stage: Stage) -> Process:
    kubeconfig = stage.plane.kubeconfig_for(kube_scheduler_process.USER)
    gate = f"--feature-gates={GENERIC_WORKLOAD}=true"
    configuration = scheduler_configuration(None)
    return KubeSchedulerProcess(stage.directory, configuration, kubeconfig, verbosity=0, arguments=[gate])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, and prints the table; 1 if pods were left unbound."""
    chosen = _options(arguments)
    everyone = {
        SAMPLED: Contestant(SAMPLED, "kube-scheduler with GenericWorkload", _with_gates),
        BAYPLAN: contestants()[BAYPLAN],
    }
    rows: list[Row] = []
    with ControlPlane.start(replace(gang_options(), disable_admission=_NO_ADMISSION)) as plane:
        install_crd(plane)
        kubeconfig = install_bayplan(plane)
        plane.client.create_all("nodes", [bench_node(index) for index in range(chosen.nodes)])
        for repeat in range(chosen.repeat):
            for size in chosen.sizes:
                for kind in chosen.kinds if size else chosen.kinds[:1]:
                    # kube-scheduler knows nothing of the CRD: its pods are single ones to it.
                    names = [name for name in chosen.only if kind == NATIVE or name == BAYPLAN or not size]
                    for name in names if repeat % 2 == 0 else names[::-1]:
                        made = workload(chosen.pods, size, kind, f"gangs-{len(rows):03d}")
                        result = take_turn(plane, everyone[name], made, kubeconfig, limit=chosen.limit_seconds)
                        rows.append(Row(size, kind, repeat, result))
                        print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    print(f"\n{environment.date()}  {environment.commit()}  {json.dumps(asdict(environment.machine()))}\n")
    print(f"{chosen.nodes} nodes, {chosen.pods} pods\n\n{table(rows)}")
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    return int(any(row.result.bound < row.result.pods for row in rows))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.gangs", description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=4096)
    parser.add_argument("--sizes", type=int, nargs="+", default=[0, 8, 64], help="members of a gang; 0 for no gangs")
    parser.add_argument("--kinds", nargs="+", choices=[NATIVE, CRD], default=[NATIVE, CRD], help="of groups")
    parser.add_argument("--only", nargs="+", choices=[SAMPLED, BAYPLAN], default=[SAMPLED, BAYPLAN], help="contestants")
    parser.add_argument("--repeat", type=int, default=1, help="turns of each; every second one in reverse order")
    parser.add_argument("--limit-seconds", type=float, default=180.0, help="a turn ends after this long")
    parser.add_argument("--json", type=Path, help="file for all figures")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
