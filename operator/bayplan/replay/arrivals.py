"""When the pods of made-up traces come, and how long they run."""

import random
from collections.abc import Callable, Iterator
from math import exp, log


def poisson_arrivals(
    rng: random.Random, rate: Callable[[float], float], most: float, seconds: float
) -> Iterator[float]:
    """Yield the seconds at which pods come, of a Poisson process with so many a second at each time.

    `most` is no less than any of the rates: the process of that rate is thinned (Lewis and Shedler, Naval Research
    Logistics Quarterly 26, 1979).
    """
    now = rng.expovariate(most)
    while now < seconds:
        if rng.random() * most < rate(now):
            yield round(now, 3)
        now += rng.expovariate(most)


def lognormal(rng: random.Random, median: float, sigma: float) -> float:
    """Return a duration from the lognormal distribution of that median, with `sigma` of its logarithm."""
    return round(rng.lognormvariate(log(median), sigma), 3)


def median_of(mean: float, sigma: float) -> float:
    """Return the median of the lognormal distribution of that mean."""
    return mean / exp(sigma * sigma / 2)
