"""One contestant's turn with one family: put the objects there, start it, and time the binds of the measured pods."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from e2e.bench.cluster import delete_until_gone
from e2e.bench.contestants import Contestant
from e2e.bench.families.staging import create_namespaces, watched_among
from e2e.bench.families.workloads import Workload
from e2e.bench.meter import CpuMeter
from e2e.bench.watched import Watched
from e2e.controlplane.client import Objects
from e2e.controlplane.devices import let_go_of_claims
from e2e.controlplane.plane import ControlPlane

_SAMPLE_SECONDS = 0.02
_REST_SECONDS = 2.0
_CLUSTER_SCOPED = ("persistentvolumes", "csinodes", "priorityclasses", "deviceclasses", "resourceslices")


@dataclass(frozen=True, slots=True)
class Result:
    """What a turn gave: seconds from the first bind to the last, and the scheduler's CPU from its start.

    A scheduler may do much before its first bind, such as all preemptions: `seconds_from_start` counts that too.

    `bound` below `pods` means the limit passed; the rate then is of those bound. `slowest_tenth` is the rate of the
    last tenth of the binds, which tells a tail. `evicted` counts the pods that were there before and are not any more.
    """

    contestant: str
    pods: int
    bound: int
    seconds: float
    cpu_ms_per_pod: float
    peak_rss: int
    slowest_tenth: float
    seconds_from_start: float
    evicted: int = 0

    @property
    def pods_per_second(self) -> float:
        """Pods bound a second."""
        return self.bound / self.seconds if self.seconds > 0 else 0.0


def take_turn(
    plane: ControlPlane,
    contestant: Contestant,
    workload: Workload,
    kubeconfig: Path,
    *,
    limit: float,
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
) -> Result:
    """Run one contestant on the workload's cluster, whose nodes exist, and clear everything but the nodes.

    `before` is called once the objects are there, `after` when the contestant has ended.
    """
    client = plane.client
    create_namespaces(client, workload)
    made = dict.fromkeys(resource for resource, _ in workload.objects)
    try:
        for resource in made:
            client.create_all(resource, [each for kind, each in workload.objects if kind == resource])
        for pods in (workload.init, workload.pending, workload.measured):
            client.create_all("pods", pods)
        before()
        time.sleep(_REST_SECONDS)
        with watched_among(workload, plane, contestant, kubeconfig) as running:
            result = _measure(running, contestant.name, len(workload.measured), limit)
        after()
        return replace(result, evicted=len(workload.init) - _remaining(plane, workload.init))
    finally:
        _clear(plane, workload, [resource for resource in made if resource in _CLUSTER_SCOPED])


def _remaining(plane: ControlPlane, pods: Objects) -> int:
    namespaces = {pod["metadata"]["namespace"] for pod in pods}
    there = {each["metadata"]["name"] for name in namespaces for each in plane.client.list("pods", name)}
    return sum(1 for pod in pods if pod["metadata"]["name"] in there)


def _measure(running: Watched, contestant: str, pods: int, limit: float) -> Result:
    meter = CpuMeter(running.process)
    bound = _wait(running, meter, pods, limit)
    moments = sorted(running.watch.bound_at.values())
    tail = moments[len(moments) * 9 // 10 :]
    return Result(
        contestant,
        pods,
        bound,
        moments[-1] - moments[0] if moments else 0.0,
        meter.at(moments[-1]) / bound * 1000 if moments else 0.0,
        running.process.peak_rss_bytes(),
        (len(tail) - 1) / (tail[-1] - tail[0]) if len(tail) > 1 and tail[-1] > tail[0] else 0.0,
        moments[-1] - running.started if moments else 0.0,
    )


def _wait(running: Watched, meter: CpuMeter, pods: int, limit: float) -> int:
    process, deadline = running.process, time.monotonic() + limit
    while (bound := running.watch.poll()) < pods and time.monotonic() < deadline:
        process.check_alive()
        meter.sample()
        time.sleep(_SAMPLE_SECONDS)
    meter.sample()
    return bound


def _clear(plane: ControlPlane, workload: Workload, cluster_scoped: list[str]) -> None:
    client = plane.client
    if any(resource == "resourceclaims" for resource, _ in workload.objects):
        let_go_of_claims(client, workload.namespaces)
    kept = {"pods", "events"} | {resource for resource, _ in workload.objects if resource not in cluster_scoped}
    jobs: list[tuple[str, str | None]] = [(resource, name) for name in workload.namespaces for resource in kept]
    jobs += [(resource, None) for resource in cluster_scoped if resource != "priorityclasses"]
    delete_until_gone(client, jobs)
    for resource, each in workload.objects:
        if resource == "priorityclasses":
            client.delete(resource, each["metadata"]["name"])
