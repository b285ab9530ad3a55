"""Has bayplan play the scenarios of gangs that kube-scheduler was recorded with: `python -m e2e.gangs`.

Prints a table of what is equal, a tie and different, and a line for each difference; 1 if there is one.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.oracle.gangs.catalogue import choose, families
from tests.oracle.gangs.company import play_all
from tests.oracle.gangs.comparison import DIFFERENT, EQUAL, TIE, Verdict, compare
from tests.oracle.gangs.recording import DATA, read
from tests.oracle.gangs.scenario import Family
from tests.oracle.gangs.stage import CONFIGURATION, GENERIC_WORKLOAD

from e2e.bench.report import markdown
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process

QUIET_SECONDS = 5.0
"""bayplan has a text that is new wait for the back-off and a second, and for its turn among others."""


def bayplan(plane: ControlPlane, gates: tuple[str, ...]) -> Process:
    """Starts bayplan with its shipped rights, and kube-scheduler's configuration and gates."""
    directory = plane.directory / "gangs"
    directory.mkdir()
    on = ",".join(f"{gate}=true" for gate in (GENERIC_WORKLOAD, *gates))
    flags = [f"--feature-gates={on}"] if gates else []
    return BayplanProcess(directory, config=CONFIGURATION, kubeconfig=install_bayplan(plane), arguments=flags)


def judge(chosen: Sequence[Family], recordings: Path, planes: int) -> dict[str, list[Verdict]]:
    """Plays the families with bayplan and returns the verdicts by family.

    Raises:
        SystemExit: a scenario was not recorded as it is now.
    """
    recorded = {family.name: read(recordings / f"{family.name}.json").scenarios for family in chosen}
    for family in chosen:
        for each in family.scenarios:
            if each.name not in recorded[family.name] or recorded[family.name][each.name].digest != each.digest():
                sys.exit(f"{each.name} was recorded with other steps: python -m tests.oracle.gangs.record")
    found = play_all(chosen, planes, bayplan, QUIET_SECONDS)
    return {
        family.name: [
            compare(each, recorded[family.name][each.name].runs, found[each.name]) for each in family.scenarios
        ]
        for family in chosen
    }


def table(verdicts: dict[str, list[Verdict]]) -> str:
    """Returns a row for each family and one for all."""
    rows = []
    for name, each in [*verdicts.items(), ("all", [verdict for found in verdicts.values() for verdict in found])]:
        counts = Counter(verdict.kind for verdict in each)
        rows.append([name, str(len(each)), *(str(counts[kind]) for kind in (EQUAL, TIE, DIFFERENT))])
    return "\n".join(markdown(["family", "scenarios", EQUAL, TIE, DIFFERENT], rows))


def differences(verdicts: dict[str, list[Verdict]]) -> list[str]:
    """Returns a line for each difference, with how to see it again."""
    return [
        f"{name} / {verdict.scenario}: {line} (python -m e2e.gangs --scenario {verdict.scenario})"
        for name, found in verdicts.items()
        for verdict in found
        for line in verdict.lines
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays, and prints the table and the differences."""
    options = _options(arguments)
    chosen = choose(options.seed, options.family, options.scenario)
    started = time.monotonic()
    verdicts = judge(chosen, options.recordings, options.planes)
    lines = differences(verdicts)
    print("\n".join(["", *lines, "", table(verdicts), "", f"{time.monotonic() - started:.0f} s"]))
    if options.differences is not None:
        options.differences.write_text("".join(f"{line}\n" for line in lines))
    return int(bool(lines))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.gangs", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the scenarios that dice made up")
    parser.add_argument("--family", action="append", choices=sorted(families(1)), help="only this; may be repeated")
    parser.add_argument("--scenario", action="append", help="only this; may be repeated")
    parser.add_argument("--planes", type=int, default=3, help="control planes at a time")
    parser.add_argument("--recordings", type=Path, default=DATA, help="folder of kube-scheduler's runs")
    parser.add_argument("--differences", type=Path, help="file for the lines of the differences")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
