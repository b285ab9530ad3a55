"""Made-up clusters and pod streams, the same for the same seed.

Node pools and pod shapes are in the proportions of a published GPU cluster trace (Alibaba's gpu-v2023): two thirds of
the nodes have GPUs, and about half the pods ask for one.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bayplan.api.meta_objects import ObjectMeta, Quantity
from bayplan.api.objects import Container, Node, NodeStatus, Pod, PodSpec, PodStatus, ResourceRequirements

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


POOLS: Final = (
    NodePool("g8", 45, 96, 384, 8),
    NodePool("g2", 32, 104, 512, 2),
    NodePool("cpu", 23, 64, 256, 0),
)
"""Large and small GPU nodes, and nodes without."""
SMALL_POOLS: Final = (NodePool("gpu", 1, 96, 384, 8), NodePool("cpu", 2, 32, 128, 0))
"""For clusters of a few dozen nodes, where one kind of each is enough."""

_GPU_SHAPES: Final = ((3152, 5600), (8000, 30517), (11300, 49152), (11400, 48128), (12000, 61440))
_CPU_SHAPES: Final = ((500, 1024), (1000, 2048), (2000, 8192), (4000, 8192), (8000, 30720), (12500, 57344))
_PRIORITIES: Final = (0, 0, 0, 100, 1000)


def synthetic_nodes(count: int, pools: Sequence[NodePool] = POOLS) -> list[Node]:
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
