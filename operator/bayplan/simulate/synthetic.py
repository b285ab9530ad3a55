"""Made-up clusters and pod streams, and what happens to that of `bayplan demo`: the same for the same seed.

Pod shapes are in the proportions of a published GPU cluster trace (Alibaba's gpu-v2023): about half the pods ask for a
GPU.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bayplan.api.meta_objects import ObjectMeta, Quantity
from bayplan.api.objects import Container, Node, NodeStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, MEMORY, node_allocatable
from bayplan.config.types import DEFAULT_SCHEDULER_NAME

GPU: Final = "nvidia.com/gpu"
PODS_PER_NODE: Final = 110

_CREATED: Final = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class NodePool:
    """Nodes of one kind; `share` is relative to the other pools'."""

    name: str
    share: int
    cores: int
    gibibytes: int
    gpus: int


@dataclass(frozen=True, slots=True)
class PodShape:
    """Pods that ask for the same; `share` is relative to the other shapes'."""

    share: int
    milli_cpu: int
    mebibytes: int
    gpus: int
    priority: int


POOLS: Final = (NodePool("gpu", 1, 96, 384, 8), NodePool("cpu", 2, 32, 128, 0))
"""For clusters of a few dozen nodes, where one kind of each is enough."""

_GPU_SHAPES: Final = ((3152, 5600), (8000, 30517), (11300, 49152), (11400, 48128), (12000, 61440))
_CPU_SHAPES: Final = ((500, 1024), (1000, 2048), (2000, 8192), (4000, 8192), (8000, 30720), (12500, 57344))
_PRIORITIES: Final = (0, 0, 0, 100, 1000)


def synthetic_nodes(count: int, pools: Sequence[NodePool]) -> list[Node]:
    """`count` nodes in the proportions of the pools, pool by pool."""
    total = sum(pool.share for pool in pools)
    nodes: list[Node] = []
    share = 0
    for pool in pools:
        share += pool.share
        number = 0
        while len(nodes) < round(count * share / total):
            nodes.append(_node(pool, number))
            number += 1
    return nodes


def pod_shapes(count: int, seed: int) -> list[PodShape]:
    """`count` different shapes: about half ask for one GPU, a few for several, the others for none."""
    rng = random.Random(seed)  # noqa: S311 - a reproducible stream, not a secret
    shapes: list[PodShape] = []
    for number in range(count):
        gpus = (1, 0, 1, 0, 0, 1, 0, 2, 1, 0)[number % 10]
        milli_cpu, mebibytes = rng.choice(_GPU_SHAPES if gpus else _CPU_SHAPES)
        # A little off the usual sizes, so that shapes differ and do not add up to whole nodes.
        milli_cpu += 10 * number
        share = max(1, 40 // (number + 1))
        shapes.append(
            PodShape(share, milli_cpu * max(gpus, 1), mebibytes * max(gpus, 1), gpus, rng.choice(_PRIORITIES))
        )
    return shapes


def synthetic_pod(name: str, shape: PodShape, scheduler_name: str) -> Pod:
    """A pending pod of that shape in the namespace `default`."""
    amounts: dict[str, Quantity] = {"cpu": f"{shape.milli_cpu}m", "memory": f"{shape.mebibytes}Mi"}
    if shape.gpus:
        amounts[GPU] = shape.gpus
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"pod-{name}", creation_timestamp=_CREATED),
        spec=PodSpec(
            scheduler_name=scheduler_name,
            priority=shape.priority,
            containers=[Container(name="main", resources=ResourceRequirements(requests=amounts))],
        ),
        status=PodStatus(phase="Pending"),
    )


def _node(pool: NodePool, number: int) -> Node:
    name = f"{pool.name}-{number:03}"
    amounts: dict[str, Quantity] = {"cpu": pool.cores, "memory": f"{pool.gibibytes}Gi", "pods": PODS_PER_NODE}
    if pool.gpus:
        amounts[GPU] = pool.gpus
    labels = {"kubernetes.io/hostname": name, "pool": pool.name}
    return Node(
        metadata=ObjectMeta(name=name, uid=f"node-{name}", labels=labels),
        status=NodeStatus(allocatable=amounts, capacity=amounts),
    )


URGENT_PRIORITY: Final = 10_000
"""More than any other pod has."""

_SHAPES: Final = 20
_FULL_PERCENT: Final = 70
"""From so much of any resource on, a pod departs for each that arrives."""
_URGENT_PERCENT: Final = 75
"""So much of a node's cpu and memory an urgent pod asks for, and all of its GPUs."""
_NODES_PER_URGENT: Final = 4
_PODS_PER_URGENT: Final = 10


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod, by its number in the scene, comes and wants a node."""

    pod: int


@dataclass(frozen=True, slots=True)
class Departure:
    """A pod that came before is deleted, whether it has a node or waits."""

    pod: int


Event = Arrival | Departure


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the scene, and what can be said of the cluster at its end."""

    title: str
    events: tuple[Event, ...]


class Scene:
    """A cluster fills while pods come and go, urgent pods come that need most of a node each, and half of all depart.

    Departures are of the scene and not of a scheduler, so that strategies are compared on the same pods.
    """

    def __init__(self, *, nodes: int, pods: int, seed: int) -> None:
        self.nodes = synthetic_nodes(nodes, POOLS)
        self.pods = pods
        rng = random.Random(seed)  # noqa: S311 - a reproducible scene, not a secret
        shapes = pod_shapes(_SHAPES, seed)
        alike = sum(node.status == self.nodes[0].status for node in self.nodes)
        urgent = min(1 + alike // _NODES_PER_URGENT, pods // _PODS_PER_URGENT)
        self._shapes = rng.choices(shapes, weights=[shape.share for shape in shapes], k=pods - urgent)
        self._urgent = [_urgent_shape(self.nodes[0])] * urgent
        capacity = Counter[str]()
        for node in self.nodes:
            capacity.update(node_allocatable(node))
        filling, alive = _filling(self._shapes, capacity, rng)
        departing = rng.sample(sorted(alive), len(alive) // 2)
        self.stages = (
            Stage("filled", tuple(filling)),
            Stage("urgent pods came", tuple(Arrival(number) for number in range(pods - urgent, pods))),
            Stage("half departed", tuple(map(Departure, departing))),
        )

    @property
    def events(self) -> int:
        """How many there are in all stages."""
        return sum(len(stage.events) for stage in self.stages)

    def stream(self) -> list[PodInfo]:
        """The pods by their number; new objects at every call."""
        return [PodInfo(pod) for pod in self._pods()]

    def _pods(self) -> Iterator[Pod]:
        for number, shape in enumerate(self._shapes):
            yield synthetic_pod(f"pod-{number:05}", shape, DEFAULT_SCHEDULER_NAME)
        for number, shape in enumerate(self._urgent):
            yield synthetic_pod(f"urgent-{number:02}", shape, DEFAULT_SCHEDULER_NAME)


def _filling(
    shapes: Sequence[PodShape], capacity: Mapping[str, int], rng: random.Random
) -> tuple[list[Event], list[int]]:
    """Have all pods arrive, and as many depart that they ask for no more than a share; also returns who is left."""
    events: list[Event] = []
    alive: list[int] = []
    asked = Counter[str]()
    for number, shape in enumerate(shapes):
        asked.update(_amounts(shape))
        while alive and _is_full(asked, capacity):
            place = rng.randrange(len(alive))
            alive[place], alive[-1] = alive[-1], alive[place]
            gone = alive.pop()
            asked.subtract(_amounts(shapes[gone]))
            events.append(Departure(gone))
        alive.append(number)
        events.append(Arrival(number))
    return events, alive


def _is_full(asked: Mapping[str, int], capacity: Mapping[str, int]) -> bool:
    # What no node has is no measure: who asks for it waits.
    return any(100 * amount > _FULL_PERCENT * capacity[name] for name, amount in asked.items() if capacity[name])


def _amounts(shape: PodShape) -> dict[str, int]:
    return {CPU: shape.milli_cpu, MEMORY: shape.mebibytes << 20, GPU: shape.gpus}


def _urgent_shape(node: Node) -> PodShape:
    offered = node_allocatable(node)
    return PodShape(
        share=1,
        milli_cpu=offered[CPU] * _URGENT_PERCENT // 100,
        mebibytes=(offered[MEMORY] >> 20) * _URGENT_PERCENT // 100,
        gpus=offered.get(GPU, 0),
        priority=URGENT_PRIORITY,
    )
