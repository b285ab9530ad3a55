"""How many of a cluster's GPUs are allocated as demand comes up to what there is: `python -m e2e.bench.gpu_demand`.

Pods of the made-up trace openb come to its nodes and stay, one after the other, until they have asked for as many GPUs
as there are. Pods that find no node are left out, as those of Weng et al. (USENIX ATC 2023), whose protocol this is.
"""

import argparse
import sys
from pathlib import Path
from statistics import fmean

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import Pod, PodStatus
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import load_configuration
from bayplan.config.types import SchedulerConfiguration
from bayplan.replay.generators import GPU_MILLI, generate
from bayplan.replay.trace import requests_of
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator

_MARKS = (0.90, 0.95, 1.00)
_HOURS = 6.0


def allocated(configuration: SchedulerConfiguration, seed: int, scale: float) -> list[float]:
    """Return the per cent of GPUs that is allocated when so much of them was asked for, for each of the marks."""
    trace = generate("openb", seed=seed, hours=_HOURS, scale=scale)
    simulator = Simulator(configuration)
    pools = trace.header.pools
    simulator.add(ClusterObjects(nodes=[p.node(f"{p.name}-{index}") for p in pools for index in range(p.count)]))
    table = simulator.cache.nodes
    whole = int(table.offered(GPU_MILLI).sum())
    name_of = configuration.profiles[0].scheduler_name
    asked, found = 0, list[float]()
    for number, traced in enumerate(trace.pods):
        template = trace.template_of(traced)
        meta = ObjectMeta(name=f"pod-{number}", namespace="default", uid=f"pod-{number}")
        pod = Pod(metadata=meta, spec=template.spec(name_of, None), status=PodStatus(phase="Pending"))
        simulator.add(ClusterObjects(pods=[PodInfo(pod)]))
        while simulator.step() is not None:
            pass
        asked += requests_of(template).amounts.get(GPU_MILLI, 0)
        if asked >= _MARKS[len(found)] * whole:
            found.append(100 * int(table.taken(GPU_MILLI).sum()) / whole)
            if len(found) == len(_MARKS):
                return found
    raise ValueError("the trace is too short to ask for all GPUs")


def main() -> None:
    """Print a row for each configuration."""
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.gpu_demand", description=__doc__)
    parser.add_argument("--config", type=Path, action="append", required=True, help="a KubeSchedulerConfiguration")
    parser.add_argument("--seeds", type=int, default=3, help="means are over the seeds 1 to this (3)")
    parser.add_argument("--scale", type=float, default=0.25, help="how many times the trace's nodes (0.25)")
    flags = parser.parse_args()
    row = "{:<44}" + "{:>8}" * len(_MARKS) + "\n"
    sys.stdout.write(row.format("per cent of GPUs allocated at a demand of", *(f"{mark:.0%}" for mark in _MARKS)))
    for path in flags.config:
        configuration = load_configuration(path)
        each = [allocated(configuration, seed, flags.scale) for seed in range(1, flags.seeds + 1)]
        sys.stdout.write(row.format(path.name, *(f"{fmean(values):.1f}" for values in zip(*each, strict=True))))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
