"""What a scheduler leaves in memory: `python -m e2e.bench.memory --scene nominations|resources|terms`.

Decides in this process, without an API server, and prints the resident memory as it goes on.

* `nominations`: preemption episodes on a full cluster; flat after the first hundred. In each a pod of high priority
  finds no room, is nominated where its victims are, other pods are decided meanwhile, the victims go, the pod gets its
  room, and later gives way to pods like the victims.
* `resources`: a pod that names thousands of made-up resources comes and goes; memory comes back to within 5 MiB, and a
  scrape of the metrics takes as long as before.
* `terms`: pods with thousands of preferred affinity terms that no other has come, are decided and go; flat after the
  tenth.
"""

import argparse
import gc
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prometheus_client import generate_latest

from bayplan.api.meta_objects import LabelSelector, ObjectMeta, Quantity
from bayplan.api.objects import (
    Affinity,
    Container,
    Node,
    NodeStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    WeightedPodAffinityTerm,
)
from bayplan.cache.cache import Cache
from bayplan.cache.packing import Packing, allocation_summary
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.framework.nominator import Nominator
from bayplan.plugins.registry import build_frameworks
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import FitError, Placement
from bayplan.server.metrics import AtScrape, SchedulerMetrics
from bayplan.server.state import PackingCollector, state_metrics

_CREATED = "2026-01-01T00:00:00Z"
_PODS_PER_NODE = 30
_EVERY = 100
_MADE_UP_RESOURCES = 10_000
_TERMS = 5_000
_SCRAPES = 50


class Cluster:
    """Nodes that are full of pods of priority 0, when there are 30 for each, and a scheduler."""

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

    def pod(
        self,
        *,
        cpu: str,
        requests: dict[str, Quantity] | None = None,
        priority: int = 0,
        labels: dict[str, str] | None = None,
        **spec: Any,  # noqa: ANN401
    ) -> PodInfo:
        """A new pod; `requests` are those besides cpu and memory, `spec` is the rest of its spec."""
        name = f"p{next(self._serial)}"
        asked: dict[str, Quantity] = {"cpu": cpu, "memory": "1Gi", **(requests or {})}
        container = Container(name="c", resources=ResourceRequirements(requests=asked))
        meta = ObjectMeta(name=name, namespace="default", uid=name, creation_timestamp=_CREATED, labels=labels)
        return PodInfo(
            Pod(metadata=meta, spec=PodSpec(containers=[container], priority=priority, **spec), status=PodStatus())
        )


class PreemptionEpisodes(Cluster):
    """A cluster where pods of high priority come, make room for themselves and go."""

    def run(self) -> None:
        """Go through one episode; the cluster is as full as before."""
        preemptor = self.pod(cpu="2", priority=1000 + next(self._serial) % 7)
        result = self.cycle.schedule(preemptor, self.framework).outcome
        if not isinstance(result, FitError) or not result.post_filter.nominated_node_name:
            raise RuntimeError(f"expected a preemption, not {result}")
        self.nominator.add(preemptor, result.post_filter.nominated_node_name)
        for priority in (0, 10):
            self.cycle.schedule(self.pod(cpu="3", priority=priority), self.framework)
        for victim in result.post_filter.victims:
            self.cache.remove_pod(victim.uid)
        placement = self.cycle.schedule(preemptor, self.framework).outcome
        if not isinstance(placement, Placement):
            raise TypeError(f"expected a placement, not {placement}")
        self.nominator.delete(preemptor.uid)
        self.cache.assume_pod(preemptor, placement.node_name)
        self.cycle.schedule(self.pod(cpu="3"), self.framework)
        self.cache.forget_pod(preemptor.uid)
        for _ in result.post_filter.victims:
            self.cache.assume_pod(self.pod(cpu="1"), placement.node_name)


def resident_bytes() -> int:
    """What this process has in memory now."""
    gc.collect()
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


def nominations(nodes: int, pods: int, episodes: int) -> Iterator[str]:
    """How many episodes ran, every hundred episodes."""
    scene = PreemptionEpisodes(nodes, pods)
    for done in range(1, episodes + 1):
        scene.run()
        if done % _EVERY == 0:
            yield f"{done} episodes"


def resources(nodes: int, pods: int, times: int) -> Iterator[str]:
    """How long a scrape takes before and after pods that name made-up resources were bound by somebody and went."""
    scene = Cluster(nodes, pods)
    registry = SchedulerMetrics(profiles=[scene.framework.profile_name]).registry
    columns = scene.cache.nodes
    nominator = SimpleNamespace(count=int, oldest_age=float)
    queue: Any = SimpleNamespace(pending=dict, in_flight_events=dict, nominator=nominator)
    idle: Any = SimpleNamespace(tasks=dict, dispatcher=SimpleNamespace(waiting_calls=dict))
    registry.register(AtScrape(lambda: state_metrics(scene.cache, queue, idle, {})))
    registry.register(
        PackingCollector(lambda: allocation_summary(columns), lambda resources: Packing(columns, resources))
    )

    def scrape() -> str:
        seconds: list[float] = []
        for _ in range(_SCRAPES):
            started = time.perf_counter()
            generate_latest(registry)
            seconds.append(time.perf_counter() - started)
        return f"a scrape takes {1e3 * min(seconds):.2f} ms"

    def decide(requests: dict[str, Quantity]) -> None:
        hostile = scene.pod(cpu="1m", requests=requests)
        if not isinstance(scene.cycle.schedule(hostile, scene.framework).outcome, FitError):
            raise TypeError("expected that no node has made-up resources")
        scene.cache.assume_pod(hostile, "n0")
        scene.cycle.schedule(scene.pod(cpu="1m"), scene.framework)
        scene.cache.remove_pod(hostile.uid)
        scene.cycle.schedule(scene.pod(cpu="1m"), scene.framework)

    decide({"made-up.io/one": "1"})
    yield f"before, {scrape()}"
    for serial in range(times):
        decide({f"made-up.io/{serial}-{number}": "1" for number in range(_MADE_UP_RESOURCES)})
        yield f"after {serial + 1}, {scrape()}"


def terms(nodes: int, pods: int, times: int) -> Iterator[str]:
    """How many pods with preferred terms of their own came, were decided and went."""
    scene = Cluster(nodes, pods)
    for serial in range(times):
        weighted = [
            WeightedPodAffinityTerm(
                weight=1,
                pod_affinity_term=PodAffinityTerm(
                    topology_key="kubernetes.io/hostname",
                    label_selector=LabelSelector(match_labels={"app": f"{serial}-{number}"}),
                ),
            )
            for number in range(_TERMS)
        ]
        near = PodAffinity(preferred_during_scheduling_ignored_during_execution=weighted)
        pod = scene.pod(cpu="1m", affinity=Affinity(pod_affinity=near))
        del weighted, near
        placement = scene.cycle.schedule(pod, scene.framework).outcome
        if not isinstance(placement, Placement):
            raise TypeError(f"expected a placement, not {placement}")
        scene.cache.assume_pod(pod, placement.node_name)
        scene.cycle.schedule(scene.pod(cpu="1m"), scene.framework)
        scene.cache.remove_pod(pod.uid)
        del pod
        yield f"{serial + 1} pods"


_SCENES = {
    "nominations": (nominations, 1000, 30_000, 2000),
    "resources": (resources, 5000, 5000, 3),
    "terms": (terms, 1000, 1000, 100),
}


def main() -> None:
    """Print the resident memory as a scene goes on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", choices=_SCENES, default="nominations")
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--pods", type=int)
    parser.add_argument("--times", type=int, help="episodes of nominations; pods that come and go")
    options = parser.parse_args()
    scene, nodes, pods, times = _SCENES[options.scene]
    for text in scene(options.nodes or nodes, options.pods or pods, options.times or times):
        sys.stdout.write(f"{resident_bytes() / 2**20:>8.1f} MiB  {text}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
