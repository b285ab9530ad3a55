"""What happens to the made-up cluster of `bayplan demo`: pods arrive and depart, the same for the same seed."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bayplan.api.objects import Node, Pod
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, MEMORY, node_allocatable
from bayplan.config.types import DEFAULT_SCHEDULER_NAME
from bayplan.simulate.synthetic import GPU, SMALL_POOLS, PodShape, pod_shapes, synthetic_nodes, synthetic_pod

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
        self.nodes = synthetic_nodes(nodes, SMALL_POOLS)
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
