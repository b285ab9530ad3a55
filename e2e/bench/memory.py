"""Whether preemption leaves memory behind: `python -m e2e.bench.memory`.

Decides preemption episodes in this process on a full cluster, without an API server, and prints the resident memory as
they go on: it must be flat after the first hundred. In each episode a pod of high priority finds no room, is nominated
where its victims are, other pods are decided meanwhile, the victims go, the pod gets its room, and later gives way to
pods like the victims.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bayplan.api.meta_objects import ObjectMeta, Quantity
from bayplan.api.objects import (
    Container,
    Node,
    NodeStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.nominator import Nominator
from bayplan.scheduler.cycle import FitError, Placement, SchedulingCycle

_CREATED = "2026-01-01T00:00:00Z"
_PODS_PER_NODE = 30
_EVERY = 100


class PreemptionEpisodes:
    """A cluster whose nodes are full of pods of priority 0."""

    def __init__(self, nodes: int, pods: int) -> None:
        self.cache = Cache()
        self.nominator = Nominator()
        self._serial = itertools.count()
        frameworks = build_frameworks(
            default_configuration(), self.cache.nodes, self.cache.listers, self.nominator, time.time
        )
        (self.framework,) = frameworks.values()
        self.cycle = SchedulingCycle(self.cache.nodes, self.nominator)
        amounts: dict[str, Quantity] = {"cpu": str(_PODS_PER_NODE), "memory": "256Gi", "pods": "110"}
        for number in range(nodes):
            name = f"n{number}"
            labels = {"kubernetes.io/hostname": name}
            meta = ObjectMeta(name=name, uid=name, creation_timestamp=_CREATED, labels=labels)
            self.cache.set_node(Node(metadata=meta, status=NodeStatus(allocatable=amounts, capacity=amounts)))
        for number in range(pods):
            self.cache.assume_pod(self.pod(cpu="1"), f"n{number % nodes}")

    def run(self) -> None:
        """Go through one episode; the cluster is as full as before."""
        preemptor = self.pod(cpu="2", priority=1000 + next(self._serial) % 7)
        result = self.cycle.schedule(preemptor, self.framework)
        if not isinstance(result, FitError) or not result.nominated_node_name:
            raise RuntimeError(f"expected a preemption, not {result}")
        self.nominator.add(preemptor, result.nominated_node_name)
        for priority in (0, 10):
            self.cycle.schedule(self.pod(cpu="3", priority=priority), self.framework)
        for victim in result.victims:
            self.cache.remove_pod(victim.uid)
        placement = self.cycle.schedule(preemptor, self.framework)
        if not isinstance(placement, Placement):
            raise TypeError(f"expected a placement, not {placement}")
        self.nominator.delete(preemptor.uid)
        self.cache.assume_pod(preemptor, placement.node_name)
        self.cycle.schedule(self.pod(cpu="3"), self.framework)
        self.cache.forget_pod(preemptor.uid)
        for _ in result.victims:
            self.cache.assume_pod(self.pod(cpu="1"), placement.node_name)

    def pod(self, *, cpu: str, priority: int = 0, labels: dict[str, str] | None = None, **spec: Any) -> PodInfo:  # noqa: ANN401
        """A new pod; `spec` is the rest of its spec."""
        name = f"p{next(self._serial)}"
        container = Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu, "memory": "1Gi"}))
        meta = ObjectMeta(name=name, namespace="default", uid=name, creation_timestamp=_CREATED, labels=labels)
        return PodInfo(
            Pod(metadata=meta, spec=PodSpec(containers=[container], priority=priority, **spec), status=PodStatus())
        )


def resident_bytes() -> int:
    """What this process has in memory now."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


def figures(episodes: int, nodes: int, pods: int) -> Iterator[tuple[int, int]]:
    """How many episodes ran and the resident bytes then, every hundred episodes."""
    scene = PreemptionEpisodes(nodes, pods)
    for done in range(1, episodes + 1):
        scene.run()
        if done % _EVERY == 0:
            yield done, resident_bytes()


def main() -> None:
    """Print the resident memory every hundred episodes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=30_000)
    options = parser.parse_args()
    for done, resident in figures(options.episodes, options.nodes, options.pods):
        sys.stdout.write(f"{done:>6} episodes {resident / 2**20:>8.1f} MiB\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
