"""What came of a replay: what was paid and asked for, how long pods waited, and how many nodes there were when."""

from collections.abc import Sequence
from math import ceil

import msgspec


class _Reported(msgspec.Struct, frozen=True, rename="camel"):
    """camelCase on the wire."""


class Waits(_Reported, frozen=True):
    """How long pods of one priority waited from their arrival until they were bound, in seconds."""

    priority: int
    pods: int
    p50: float
    p99: float


class Moment(_Reported, frozen=True):
    """The nodes that are paid for at one time, and the fewest that any packing of the running pods needs."""

    seconds: float
    nodes: int
    lower_bound_nodes: int


class Outcome(_Reported, frozen=True):
    """Everything that one configuration made of a trace, up to its end."""

    pods: int
    """Pods that came, each as often as its owner made it."""
    bound: int
    waiting: int
    """Pods without a node at the end."""
    evicted: int
    decisions: int
    node_hours: float
    core_hours_paid: float
    """Cores of all nodes from their request until they are gone."""
    core_hours_asked: float
    """What pods ask for while they are on nodes."""
    lower_bound_node_hours: float
    lower_bound_core_hours: float
    """No packing of the pods that ran at each moment has fewer."""
    most_nodes: int
    nodes_made: int
    wait_p50: float
    wait_p99: float
    waits: list[Waits]
    moments: list[Moment]
    seconds: float
    """How long the replay took, of which `decisionSeconds` were for scheduling."""
    decision_seconds: float

    @property
    def paid_over_asked(self) -> float:
        """Core-hours paid for one that was asked for; 0 where nothing was."""
        return self.core_hours_paid / self.core_hours_asked if self.core_hours_asked else 0.0

    @property
    def bound_over_asked(self) -> float:
        """The lower bound of `paid_over_asked`."""
        return self.lower_bound_core_hours / self.core_hours_asked if self.core_hours_asked else 0.0


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the least of some ordered values that a share of them does not exceed; 0 where there are none."""
    return ordered[max(ceil(share * len(ordered)) - 1, 0)] if ordered else 0.0


def waits_of(by_priority: dict[int, list[float]]) -> list[Waits]:
    """Return the waits of each priority, the highest first."""
    ordered = [(priority, sorted(waits)) for priority, waits in sorted(by_priority.items(), reverse=True)]
    return [Waits(priority, len(waits), quantile(waits, 0.5), quantile(waits, 0.99)) for priority, waits in ordered]
