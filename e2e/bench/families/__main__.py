"""`python -m e2e.bench.families`: scheduler_perf's families, kube-scheduler and bayplan one after the other."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from e2e.bench import environment
from e2e.bench.contestants import ALL_NODES, BAYPLAN, BEFORE, SAMPLED, Contestant, contestants
from e2e.bench.families.scheduler_perf import FAMILIES, Family
from e2e.bench.families.turn import Result, take_turn
from e2e.bench.families.workloads import Size
from e2e.bench.hot_functions import hot_functions
from e2e.bench.report import markdown
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions

_MB = 1_000_000
# Its finalizers are taken off by a controller that does not run here, so claims could never be deleted.
_NO_ADMISSION = ("StorageObjectInUseProtection",)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the families and prints a table; 1 if a contestant left pods unbound."""
    options = _options(arguments)
    chosen = [family for family in FAMILIES if not options.family or family.name in options.family]
    rows: list[tuple[Family, Size, list[Result]]] = []
    with ControlPlane.start(ControlPlaneOptions(bench=True, disable_admission=_NO_ADMISSION)) as plane:
        kubeconfig = install_bayplan(plane)
        everyone = contestants(options.profile, options.before)
        entrants = [everyone[name] for name in options.only]
        bench = _Bench(plane, kubeconfig, entrants, options.limit_seconds)
        for number, family in enumerate(chosen):
            size = family.size.scaled(options.scale)
            rows.append((family, size, _run(bench, family, size, number)))
            print("\n" + _table(rows[-1:]), flush=True)
    print(f"\n{environment.date()}  {environment.commit()}  {json.dumps(asdict(environment.machine()))}\n")
    print(_table(rows))
    if options.json is not None:
        document = [
            {
                "family": family.name,
                "size": asdict(size),
                "threshold": family.threshold,
                "results": list(map(asdict, found)),
            }
            for family, size, found in rows
        ]
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    if options.profile is not None:
        print(f"\n{hot_functions(options.profile)}")
    return 1 if any(result.bound < result.pods for *_, found in rows for result in found) else 0


@dataclass(frozen=True, slots=True)
class _Bench:
    plane: ControlPlane
    kubeconfig: Path
    entrants: Sequence[Contestant]
    limit: float


def _run(bench: _Bench, family: Family, size: Size, number: int) -> list[Result]:
    plane = bench.plane
    results: list[Result] = []
    plane.client.delete_all("nodes")
    for turn, contestant in enumerate(bench.entrants):
        scope = f"f{number}-{turn}"
        workload = family.build(size, scope)
        if turn == 0:
            plane.client.create_all("nodes", workload.nodes)
        result = take_turn(plane, contestant, workload, bench.kubeconfig, limit=bench.limit)
        results.append(result)
        _say(f"{family.name}: {contestant.name} {result.pods_per_second:.0f} pods/s, {result.bound}/{result.pods}")
    return results


def _table(rows: Sequence[tuple[Family, Size, list[Result]]]) -> str:
    heads = ["nodes", "family", "init", "pods", "scheduler", "pods/s", "last tenth", "CPU ms/pod", "peak MB"]
    heads += ["s to all bound", "bound", "evicted", "upstream asks"]
    cells = [
        [
            str(size.nodes),
            family.name,
            str(size.init),
            str(size.measured),
            result.contestant,
            f"{result.pods_per_second:.0f}",
            f"{result.slowest_tenth:.0f}",
            f"{result.cpu_ms_per_pod:.2f}",
            f"{result.peak_rss / _MB:.0f}",
            f"{result.seconds_from_start:.1f}",
            str(result.bound),
            str(result.evicted),
            str(family.threshold or "-"),
        ]
        for family, size, found in rows
        for result in found
    ]
    return "\n".join(markdown(heads, cells))


def _say(message: str) -> None:
    print(f"bench: {message}", file=sys.stderr, flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.families", description=__doc__)
    names = [family.name for family in FAMILIES]
    parser.add_argument("--family", action="append", choices=names, help="only this one; may be given again")
    parser.add_argument("--scale", type=float, default=0.2, help="share of upstream's numbers of nodes and pods")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[SAMPLED, ALL_NODES, BAYPLAN, BEFORE],
        default=[SAMPLED, BAYPLAN],
        help="contestants",
    )
    parser.add_argument("--before", type=Path, help=f"another checkout, whose bayplan takes part as {BEFORE}")
    parser.add_argument("--limit-seconds", type=float, default=180.0, help="a turn ends after this long")
    parser.add_argument("--json", type=Path, help="file for all figures")
    parser.add_argument("--profile", type=Path, help="only bayplan, profiled; directory for the profile")
    chosen = parser.parse_args(arguments)
    if BEFORE in chosen.only and chosen.before is None:
        parser.error(f"{BEFORE} needs --before DIR")
    if chosen.profile is not None:
        chosen.only = [BAYPLAN]
        chosen.profile = chosen.profile.resolve()
        chosen.profile.mkdir(parents=True, exist_ok=True)
    return chosen


if __name__ == "__main__":
    sys.exit(main())
