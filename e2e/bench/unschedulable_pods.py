"""`python -m e2e.bench.unschedulable_pods`: what many pods that can never be scheduled cost those that can.

bayplan is started twice, without and with such pods waiting. When it has come to rest its CPU share is taken, then pods
that fit are created at full speed, and the rates of their binds are compared.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from e2e.bench.contestants import BAYPLAN, contestants
from e2e.bench.families.scheduler_perf import FAMILIES
from e2e.bench.families.staging import create_namespaces, watched_among
from e2e.bench.families.workloads import Size, Workload
from e2e.bench.watched import Watched
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import Process
from e2e.controlplane.waiting import wait_until

_FAMILY = "Unschedulable20kInit"
_REST_SECONDS = 10.0
_AT_REST = 0.1
_SAMPLE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Measured:
    """`idle` is the share of one CPU at rest; `created` and `bound` are pods a second."""

    settled_after: float
    idle: float
    created: float
    bound: float
    cpu_ms_per_pod: float
    peak_rss: int


def measure(plane: ControlPlane, kubeconfig: Path, workload: Workload) -> Measured:
    """One start of bayplan among the workload's pods that no node can hold; its pods stay, on nodes or not."""
    create_namespaces(plane.client, workload)
    plane.client.create_all("pods", workload.pending)
    with watched_among(workload, plane, contestants()[BAYPLAN], kubeconfig) as running:
        return _measure(plane, running, workload)


def _measure(plane: ControlPlane, running: Watched, workload: Workload) -> Measured:
    process, watch, pods = running.process, running.watch, len(workload.measured)
    _wait_for_rest(process)
    settled_after = time.monotonic() - running.started
    idle = _cpu_share(process, _REST_SECONDS)
    before, began = process.cpu_seconds(), time.monotonic()
    plane.client.create_all("pods", workload.measured)
    created = time.monotonic() - began
    while watch.poll() < pods and time.monotonic() - began < _REST_SECONDS + 10 * created:
        time.sleep(_SAMPLE_SECONDS)
    moments = sorted(watch.bound_at.values())
    if len(moments) < pods:
        raise RuntimeError(f"{pods - len(moments)} pods were not bound")
    return Measured(
        settled_after,
        idle,
        pods / created,
        pods / (moments[-1] - moments[0]),
        (process.cpu_seconds() - before) / pods * 1000,
        process.peak_rss_bytes(),
    )


def _cpu_share(process: Process, seconds: float) -> float:
    before = process.cpu_seconds()
    time.sleep(seconds)
    return (process.cpu_seconds() - before) / seconds


def _wait_for_rest(process: Process) -> None:
    time.sleep(_REST_SECONDS / 2)
    wait_until(lambda: _cpu_share(process, 3.0) < _AT_REST or None, "bayplan at rest", timeout_seconds=300.0)


def main() -> int:
    """Measure and print; 1 if the pods that fit are bound at less than 80 % of the rate they have alone."""
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.unschedulable_pods", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--unschedulable", type=int, default=19_000, help="pods that no node can hold")
    parser.add_argument("--pods", type=int, default=1000, help="pods that fit")
    options = parser.parse_args()
    rates = []
    with ControlPlane.start(ControlPlaneOptions(bench=True)) as plane:
        kubeconfig = install_bayplan(plane)
        (family,) = (each for each in FAMILIES if each.name == _FAMILY)
        plane.client.create_all("nodes", family.build(Size(options.nodes, 0, 1), "nodes").nodes)
        for scope, unschedulable in (("warm-up", 0), ("alone", 0), ("unschedulable", options.unschedulable)):
            found = measure(plane, kubeconfig, family.build(Size(options.nodes, unschedulable, options.pods), scope))
            rates.append(found.bound)
            sys.stdout.write(
                f"{scope}: {unschedulable} unschedulable pods, at rest after {found.settled_after:.0f} s with "
                f"{found.idle:.1%} of a CPU; "
                f"{found.bound:.0f} pods/s bound of {found.created:.0f} created, {found.cpu_ms_per_pod:.2f} ms CPU a "
                f"pod, peak {found.peak_rss / 1e6:.0f} MB\n"
            )
            sys.stdout.flush()
    share = rates[-1] / rates[-2]
    sys.stdout.write(f"{share:.0%} of the rate without unschedulable pods\n")
    return int(share < 0.8)


if __name__ == "__main__":
    sys.exit(main())
