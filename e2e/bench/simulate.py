"""How fast `bayplan simulate` decides: `python -m e2e.bench.simulate`.

Schedules one stream of pods of 20 shapes on made-up clusters of growing size and prints a table. Times are of the
scheduling phase alone, as in the report's summary; CPU time tells what a busy machine would hide.
"""

import argparse
import gc
import sys
import time
from dataclasses import dataclass

from bayplan.config.load import default_configuration
from bayplan.config.types import DEFAULT_SCHEDULER_NAME
from bayplan.simulate.cluster import ClusterObjects
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.synthetic import pod_shapes, synthetic_nodes, synthetic_pods

NODE_COUNTS = (500, 1000, 2000, 5000)
SHAPES = 20


@dataclass(frozen=True, slots=True)
class Measured:
    nodes: int
    decisions_per_second: float
    cpu_micros_per_decision: float
    scheduled: int
    nodes_in_use: int
    lower_bound: int


def measure(nodes: int, pods: int, seed: int) -> Measured:
    """One run on a cluster of `nodes`."""
    simulator = Simulator(default_configuration())
    stream = synthetic_pods(pods, pod_shapes(SHAPES, seed), seed=seed, scheduler_name=DEFAULT_SCHEDULER_NAME)
    simulator.add(ClusterObjects(nodes=synthetic_nodes(nodes), pods=stream))
    gc.collect()
    cpu = time.process_time()
    while simulator.step() is not None:
        pass
    cpu = time.process_time() - cpu
    summary = simulator.report().summary
    return Measured(
        nodes,
        summary.decisions_per_second,
        cpu / pods * 1e6,
        summary.scheduled,
        summary.nodes_in_use,
        summary.lower_bound_nodes,
    )


def main() -> None:
    """Measure every size and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.stdout.write(f"{options.pods} pods of {SHAPES} shapes, MostAllocated, all nodes scored\n")
    sys.stdout.write(" nodes  decisions/s  CPU us/decision  scheduled  nodes used  lower bound\n")
    for nodes in NODE_COUNTS:
        m = measure(nodes, options.pods, options.seed)
        sys.stdout.write(
            f"{m.nodes:6}  {m.decisions_per_second:11,.0f}  {m.cpu_micros_per_decision:15,.0f}  {m.scheduled:9}"
            f"  {m.nodes_in_use:10}  {m.lower_bound:11}\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
