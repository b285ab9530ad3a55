"""All families of scenarios of gangs."""

from collections.abc import Sequence
from dataclasses import replace

from tests.oracle.gangs.at_random import at_random
from tests.oracle.gangs.preempting_at_random import preempting_at_random
from tests.oracle.gangs.preemption import PREEMPTION
from tests.oracle.gangs.quorum import EXTRA, LATE_GROUP, LEAST, QUORUM
from tests.oracle.gangs.rivals import LATE_ROOM, PRIORITIES, SINGLES, TWO_GANGS
from tests.oracle.gangs.rules import AFFINITY, BASIC, GATES, NAMES, PORTS_AND_SPREAD
from tests.oracle.gangs.scenario import Family
from tests.oracle.gangs.topology import TOPOLOGY

ROUND = (
    QUORUM,
    LATE_GROUP,
    LEAST,
    EXTRA,
    LATE_ROOM,
    TWO_GANGS,
    SINGLES,
    PRIORITIES,
    BASIC,
    NAMES,
    GATES,
    AFFINITY,
    PORTS_AND_SPREAD,
)
"""What one round decides, with nobody evicted and no topology asked for."""


def families(seed: int) -> dict[str, Family]:
    """Returns all families by name; `seed` is of those that dice make up."""
    by_dice = at_random(seed), preempting_at_random(seed)
    return {family.name: family for family in (*ROUND, *by_dice, TOPOLOGY, PREEMPTION)}


def choose(seed: int, names: Sequence[str] | None, scenarios: Sequence[str] | None) -> list[Family]:
    """Returns the families of these names, or all, with the scenarios of these names alone, or with all of theirs.

    Raises:
        SystemExit: there is no such scenario.
    """
    everything = families(seed)
    chosen = [everything[name] for name in names or everything]
    if not scenarios:
        return chosen
    known = {each.name for family in chosen for each in family.scenarios}
    if missing := set(scenarios) - known:
        raise SystemExit(f"there is no scenario {', '.join(sorted(missing))}")
    picked = [
        replace(family, scenarios=tuple(each for each in family.scenarios if each.name in scenarios))
        for family in chosen
    ]
    return [family for family in picked if family.scenarios]
