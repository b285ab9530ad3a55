"""Scenarios by dice: gangs, single pods, nodes and what happens to them, the same ones for the same seed."""

import random

from tests.oracle.gangs.parts import REST, gang, gone, least_becomes, room, scenario, single
from tests.oracle.gangs.scenario import Family, Scenario, Step

COUNT = 24


def at_random(seed: int) -> Family:
    """Returns scenarios of two to four gangs of one class that come, fit, wait and go one after the other.

    Between any two steps the schedulers come to rest, so that only one thing at a time is to be decided.
    """
    scenarios = tuple(_scenario(random.Random(f"{seed}/{index}"), seed, index) for index in range(COUNT))
    return Family("at-random", f"what dice of seed {seed} make up", scenarios)


def _scenario(dice: random.Random, seed: int, index: int) -> Scenario:
    steps: list[Step] = [room(f"n{number}", dice.randint(1, 4)) for number in range(dice.randint(1, 3))]
    counts: dict[str, int] = {}
    leasts: dict[str, int] = {}
    for name in "abcd"[: dice.randint(2, 4)]:
        count = dice.randint(1, 5)
        least = max(1, count - dice.choice((0, 0, 0, 1, 2)))
        basic = dice.random() < 0.15
        counts[name], leasts[name] = count, least
        cpu = dice.choice(("1", "1", "1", "500m", "2"))
        steps += [*gang(name, None if basic else least, count, cpu=cpu), REST]
        if basic:
            del leasts[name]
        if dice.random() < 0.6:
            steps += [*_happening(dice, counts, leasts, len(steps)), REST]
    return scenario(f"at-random-{seed}-{index:02}", "gangs come one after the other", *steps)


def _happening(dice: random.Random, counts: dict[str, int], leasts: dict[str, int], number: int) -> list[Step]:
    """A node or a single pod comes, a first member goes, or a least is lowered."""
    kind = dice.choice(("node", "node", "pod", "goes", "least"))
    if kind == "goes" and counts:
        name = dice.choice(sorted(counts))
        del counts[name]
        return gone(f"{name}1")
    lowered = sorted(name for name, least in leasts.items() if least > 1)
    if kind == "least" and lowered:
        name = dice.choice(lowered)
        leasts[name] -= 1
        return [least_becomes(name, leasts[name])]
    return [room(f"late-{number}", dice.randint(1, 3))] if kind == "node" else [single(f"s{number}")]
