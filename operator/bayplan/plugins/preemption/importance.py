"""Which pods may be victims, and the order in which they are spared (upstream: util/utils.go MoreImportantPod)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.candidate import start_time


def importance(pod: PodInfo) -> tuple[int, float]:
    """Sorts the most important pod first: by priority, then by who has run longest."""
    return -pod.priority, start_time(pod)


@dataclass(frozen=True, slots=True)
class VictimRule:
    """Which pods of lower priority may be evicted: those that have run long enough.

    `minimum_runtime` is in seconds, 0 spares nobody; `now` gives seconds since the epoch.
    """

    minimum_runtime: int
    now: Callable[[], float]

    def ripe_at(self, victim: PodInfo) -> float:
        """From when on the pod has run long enough; never, as far as is known, for one that has not started."""
        started = start_time(victim)
        return started if started == inf else started + self.minimum_runtime
