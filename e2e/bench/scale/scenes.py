"""One contestant's turn in one scene; the nodes, and the pods that are on them, are there already."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.bench.cluster import BenchCluster
from e2e.bench.contestants import Contestant
from e2e.bench.measure import REST_SECONDS, Turn, begun_turn, drain, flow
from e2e.bench.results import Steady
from e2e.bench.scale.figures import COLD, FLOWS, LARGE, Outcome, Start
from e2e.controlplane.kube_scheduler_process import KubeSchedulerProcess
from e2e.controlplane.waiting import wait_until

BURST = 0.0
"""The rate of pods that are created as fast as the API server takes them."""


@dataclass(frozen=True, slots=True)
class Scene:
    """How many nodes, pods that are on them from the start, pods that wait then, and what comes later.

    `flows` are pods and their rate, one after the other.
    """

    name: str
    nodes: int
    placed: int
    waiting: int
    flows: Sequence[tuple[int, float]] = ()


def scenes(share: float, flow_seconds: float) -> list[Scene]:
    """Returns all scenes, with a share of their nodes and pods; flows keep their rates."""

    def part(number: int) -> int:
        return max(1, round(number * share))

    flows = [*((round(rate * flow_seconds), rate) for rate in (150.0, 300.0)), (part(5_000), BURST)]
    return [
        Scene(FLOWS, part(5_000), 0, part(500), flows),
        Scene(COLD, part(5_000), 0, part(20_000)),
        Scene(LARGE, part(15_000), part(50_000), part(5_000)),
    ]


def take_turn(
    cluster: BenchCluster, scene: Scene, contestant: Contestant, *, repeat: int, bayplan_kubeconfig: Path, limit: float
) -> Outcome:
    """Runs one contestant, and leaves the cluster as it was; a contestant that fails is an outcome, not an error."""
    start: Start | None = None
    flows: list[Steady] = []
    problem = ""
    try:
        with begun_turn(
            cluster, contestant, waiting=scene.waiting, bayplan_kubeconfig=bayplan_kubeconfig, limit_seconds=limit
        ) as turn:
            start = _start(turn, scene.waiting)
            before = scene.waiting
            for pods, rate in scene.flows:
                time.sleep(REST_SECONDS)
                flows.append(flow(turn, before=before, pods=pods, rate=rate))
                before += pods
    except (RuntimeError, TimeoutError) as error:
        problem = str(error)
    return Outcome(scene.name, contestant.name, repeat, scene.nodes, scene.placed, start, flows, problem)


def _start(turn: Turn, waiting: int) -> Start:
    process = turn.process

    def is_ready() -> bool:
        process.check_alive()
        turn.meter.sample()
        # kube-scheduler is healthy before its caches are filled.
        return process.is_synced() if isinstance(process, KubeSchedulerProcess) else process.is_ready()

    wait_until(is_ready, f"{process.name} becoming ready", timeout_seconds=turn.limit_seconds, detail=process.log_tail)
    ready, resident = time.monotonic() - turn.started, process.rss_bytes()
    return Start(ready, resident, drain(turn, waiting))
