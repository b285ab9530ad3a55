"""Who may be a victim, in what order victims are spared, and what was found on one node."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.candidate import Candidate, start_time


def importance(pod: PodInfo) -> tuple[int, float]:
    """Sort the most important pod first: by priority, then by who has run longest (upstream: MoreImportantPod)."""
    return -pod.priority, start_time(pod)


@dataclass(frozen=True, slots=True)
class VictimRule:
    """Which pods of lower priority may be evicted: those that have run long enough.

    `minimum_runtime` is in seconds, 0 spares nobody; `now` gives seconds since the epoch.
    """

    minimum_runtime: int
    now: Callable[[], float]

    def evictable_from(self, victim: PodInfo) -> float:
        """Return when the pod has run long enough, in seconds since the epoch; inf for one that has not started."""
        started = start_time(victim)
        return started if started == inf else started + self.minimum_runtime


@dataclass(slots=True)
class VictimSelection:
    """The victims on a row, most important first, and how many violate a budget; or why evictions do not help.

    `error` is set on a node that rejected the pod and then takes it with nobody evicted. `candidate` is the last one
    made of the selection.
    """

    row: int
    victims: list[PodInfo] = field(default_factory=list)
    violations: int = 0
    reasons: list[str] = field(default_factory=list)
    error: str = ""
    candidate: Candidate | None = None


def no_victim_needed(node_name: str) -> str:
    """Return the error of a node that rejected the pod and then takes it with nobody evicted."""
    return f'expected at least one victim pod on node "{node_name}"'
