"""`python -m e2e.bench.scale`: steady flows and a burst, a cold start with a long queue, and a very large cluster."""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from e2e.bench import environment
from e2e.bench.cluster import BenchCluster
from e2e.bench.contestants import BAYPLAN, BEFORE, SAMPLED, Contestant, contestants
from e2e.bench.scale.figures import Outcome, bars, lines
from e2e.bench.scale.scenes import Scene, scenes, take_turn
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the scenes and prints what they gave and which bars were passed; 1 if a contestant did not finish."""
    options = _options(arguments)
    everyone = contestants(before=options.before)
    entrants = [everyone[name] for name in options.only]
    chosen = [each for each in scenes(options.share, options.flow_seconds) if each.name in options.scenes]
    outcomes: list[Outcome] = []
    with ControlPlane.start(ControlPlaneOptions(bench=True)) as plane:
        kubeconfig = install_bayplan(plane)
        cluster = BenchCluster(plane)
        for scene in chosen:
            outcomes += _play(cluster, scene, entrants, kubeconfig, options)
    machine = asdict(environment.machine())
    print(f"\n{environment.date()}  {environment.commit()}  {json.dumps(machine)}\n")
    for outcome in outcomes:
        print("\n".join(lines(outcome)))
    found = bars(outcomes)
    print("\n".join(f"{'ok    ' if bar.passed else 'MISSED'} {bar.name}: {bar.found}" for bar in found))
    if options.json is not None:
        document = {
            "date": environment.date(),
            "commit": environment.commit(),
            "machine": machine,
            "versions": environment.versions(),
            "share": options.share,
            "outcomes": [asdict(each) for each in outcomes],
            "bars": [asdict(each) for each in found],
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 1 if any(each.problem for each in outcomes) else 0


def _play(
    cluster: BenchCluster, scene: Scene, entrants: list[Contestant], kubeconfig: Path, options: argparse.Namespace
) -> list[Outcome]:
    """Every entrant in turn, in reverse order at every second repeat; the API server has done more work then."""
    _say(f"{scene.name}: {scene.nodes} nodes, {scene.placed} pods on them")
    cluster.set_nodes(scene.nodes)
    placed = cluster.new_namespace()
    outcomes: list[Outcome] = []
    try:
        if scene.placed:
            with tempfile.TemporaryDirectory(prefix="placed-", dir=cluster.plane.directory) as name:
                cluster.place_pods(placed, Path(name), scene.placed)
        for repeat in range(options.repeat):
            for contestant in entrants if repeat % 2 == 0 else entrants[::-1]:
                outcome = take_turn(
                    cluster,
                    scene,
                    contestant,
                    repeat=repeat,
                    bayplan_kubeconfig=kubeconfig,
                    limit=options.limit_seconds,
                )
                outcomes.append(outcome)
                _say("\n".join(lines(outcome)))
    finally:
        cluster.clear(placed)
    return outcomes


def _say(message: str) -> None:
    print(f"scale: {message}", file=sys.stderr, flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.scale", description=__doc__)
    names = [each.name for each in scenes(1.0, 1.0)]
    parser.add_argument("--scenes", type=lambda text: text.split(","), default=names, help=f"of {','.join(names)}")
    parser.add_argument("--only", type=lambda text: text.split(","), help="contestants, in order")
    parser.add_argument("--before", type=Path, help=f"another checkout, whose bayplan takes part as {BEFORE}")
    parser.add_argument("--repeat", type=int, default=1, help="turns of each; every second one in reverse order")
    parser.add_argument("--share", type=float, default=1.0, help="of all nodes and pods, for a quick look")
    parser.add_argument("--flow-seconds", type=float, default=20.0, help="how long pods come at each rate")
    parser.add_argument("--limit-seconds", type=float, default=900.0, help="a phase that takes longer has failed")
    parser.add_argument("--json", type=Path, help="file for all figures")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.scenes if name not in names]:
        parser.error(f"--scenes: {', '.join(unknown)}: not one of {', '.join(names)}")
    everyone = [SAMPLED, BAYPLAN, *([BEFORE] if options.before is not None else [])]
    options.only = options.only or everyone
    if unknown := [name for name in options.only if name not in everyone]:
        parser.error(f"--only: {', '.join(unknown)}: not one of {', '.join(everyone)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
