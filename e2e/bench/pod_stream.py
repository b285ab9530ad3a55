"""Made-up pods that come one after the other, and the nodes of a large cluster for them."""

import random
from collections.abc import Sequence
from typing import Final

from bayplan.cache.pod_info import PodInfo
from bayplan.simulate.synthetic import NodePool, PodShape, synthetic_pod

POOLS: Final = (
    NodePool("g8", 45, 96, 384, 8),
    NodePool("g2", 32, 104, 512, 2),
    NodePool("cpu", 23, 64, 256, 0),
)
"""Large and small GPU nodes, and nodes without, in the proportions of Alibaba's gpu-v2023."""


def synthetic_pods(count: int, shapes: Sequence[PodShape], *, seed: int, scheduler_name: str) -> list[PodInfo]:
    """`count` pending pods of `shapes`, drawn by their shares; new objects at every call."""
    rng = random.Random(seed)
    drawn = rng.choices(shapes, weights=[shape.share for shape in shapes], k=count)
    return [PodInfo(synthetic_pod(f"pod-{number:05}", shape, scheduler_name)) for number, shape in enumerate(drawn)]
