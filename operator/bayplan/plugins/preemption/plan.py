"""What evictions would do on one node."""

from dataclasses import dataclass, field

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.candidate import Candidate


@dataclass(slots=True)
class Plan:
    """The victims on a row, most important first, and how many violate a budget; or why evictions do not help.

    `error` is set on a node that rejected the pod and then takes it with nobody evicted. `candidate` is the last one
    made of the plan.
    """

    row: int
    victims: list[PodInfo] = field(default_factory=list)
    violations: int = 0
    reasons: list[str] = field(default_factory=list)
    error: str = ""
    candidate: Candidate | None = None


def no_victim_needed(node_name: str) -> str:
    """What is said of a node that rejected the pod and then takes it with nobody evicted."""
    return f'expected at least one victim pod on node "{node_name}"'
