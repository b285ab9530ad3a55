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
from e2e.controlplane.build import binary
from e2e.controlplane.kube_scheduler_process import KubeSchedulerProcess
from e2e.controlplane.kubernetes_version import version_of
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.waiting import wait_until
from tests.oracle.case import DATA, Case, Object, Recording, Scene, write_cases
from tests.oracle.configurations import CONFIGURATIONS
from tests.oracle.decision_log import DecisionLog
from tests.oracle.extenders import address_of_extenders, at_no_address, moved
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

_ARGUMENTS = ("--logging-format=json",)
_SYNCED = b'"msg":"Handlers synced"'

_Named = tuple[str, str, Scene]


def record(families: dict[str, int], seed: int, directory: Path) -> None:
    """Records so many cases of each family and writes one file a family to `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    version = version_of(binary("kube-scheduler"))
    recorded: dict[str, list[Case]] = defaultdict(list)
    with ControlPlane.start(ControlPlaneOptions(bench=True, disable_admission=_ADMISSION_OFF)) as plane:
        for each in parts.namespaces():
            plane.client.create("namespaces", {"apiVersion": "v1", **each})
        for configuration, groups in _groups(families, seed).items():
            started, refused = time.monotonic(), 0
            for group in groups:
                with _running_stage(plane, CONFIGURATIONS[configuration]) as (stage, address):
                    for family, name, scene in group:
                        recorded[family].append(_with_no_address(stage.play(name, configuration, scene), address))
                    refused += stage.refused
            seconds, count = time.monotonic() - started, sum(map(len, groups))
            print(f"{configuration}: {count} cases in {seconds:.0f} s, {refused} pods refused", flush=True)
    for family, cases in recorded.items():
        cases.sort(key=lambda case: case.name)
        used = {case.configuration: CONFIGURATIONS[case.configuration] for case in cases}
        write_cases(directory / f"{family}.jsonl.gz", Recording(version, used, cases))


def _groups(families: dict[str, int], seed: int) -> dict[str, list[list[_Named]]]:
    """The scenes, each with its family and the name of its case, by configuration; a group has one kube-scheduler."""
    found: dict[str, list[list[_Named]]] = defaultdict(lambda: [[]])
    for family, count in families.items():
        for index in range(count):
            configuration, scene = scene_of(family, seed, index)
            named = (family, f"{family}-{seed}-{index:03}", scene)
            if ALL_FAMILIES[family].afresh:
                found[configuration].append([named])
            else:
                found[configuration][0].append(named)
    return {configuration: [group for group in groups if group] for configuration, groups in found.items()}


def _with_no_address(case: Case, address: str) -> Case:
    """The case with extenders where the documents have them, and not at the address they had this time."""
    for decision in case.decisions:
        if decision.message is not None:
            decision.message = at_no_address(decision.message, address)
    return case


@contextmanager
def _running_stage(plane: ControlPlane, configuration: Object) -> Iterator[tuple[Stage, str]]:
    """A stage before a healthy kube-scheduler of that configuration, and the address of its extenders."""
    directory = plane.directory / "oracle"
    directory.mkdir(exist_ok=True)
    path = directory / "kube-scheduler.log"
    path.unlink(missing_ok=True)
    kubeconfig = plane.kubeconfig_for(kube_scheduler_process.USER)
    document = {**configuration, "clientConnection": {"qps": 5000, "burst": 5000}}
    with (
        address_of_extenders(configuration) as address,
        KubeSchedulerProcess(directory, moved(document, address), kubeconfig, verbosity=10, arguments=_ARGUMENTS),
    ):
        # Objects made before the first lists are in show their last state alone, and cases wait for every change.
        wait_until(lambda: _SYNCED in path.read_bytes(), "kube-scheduler's first lists")
        yield Stage(plane.client, DecisionLog(path)), address


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
