"""`python -m e2e.bench`: the paired benchmark."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from e2e.arguments import positive
from e2e.bench import environment
from e2e.bench.cluster import BenchCluster
from e2e.bench.contestants import BAYPLAN, BEFORE, Contestant, contestants
from e2e.bench.hot_functions import hot_functions
from e2e.bench.measure import Plan, take_turn
from e2e.bench.report import document, table
from e2e.bench.results import Run
from e2e.bench.workload import BURST, QPS
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions

_WARM_UP_PODS = 200
_BUSY_LOAD_PER_CORE = 0.25


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark and prints its table; 1 if a contestant did not finish."""
    options = _options(arguments)
    everyone = contestants(options.profile, options.before)
    entrants = [everyone[name] for name in options.only]
    machine = environment.machine()
    facts: dict[str, object] = {
        "date": environment.date(),
        "commit": environment.commit(),
        "machine": asdict(machine),
        "versions": environment.versions(),
        "options": {
            "nodes": options.nodes,
            "pods": options.pods,
            "only": options.only,
            "repeat": options.repeat,
            "steady_rate": options.steady_rate,
            "steady_seconds": options.steady_seconds,
            "warm_up_pods": _WARM_UP_PODS,
            "qps": QPS,
            "burst": BURST,
            "profile": options.profile is not None,
        },
    }
    if machine.load_before > _BUSY_LOAD_PER_CORE * machine.cores:
        _say(f"the machine is busy (load {machine.load_before}): the figures will be worse than they could be")
    runs = _run_all(options, entrants)
    print(f"\n{facts['date']}  {facts['commit']}  {json.dumps(facts['machine'])}\n{json.dumps(facts['versions'])}\n")
    print(table(runs, entrants, options.pods))
    if options.json is not None:
        options.json.write_text(json.dumps(document(runs, **facts), indent=2) + "\n")
    if options.profile is not None:
        print(f"\n{hot_functions(options.profile)}")
    return 1 if any(run.problem for run in runs) else 0


def _run_all(options: argparse.Namespace, entrants: list[Contestant]) -> list[Run]:
    plan = Plan(options.pods, options.steady_rate, options.steady_seconds, options.limit_seconds)
    warm_up = Plan(min(_WARM_UP_PODS, options.pods), 0.0, 0.0, options.limit_seconds)
    runs: list[Run] = []
    with ControlPlane.start(ControlPlaneOptions(bench=True)) as plane:
        kubeconfig = install_bayplan(plane)
        cluster = BenchCluster(plane)
        for nodes in options.nodes:
            _say(f"{nodes} nodes: creating")
            cluster.set_nodes(nodes)
            for contestant in entrants:
                _say(f"{nodes} nodes: {contestant.name} warms up")
                take_turn(cluster, contestant, warm_up, nodes=nodes, repeat=-1, bayplan_kubeconfig=kubeconfig)
            for repeat in range(options.repeat):
                # Who comes later meets an API server that has done more: each is first and last in turn.
                for contestant in entrants if repeat % 2 == 0 else entrants[::-1]:
                    run = take_turn(
                        cluster, contestant, plan, nodes=nodes, repeat=repeat, bayplan_kubeconfig=kubeconfig
                    )
                    runs.append(run)
                    _say(f"{nodes} nodes, repeat {repeat}: {contestant.name} {_in_short(run)}")
    return runs


def _in_short(run: Run) -> str:
    if run.drain is None:
        return f"did not finish: {run.problem}"
    threads = sorted(run.drain.threads.items(), key=lambda item: -item[1])[:4]
    shares = ", ".join(f"{name} {seconds / run.drain.pods * 1000:.2f}" for name, seconds in threads)
    rate, cpu = run.drain.pods_per_second, run.drain.cpu_ms_per_pod
    return f"{rate:.0f} pods/s, {cpu:.2f} ms CPU a pod (by thread: {shares}) {run.problem}"


def _say(message: str) -> None:
    print(f"bench: {message}", file=sys.stderr, flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.bench", description=__doc__)
    names = list(contestants())
    parser.add_argument("--nodes", type=_numbers, default=[1000, 5000], help="numbers of nodes, e.g. 1000,5000")
    parser.add_argument("--pods", type=positive, default=5000, help="pods that wait when a scheduler starts")
    parser.add_argument("--only", type=lambda text: text.split(","), help=f"contestants, in order: {','.join(names)}")
    parser.add_argument("--before", type=Path, help=f"another checkout, whose bayplan takes part as {BEFORE}")
    parser.add_argument("--repeat", type=positive, default=1, help="runs of each; every second one in reverse order")
    parser.add_argument("--steady-rate", type=float, default=150.0, help="pods a second afterwards; 0 for none")
    parser.add_argument("--steady-seconds", type=float, default=10.0, help="for how long")
    parser.add_argument("--limit-seconds", type=float, default=900.0, help="a phase that takes longer has failed")
    parser.add_argument("--json", type=Path, help="file for all figures")
    parser.add_argument("--profile", type=Path, help="only bayplan, profiled by thread; directory for the profiles")
    options = parser.parse_args(arguments)
    if options.before is not None:
        names.append(BEFORE)
    if options.only is None:
        options.only = names if options.profile is None else [BAYPLAN]
    if unknown := [name for name in options.only if name not in names]:
        parser.error(f"--only: {', '.join(unknown)}: not one of {', '.join(names)}")
    if options.profile is not None:
        options.profile = options.profile.resolve()
        options.profile.mkdir(parents=True, exist_ok=True)
        options.steady_rate = 0.0
    return options


def _numbers(text: str) -> list[int]:
    return [positive(part) for part in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
