"""Records kube-scheduler's decisions on random clusters: `python -m tests.oracle.record --seed 7`.

Needs the control plane that `make controlplane` builds; test_replay.py holds bayplan against the files.
"""

import argparse
import logging
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.controlplane import kube_scheduler_process
from e2e.controlplane.kube_scheduler_process import KubeSchedulerProcess
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.waiting import wait_until
from tests.oracle.case import DATA, Case, Object, Scene, write_cases
from tests.oracle.configurations import CONFIGURATIONS
from tests.oracle.decision_log import DecisionLog
from tests.oracle.families import parts
from tests.oracle.families.family import ALL_FAMILIES, scene_of
from tests.oracle.stage import Stage

# Scenes say of a pod all there is to say, its priority as a number; what these would add belongs to no scheduler.
_ADMISSION_OFF = (
    "DefaultTolerationSeconds",
    "RuntimeClass",
    "StorageObjectInUseProtection",
    "DefaultStorageClass",
    "Priority",
)

# A pod like the one before it would be given the next node of the last ranking, unscored.
_ARGUMENTS = ("--logging-format=json", "--feature-gates=OpportunisticBatching=false")
_SYNCED = b'"msg":"Handlers synced"'


def record(families: dict[str, int], seed: int, directory: Path) -> None:
    """Records so many cases of each family and writes one file a family to `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    scenes: dict[str, list[tuple[str, str, Scene]]] = defaultdict(list)
    for family, count in families.items():
        for index in range(count):
            configuration, scene = scene_of(family, seed, index)
            scenes[configuration].append((family, f"{family}-{seed}-{index:03}", scene))
    recorded: dict[str, list[Case]] = defaultdict(list)
    with ControlPlane.start(ControlPlaneOptions(bench=True, disable_admission=_ADMISSION_OFF)) as plane:
        fresh = True
        for configuration, group in scenes.items():
            started = time.monotonic()
            with _running_kube_scheduler(plane, CONFIGURATIONS[configuration]) as log:
                stage = Stage(plane.client, log)
                if fresh:
                    stage.create_namespaces(parts.namespaces())
                    fresh = False
                for family, name, scene in group:
                    recorded[family].append(stage.play(name, configuration, scene))
            seconds = time.monotonic() - started
            print(f"{configuration}: {len(group)} cases in {seconds:.0f} s, {stage.refused} pods refused", flush=True)
    for family, cases in recorded.items():
        cases.sort(key=lambda case: case.name)
        used = {case.configuration: CONFIGURATIONS[case.configuration] for case in cases}
        write_cases(directory / f"{family}.jsonl.gz", used, cases)


@contextmanager
def _running_kube_scheduler(plane: ControlPlane, configuration: Object) -> Iterator[DecisionLog]:
    """A healthy kube-scheduler of that configuration, and its log."""
    directory = plane.directory / "oracle"
    directory.mkdir(exist_ok=True)
    path = directory / "kube-scheduler.log"
    path.unlink(missing_ok=True)
    document = {**configuration, "clientConnection": {"qps": 5000, "burst": 5000}}
    kubeconfig = plane.kubeconfig_for(kube_scheduler_process.USER)
    with KubeSchedulerProcess(directory, document, kubeconfig, verbosity=10, arguments=_ARGUMENTS):
        # Objects made before the first lists are in show their last state alone, and cases wait for every change.
        wait_until(lambda: _SYNCED in path.read_bytes(), "kube-scheduler's first lists")
        yield DecisionLog(path)


def main() -> int:
    """Parses the arguments and records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family", action="append", choices=sorted(ALL_FAMILIES), help="only this; may be repeated")
    parser.add_argument("--cases", type=int, help="cases of each family, instead of its own number")
    parser.add_argument("--out", type=Path, default=DATA, help="folder for the files, one a family")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    families = {name: arguments.cases or ALL_FAMILIES[name].cases for name in arguments.family or ALL_FAMILIES}
    started = time.monotonic()
    record(families, arguments.seed, arguments.out)
    print(f"{sum(families.values())} cases in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
