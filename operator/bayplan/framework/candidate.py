"""A node that would fit after evicting some pods, and which of several such nodes is best."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from typing import Final

from bayplan.api.meta_objects import parse_time
from bayplan.cache.pod_info import PodInfo

# Added to every priority, so that few victims of negative priority are not worse than many.
_PRIORITY_OFFSET: Final = 2**31

_LONGEST_TIME: Final = 64
"""Characters; texts that were read are remembered, and anybody can write longer ones."""

CRITERIA: Final = (
    "fewest disruption budget violations",
    "lowest priority of its most important victim",
    "lowest sum of priorities",
    "fewest victims",
    "latest start of its longest running victims of the highest priority",
    "found first",
)
"""What decides between candidates, in order: the texts under which a decision is explained."""


def start_time(pod: PodInfo) -> float:
    """When the pod started, in seconds since the epoch; one that has not, or says no time, started after all others."""
    return _seconds(pod.pod.status.start_time)


@lru_cache(maxsize=65536)
def _seconds(text: str | None) -> float:
    if not text or len(text) > _LONGEST_TIME:
        return inf
    try:
        return parse_time(text)
    except ValueError:
        return inf


@dataclass(frozen=True)  # no slots: what candidates are compared by is kept
class Candidate:
    """One node and the pods, the most important first, whose eviction makes the preemptor fit; at least one.

    The criteria are kube-scheduler's (upstream: framework/preemption/preemption.go pickOneNodeForPreemption).
    """

    node_name: str
    victims: tuple[PodInfo, ...]
    pdb_violations: int = 0

    @property
    def highest_priority(self) -> int:
        """The priority of the most important victim."""
        return self.victims[0].priority

    @property
    def priority_sum(self) -> int:
        """Sum over the victims of their priority plus 2^31."""
        return sum([victim.priority for victim in self.victims]) + _PRIORITY_OFFSET * len(self.victims)

    @property
    def announcement(self) -> str:
        """What users are told when it is chosen (upstream: framework/preemption/preemption.go Preempt)."""
        count = len(self.victims)
        return f"preemption: found a potential placement for pod on node {self.node_name}, preempting {count} victims"

    @cached_property
    def latest_start(self) -> float:
        """Start of the longest running of the victims of the highest priority, in seconds since the epoch, or inf."""
        highest = max([victim.priority for victim in self.victims])
        return min([start_time(victim) for victim in self.victims if victim.priority == highest])

    @cached_property
    def price(self) -> tuple[int, int, int, int]:
        """The first four criteria in order; the smallest is the best."""
        return self.pdb_violations, self.highest_priority, self.priority_sum, len(self.victims)


def choose(candidates: Sequence[Candidate]) -> Candidate:
    """The best candidate; of equal ones the first.

    Raises:
        ValueError: there is none.
    """
    prices = [candidate.price for candidate in candidates]
    best = min(prices)
    equal = [each for each, price in zip(candidates, prices, strict=True) if price == best]
    return equal[0] if len(equal) == 1 else max(equal, key=lambda each: each.latest_start)


def deciding_criterion(chosen: Candidate, other: Candidate) -> str:
    """The first of CRITERIA by which `chosen` is better than `other`."""
    ours, theirs = ((*each.price, each.latest_start) for each in (chosen, other))
    differ = (text for text, mine, yours in zip(CRITERIA, ours, theirs, strict=False) if mine != yours)
    return next(differ, CRITERIA[-1])
