"""How fast `bayplan simulate` decides: `python -m e2e.bench.simulate`.

Schedules streams of pods on made-up clusters and prints a table. Only the decisions are timed, not the making of the
clusters. Rates are decisions in a second of the process's own CPU time, which other work on the machine disturbs less
than the clock on the wall; the median is over slices of 100 decisions, and shows less of it still.
"""

import argparse
import gc
import statistics
import sys
import time
from dataclasses import dataclass

from bayplan.config.load import default_configuration
from bayplan.simulate.simulator import Simulator
from e2e.bench.simulate_workloads import SHAPES, WORKLOADS, Workload, objects_of

_SLICE = 100
_ROW = "{:40}{:>6}{:>13}{:>13}{:>12}{:>11}{:>12}{:>13}\n"
_HEADER = ("workload", "nodes", "decisions/s", "CPU us each", "median us", "scheduled", "nodes used", "lower bound")


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run took and gave; times are CPU microseconds a decision."""

    decisions: int
    mean: float
    median: float
    scheduled: int
    nodes_in_use: int
    lower_bound: int

    @property
    def rate(self) -> float:
        """Decisions in a second of CPU time."""
        return 1e6 / self.mean


def measure(workload: Workload, pods: int, seed: int) -> Measured:
    """Schedule all pods of a workload."""
    simulator = Simulator(default_configuration())
    simulator.add(objects_of(workload, pods, seed))
    gc.collect()
    total, decisions, slices = 0.0, 0, list[float]()
    while True:
        started, count = time.process_time(), 0
        while count < _SLICE and simulator.step() is not None:
            count += 1
        seconds = time.process_time() - started
        total += seconds
        decisions += count
        if count:
            slices.append(seconds / count)
        if count < _SLICE:
            break
    summary = simulator.report().summary
    return Measured(
        decisions,
        total / decisions * 1e6,
        statistics.median(slices) * 1e6,
        summary.scheduled,
        summary.nodes_in_use,
        summary.lower_bound_nodes,
    )


def main() -> None:
    """Measure every workload and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.stdout.write(f"{options.pods} pods of {SHAPES} shapes, the default plugins, MostAllocated, all nodes scored\n")
    sys.stdout.write(_ROW.format(*_HEADER))
    for workload in WORKLOADS:
        m = measure(workload, options.pods, options.seed)
        figures = (f"{m.rate:,.0f}", f"{m.mean:,.0f}", f"{m.median:,.0f}", m.scheduled, m.nodes_in_use, m.lower_bound)
        sys.stdout.write(_ROW.format(workload.name, workload.nodes, *figures))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
