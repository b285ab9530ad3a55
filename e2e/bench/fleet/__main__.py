"""`python -m e2e.bench.fleet`: PyTorch's CI fleet at its peak, with placeholders that jobs preempt and without.

2,100 nodes of the fleet's types hold 7,300 pods of 12 kB. Jobs come as at the peak of a weekday, ten times as often,
and 2,000 at once, in the proportions of a month. Each contestant has a leader and a standby.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from e2e.bench import environment
from e2e.bench.fleet.layout import NODES, PODS, Layout
from e2e.bench.fleet.turn import BURST, RUNNING, Phase, Stage, Turn, fill, place, take_turn
from e2e.bench.report import markdown
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.replicas import StartReplica, bayplan_replica, install_kube_scheduler, kube_scheduler_replica

PEAK_RATE = 8500 / 3600
_CONTESTANTS: dict[str, StartReplica] = {"kube-scheduler": kube_scheduler_replica, "bayplan": bayplan_replica}
_MB = 1_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures each contestant, and prints the table."""
    options = _options(arguments)
    phases = [
        *(Phase(round(rate * options.seconds), rate) for rate in (PEAK_RATE, 10 * PEAK_RATE)),
        Phase(options.burst, BURST),
    ]
    layout = Layout(nodes=options.nodes, pods=options.pods, jobs=sum(phase.jobs for phase in phases))
    turns: list[Turn] = []
    with ControlPlane.start(ControlPlaneOptions(bench=True)) as plane:
        install_bayplan(plane)
        install_kube_scheduler(plane)
        place(plane, layout, plane.directory, say=_say)
        (sample,) = plane.client.request("GET", f"/api/v1/namespaces/{RUNNING}/pods?limit=1")["items"]
        facts = f"{len(layout.nodes)} nodes, {len(layout.running)} pods of {len(json.dumps(sample))} bytes"
        for placeholders in (False, True):
            for repeat in range(options.repeat):
                names = options.only if repeat % 2 == 0 else options.only[::-1]
                for name in names:
                    if placeholders:
                        fill(plane, layout, plane.directory)
                    directory = plane.directory / f"{name}-{placeholders}-{repeat}"
                    stage = Stage(plane, layout, directory, placeholders)
                    turns.append(take_turn(stage, name, _CONTESTANTS[name], phases))
                    _say(str(turns[-1]))
    print(f"\n{environment.date()}  {environment.commit()}  {environment.machine()}")
    print(f"{facts}, {len(layout.placeholders)} placeholders\n\n{table(turns)}")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(each) for each in turns], indent=2) + "\n")
    return 0


def table(turns: Sequence[Turn]) -> str:
    """Returns a line for each turn: p50 and p99 and CPU of each phase, and memory."""
    heads = ["placeholders", "scheduler"]
    for flow in turns[0].flows:
        what = f"{flow.phase.rate:.1f}/s" if flow.phase.rate else f"{flow.phase.jobs:,} at once"
        heads += [f"{what}: p50, p99 ms", "CPU ms a job"]
    heads += ["burst bound, s", "leader MB: start, peak", "standby MB", "evicted"]
    rows = []
    for turn in turns:
        row = ["with" if turn.placeholders else "without", turn.contestant]
        for flow in turn.flows:
            row += [f"{flow.p50 * 1000:.0f}, {flow.p99 * 1000:.0f}", f"{flow.cpu_ms_per_job:.1f}"]
        row.append(f"{turn.flows[-1].all_bound:.1f}")
        row += [f"{each.started / _MB:.0f}, {each.peak / _MB:.0f}" for each in (turn.leader, turn.standby)]
        rows.append([*row, str(turn.evicted)])
    return "\n".join(markdown(heads, rows))


def _say(message: str) -> None:
    print(f"fleet: {message}", file=sys.stderr, flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.fleet", description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--pods", type=int, default=PODS, help="that run all along")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long jobs come at each rate")
    parser.add_argument("--burst", type=int, default=2000, help="jobs that come at once")
    parser.add_argument("--repeat", type=int, default=1, help="turns of each; every second one in reverse order")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(_CONTESTANTS), help="contestants")
    parser.add_argument("--json", type=Path, help="file for all figures")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
