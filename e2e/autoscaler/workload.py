"""The trace: pods that come and go at random, for nodes of one size."""

import random
from math import cos, pi

from bayplan.replay.generators import lognormal, poisson_arrivals
from bayplan.replay.trace import NodePool, PodTemplate, Trace, TraceHeader, TracePod, trace_of
from e2e.autoscaler.karpenter import INSTANCE_TYPE

STEADY, WAVE = "steady", "wave"
_PODS_A_SECOND = 2.0
_TROUGH = 2400 / 8500
"""The share of the peak that comes at night in PyTorch's CI fleet."""
_MILLI_CPU = range(500, 4001, 100)
_MIB_A_CPU = 1024
"""Half of what a node has for each CPU: memory never decides."""
_MEDIAN_SECONDS, _SIGMA = 37.0, 0.8
_NODE = NodePool(
    INSTANCE_TYPE, {"cpu": 16, "memory": "32Gi"}, allocatable={"cpu": "15900m", "memory": f"{32 * 1024 - 10}Mi"}
)


def trace_for(seed: int, minutes: float, load: str = STEADY) -> Trace:
    """Returns the trace of that seed: pods of 0.5 to 4 CPUs, half of which run for more than 37 seconds.

    Two come a second all along, or, of a wave, at its begin and its end, with a trough half-way.
    """
    rng = random.Random(seed)
    templates = [_template(milli) for milli in _MILLI_CPU]
    header = TraceHeader([_NODE], templates, minutes * 60)
    depth = (1 - _TROUGH) / 2 if load == WAVE else 0.0

    def rate(now: float) -> float:
        return _PODS_A_SECOND * (1 - depth * (1 - cos(2 * pi * now / header.seconds)))

    arrivals = poisson_arrivals(rng, rate, _PODS_A_SECOND, header.seconds)
    return trace_of(
        header,
        # Each has an owner, so that one who is evicted comes again.
        (
            TracePod(now, lognormal(rng, _MEDIAN_SECONDS, _SIGMA), rng.choice(templates).name, owner=f"job-{number}")
            for number, now in enumerate(arrivals)
        ),
    )


def _template(milli: int) -> PodTemplate:
    return PodTemplate(f"cpu-{milli}m", {"cpu": f"{milli}m", "memory": f"{milli * _MIB_A_CPU // 1000}Mi"})
