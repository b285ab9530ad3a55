"""Made-up pods that come one after the other."""

import random
from collections.abc import Sequence

from bayplan.cache.pod_info import PodInfo
from bayplan.simulate.synthetic import PodShape, synthetic_pod


def synthetic_pods(count: int, shapes: Sequence[PodShape], *, seed: int, scheduler_name: str) -> list[PodInfo]:
    """`count` pending pods of `shapes`, drawn by their shares; new objects at every call."""
    rng = random.Random(seed)
    drawn = rng.choices(shapes, weights=[shape.share for shape in shapes], k=count)
    return [PodInfo(synthetic_pod(f"pod-{number:05}", shape, scheduler_name)) for number, shape in enumerate(drawn)]
