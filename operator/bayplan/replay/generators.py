"""Made-up traces by name; the same seed gives the same trace."""

import random
from collections.abc import Callable, Mapping
from typing import Final

from bayplan.replay.ci_fleet import ci_fleet
from bayplan.replay.openb import openb
from bayplan.replay.trace import Trace

Generator = Callable[[random.Random, float, float], Trace]
"""Makes a trace of a source of random numbers, hours and scale."""

GENERATORS: Final[Mapping[str, Generator]] = {"ci-fleet": ci_fleet, "openb": openb}


def generate(name: str, *, seed: int, hours: float, scale: float) -> Trace:
    """Return the made-up trace of that name: so many hours, with so many times the load of the original."""
    rng = random.Random(seed)  # noqa: S311 - a reproducible stream, not a secret
    return GENERATORS[name](rng, hours, scale)
