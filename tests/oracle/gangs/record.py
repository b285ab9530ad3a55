"""Records what kube-scheduler makes of gangs: `python -m tests.oracle.gangs.record`.

Needs the control plane that `make controlplane` builds. `python -m e2e.gangs` holds bayplan against the files.
"""

import argparse
import sys
import time
from pathlib import Path

from e2e.controlplane import kube_scheduler_process
from e2e.controlplane.build import binary
from e2e.controlplane.kube_scheduler_process import KubeSchedulerProcess
from e2e.controlplane.kubernetes_version import version_of
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process
from tests.oracle.gangs.catalogue import choose, families
from tests.oracle.gangs.company import play_all
from tests.oracle.gangs.recording import DATA, Recorded, Recording, Run, read, write
from tests.oracle.gangs.scenario import Family
from tests.oracle.gangs.stage import CONFIGURATION, GENERIC_WORKLOAD, QUIET_SECONDS

_PHASES = 5


def kube_scheduler(plane: ControlPlane, family_gates: tuple[str, ...]) -> Process:
    """Starts kube-scheduler with the gates of gangs on."""
    directory = plane.directory / "gangs"
    directory.mkdir()
    gates = ",".join(f"{gate}=true" for gate in (GENERIC_WORKLOAD, *family_gates))
    kubeconfig = plane.kubeconfig_for(kube_scheduler_process.USER)
    return KubeSchedulerProcess(directory, CONFIGURATION, kubeconfig, arguments=[f"--feature-gates={gates}"])


def record(chosen: list[Family], runs: int, planes: int, directory: Path, *, adds: bool = False) -> None:
    """Plays each family so many times and writes one file a family to `directory`; with `adds` to what is there."""
    directory.mkdir(parents=True, exist_ok=True)
    version = version_of(binary("kube-scheduler"))
    taken: dict[str, list[Run]] = {}
    for number in range(runs):
        # Groups are retried at whole seconds: what happens after a rest falls at another part of one in each run.
        quiet = QUIET_SECONDS + number % _PHASES / _PHASES
        for name, run in play_all(chosen, planes, kube_scheduler, quiet).items():
            taken.setdefault(name, []).append(run)
    for family in chosen:
        path = directory / f"{family.name}.json"
        found = read(path).scenarios if adds else {}
        for each in family.scenarios:
            known = found.get(each.name)
            before = known.runs if known is not None and known.digest == each.digest() else ()
            found[each.name] = Recorded.of(each, [*before, *taken[each.name]])
        write(path, Recording(version, found))


def main() -> int:
    """Parses the arguments and records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the scenarios that dice make up")
    parser.add_argument("--family", action="append", choices=sorted(families(1)), help="only this; may be repeated")
    parser.add_argument("--scenario", action="append", help="only this, with --add; may be repeated")
    parser.add_argument("--add", action="store_true", help="to the runs that the files have")
    parser.add_argument("--runs", type=int, default=2, help="what differs between them is an alternative")
    parser.add_argument("--planes", type=int, default=3, help="control planes at a time")
    parser.add_argument("--out", type=Path, default=DATA, help="folder for the files, one a family")
    arguments = parser.parse_args()
    if arguments.scenario and not arguments.add:
        parser.error("--scenario needs --add: the file would have nothing else")
    chosen = choose(arguments.seed, arguments.family, arguments.scenario)
    started = time.monotonic()
    record(chosen, arguments.runs, arguments.planes, arguments.out, adds=arguments.add)
    count = sum(len(family.scenarios) for family in chosen)
    print(f"{count} scenarios in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
