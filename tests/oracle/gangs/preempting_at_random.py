"""Scenarios by dice in which gangs evict, and are evicted; the same ones for the same seed."""

import random

from tests.oracle.gangs.parts import REST, gang, group, member, room, scenario, single
from tests.oracle.gangs.preemption import BUDGET, WHOLE
from tests.oracle.gangs.scenario import NEVER, Family, Scenario, Step

COUNT = 30
_MODES = (WHOLE, WHOLE, {}, {"disruptionMode": {"single": {}}})


def preempting_at_random(seed: int) -> Family:
    """Returns scenarios of full nodes on which one or two gangs want room, one after the other.

    Pods come with their nodes, so that who stands where, and who came first, is the same in every run.
    """
    scenarios = tuple(_scenario(random.Random(f"{seed}/preempting/{index}"), seed, index) for index in range(COUNT))
    return Family("preempting", f"what dice of seed {seed} make up of gangs that evict", scenarios)


def _scenario(dice: random.Random, seed: int, index: int) -> Scenario:
    halves = {f"n{number}": 2 * dice.randint(2, 6) for number in range(1, dice.randint(1, 3) + 1)}
    steps: list[Step] = [room(name, free // 2) for name, free in halves.items()]
    has_budget = dice.random() < 0.3
    steps += [BUDGET] if has_budget else []
    steps += [each for name in "vw"[: dice.randint(0, 2)] for each in _running_gang(dice, name, halves)]
    steps += [*_running_pods(dice, halves, has_budget=has_budget), REST]
    for name in "ab"[: dice.randint(1, 2)]:
        count, priority = dice.randint(1, 4), dice.choice(("high", "high", "high", "middle", NEVER))
        cpu = dice.choice(("500m", "1", "1", "1500m", "2"))
        steps += [*gang(name, max(1, count - dice.choice((0, 0, 1))), count, priority=priority, cpu=cpu), REST]
        if dice.random() < 0.2:
            steps += [room(f"late-{name}", dice.randint(1, 2)), REST]
    return scenario(f"preempting-{seed}-{index:02}", "gangs evict whom they must", *steps)


def _running_gang(dice: random.Random, name: str, halves: dict[str, int]) -> list[Step]:
    """A group and its members on nodes; each takes one CPU of what is left there, in halves."""
    mode, priority = dice.choice(_MODES), dice.choice(("low", "low", "middle"))
    steps: list[Step] = [group(name, dice.choice((1, 2)), priority=priority, **mode)]
    for number in range(1, dice.randint(1, 3) + 1):
        if there := [node for node, free in halves.items() if free >= 2]:
            node = dice.choice(there)
            halves[node] -= 2
            steps.append(member(f"{name}{number}", name, on=node, priority=priority))
    return steps


def _running_pods(dice: random.Random, halves: dict[str, int], *, has_budget: bool) -> list[Step]:
    """Single pods on nodes, until these are full or the dice say so."""
    steps: list[Step] = []
    while any(halves.values()) and dice.random() < 0.92:
        node = dice.choice([node for node, free in halves.items() if free])
        size = dice.choice([each for each in (1, 2, 2, 4) if each <= halves[node]])
        halves[node] -= size
        labels = {"app": "kept"} if has_budget and dice.random() < 0.5 else None
        priority = dice.choice(("low", "low", "middle", "high"))
        name = f"s{len(steps) + 1:02}"
        steps.append(single(name, on=node, cpu=f"{size * 500}m", priority=priority, labels=labels))
    return steps
