"""Made-up traces by name; the same seed gives the same trace."""

import random
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import structs

from bayplan.replay.ci_fleet import ci_fleet
from bayplan.replay.openb import openb, openb_cpu
from bayplan.replay.trace import Trace, TracePod, trace_of

Generator = Callable[[random.Random, float, float], Trace]
"""Makes a trace of a source of random numbers, hours and scale."""

GENERATORS: Final[Mapping[str, Generator]] = {"ci-fleet": ci_fleet, "openb": openb, "openb-cpu": openb_cpu}


def generate(name: str, *, seed: int, hours: float, scale: float, hints: float | None = None) -> Trace:
    """Return the made-up trace of that name: so many hours, with so many times the load of the original.

    With `hints` each pod says how long it will run, wrong by a lognormal factor of which they are the sigma.
    """
    rng = random.Random(seed)  # noqa: S311 - a reproducible stream, not a secret
    made = GENERATORS[name](rng, hours, scale)
    if hints is None:
        return made
    # Of a stream of their own: the pods are the same without hints.
    told = random.Random(f"hints of {seed}")  # noqa: S311 - as above

    def hinted(pod: TracePod) -> TracePod:
        expected = pod.duration_seconds * told.lognormvariate(0.0, hints)
        return structs.replace(pod, expected_seconds=min(max(round(expected, 3), 0.001), 1e9))

    return trace_of(made.header, map(hinted, made.pods))
