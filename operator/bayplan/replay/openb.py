"""A GPU cluster in the proportions of openb, the trace that Alibaba published, with pods that come and go.

Nodes, the commonest pod shapes, and quantiles of lifetimes are those of the trace gpu-v2023 (Weng et al., Beware of
Fragmentation, USENIX ATC 2023).
"""

import random
from collections.abc import Sequence
from typing import Final

from bayplan.api.meta_objects import Quantity
from bayplan.replay.arrivals import lognormal, poisson_arrivals
from bayplan.replay.trace import NodePool, PodTemplate, Trace, TraceHeader, TracePod, trace_of

GPU_MILLI: Final = "alibabacloud.com/gpu-milli"
"""Thousandths of a GPU, summed over the node: that a share is of one GPU is left out."""

_PODS_AT_ONCE: Final = 7300
"""Nine tenths of the trace's 8,152, which ask for all GPUs that there are."""
_MEDIAN_SECONDS: Final = 540.0
_SIGMA: Final = 1.95
"""From the median and 6574 s, which nine pods in ten do not reach."""
_MOST_SECONDS: Final = 86400.0
_MEAN_SECONDS: Final = 3080.0
"""Of the lognormal distribution of that median, cut at a day."""

_POOLS: Final = (
    ("cpu-32-256", 129, 32, 256, 0),
    ("cpu-32-128", 23, 32, 128, 0),
    ("cpu-64-512", 22, 64, 512, 0),
    ("cpu-96-384", 30, 96, 384, 0),
    ("cpu-96-512", 59, 96, 512, 0),
    ("cpu-104-512", 20, 104, 512, 0),
    ("t4", 387, 104, 512, 2),
    ("g2", 549, 96, 384, 8),
    ("p100-16", 107, 16, 120, 2),
    ("p100-64", 22, 64, 256, 2),
    ("v100m16", 28, 32, 128, 4),
    ("t4-4", 17, 96, 384, 4),
    ("g1", 19, 8, 32, 1),
    ("g3", 39, 128, 768, 8),
    ("v100m32", 21, 96, 768, 8),
)
_ONE_POOL: Final = ("cpu-32-128", 2600, 32, 128, 0)
"""Name, nodes, cores, GiB and GPUs; those without GPUs are preferred, so that GPUs are there for who asks for them."""


_SHAPES: Final = (
    *((194, 11300, 49152, 1000), (121, 11400, 48128, 1000), (107, 3152, 5600, 1000), (58, 18708, 64512, 1000)),
    *((195, 3152, 5600, 810), (72, 11908, 47104, 470), (67, 8000, 30517, 470), (44, 11908, 47104, 650)),
    *((75, 12500, 57344, 0), (58, 32000, 49152, 0)),
    *((5, 64000, 245760, 8000), (2, 16000, 61440, 2000), (2, 32000, 122880, 4000)),
)
"""How many pods of a thousand, milli-CPU, MiB and thousandths of GPUs: the commonest of those with a whole GPU (480),
with a share of one (378) and with none (133), and those with several, which are made up: 8 cores and 30 GiB a GPU."""


def openb(rng: random.Random, hours: float, scale: float) -> Trace:
    """Return the trace, with as many nodes of each kind as the original for a fixed pool, times `scale`."""
    return _trace(rng, hours, scale, [_pool(each, scale) for each in _POOLS], _SHAPES)


def openb_cpu(rng: random.Random, hours: float, scale: float) -> Trace:
    """Return the trace by cpu and memory alone, on nodes of one size, for which the lower bound is a narrow one.

    Pods that are larger than a node are left out.
    """
    shapes = [(share, cpu, memory, 0) for share, cpu, memory, _ in _SHAPES if cpu <= 1000 * _ONE_POOL[2]]
    return _trace(rng, hours, scale, [_pool(_ONE_POOL, scale)], shapes)


def _trace(
    rng: random.Random, hours: float, scale: float, pools: list[NodePool], shapes: Sequence[tuple[int, int, int, int]]
) -> Trace:
    templates = {shape: _template(*shape[1:]) for shape in shapes}
    header = TraceHeader(pools, [*{each.name: each for each in templates.values()}.values()], hours * 3600)
    rate = scale * _PODS_AT_ONCE / _MEAN_SECONDS
    weights = [share for share, *_ in shapes]

    def pod(now: float) -> TracePod:
        template = templates[rng.choices(shapes, weights)[0]]
        return TracePod(now, min(lognormal(rng, _MEDIAN_SECONDS, _SIGMA), _MOST_SECONDS), template.name)

    return trace_of(header, map(pod, poisson_arrivals(rng, lambda _: rate, rate, header.seconds)))


def _template(milli_cpu: int, mebibytes: int, gpu_milli: int) -> PodTemplate:
    requests: dict[str, Quantity] = {"cpu": f"{milli_cpu}m", "memory": f"{mebibytes}Mi"}
    if gpu_milli:
        requests[GPU_MILLI] = gpu_milli
    return PodTemplate(f"{milli_cpu}m-{mebibytes}Mi-{gpu_milli}", requests)


def _pool(pool: tuple[str, int, int, int, int], scale: float) -> NodePool:
    name, nodes, cores, gibibytes, gpus = pool
    capacity: dict[str, Quantity] = {"cpu": cores, "memory": f"{gibibytes}Gi", "pods": 110}
    if gpus:
        capacity[GPU_MILLI] = 1000 * gpus
    return NodePool(name, capacity, labels={"pool": name}, count=max(1, round(nodes * scale)))
