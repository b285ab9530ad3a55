"""`python -m e2e.autoscaler`: node-hours under Karpenter for each scheduler. See docs/autoscaler.md."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import msgspec

from bayplan.replay.trace import trace_lines
from e2e.arguments import positive
from e2e.autoscaler.karpenter import WHEN_EMPTY, WHEN_UNDERUTILIZED, build_karpenter
from e2e.autoscaler.ledger import Live
from e2e.autoscaler.report import picture, pool_settings, replayed, table
from e2e.autoscaler.run import BAYPLAN, KUBE_SCHEDULER, Run, run_live
from e2e.autoscaler.workload import STEADY, WAVE, trace_for
from e2e.bench import environment


class _Done(msgspec.Struct, frozen=True):
    """A line of the file of results."""

    run: Run
    live: Live
    date: str
    commit: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what is not in the file of results yet, and prints the table."""
    options = _options(arguments)
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    traces = {seed: trace_for(seed, options.minutes, options.load) for seed in range(1, options.seeds + 1)}
    for seed, trace in traces.items():
        (out / f"trace-{options.load}-{seed}.jsonl").write_bytes(b"".join(trace_lines(trace)))
    # Those that are compared run at the same time: what else the machine does is the same for them.
    wanted = [
        Run(contestant, consolidation, seed, options.minutes, load=options.load)
        for consolidation, seed, contestant in product(
            options.consolidation, range(1, options.seeds + 1), options.contestants
        )
    ]
    results = out / "results.jsonl"
    known = {each.run: each.live for each in _read(results)}
    missing = [run for run in wanted if run not in known]
    build_karpenter()
    for run, live in _lives(missing, options.at_once):
        known[run] = live
        with results.open("ab") as file:
            file.write(msgspec.json.encode(_Done(run, live, environment.date(), environment.commit())) + b"\n")
        told = (
            f"{live.outcome.paid_over_asked:.3f}, {live.outcome.evicted} evicted, creations p99 {live.create_p99:.3f} s"
        )
        _say(f"{run.contestant}, {run.consolidation}, seed {run.seed}: {told}")
    found = {run: known[run] for run in wanted}
    settings = pool_settings(found)
    print(f"\n{environment.date()}  {environment.commit()}  {environment.machine()}\n")
    print(table(found, replayed(found, settings)))
    print(f"replayed with --scale-down-after {settings.scale_down_after:g}s --provision {settings.provision:g}s")
    for consolidation in options.consolidation:
        (out / f"{consolidation}-{options.load}.svg").write_text(picture(found, consolidation))
    return 0


def _read(path: Path) -> list[_Done]:
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=_Done) for line in path.read_bytes().splitlines()]


def _lives(runs: Sequence[Run], at_once: int) -> Iterator[tuple[Run, Live]]:
    """Yield each run as it is done, each in a process of its own."""
    with ProcessPoolExecutor(at_once, get_context("spawn"), max_tasks_per_child=1) as executor:
        started = {executor.submit(run_live, run): run for run in runs}
        for future in as_completed(started):
            try:
                yield started[future], future.result()
            except (RuntimeError, TimeoutError, OSError) as error:
                _say(f"{started[future]} failed: {error}")
                raise


def _say(message: str) -> None:
    print(f"autoscaler: {message}", file=sys.stderr, flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.autoscaler", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="of each run")
    parser.add_argument("--seeds", type=positive, default=3, help="traces, from seed 1 on")
    parser.add_argument("--load", choices=[STEADY, WAVE], default=STEADY, help="whether as many pods come all along")
    parser.add_argument("--at-once", type=positive, default=2, help="runs beside each other")
    parser.add_argument(
        "--consolidation",
        type=lambda text: text.split(","),
        default=[WHEN_EMPTY, WHEN_UNDERUTILIZED],
        help="Karpenter's consolidationPolicy; several are measured one after the other",
    )
    parser.add_argument(
        "--contestants",
        type=lambda text: text.split(","),
        default=[KUBE_SCHEDULER, BAYPLAN],
        help=f"{KUBE_SCHEDULER}, {BAYPLAN}, or files of configurations for bayplan",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("build/autoscaler"), help="folder of traces, results, pictures"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
