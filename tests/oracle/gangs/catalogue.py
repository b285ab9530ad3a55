"""All families of scenarios of gangs."""

from tests.oracle.gangs.at_random import at_random
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
    """Returns all families by name; `seed` is of the one that dice make up."""
    return {family.name: family for family in (*ROUND, at_random(seed), TOPOLOGY, PREEMPTION)}
