"""A copy of the cluster that the engine can be asked on, and be changed by nobody but who asks."""

import time
from collections.abc import Callable

from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.snapshot import CacheSnapshot
from bayplan.config.types import SchedulerConfiguration
from bayplan.queue.nominator import Nominator


class ClusterCopy:
    """Nodes, pods, what plugins look up and nominations, as they were when it was made; for one question each.

    Made on the loop in some milliseconds. `cache` and `nominator` are then made of it on a thread. What volume plugins
    assume for pods that are being bound is not among it.
    """

    def __init__(self, cache: Cache, nominator: Nominator, configuration: SchedulerConfiguration) -> None:
        self.configuration = configuration
        self.moment = time.time()
        self._snapshot = CacheSnapshot(cache)
        self._nominated: list[tuple[PodInfo, str]] = [
            (pod, node) for node in nominator.nodes() for pod in nominator.nominated_pods_for_node(node)
        ]

    def cache(self) -> Cache:
        """Make the cache; once."""
        return self._snapshot.cache()

    def nominator(self, *, but: Callable[[PodInfo], bool] = lambda pod: False) -> Nominator:
        """Make the nominations, without those of some pods."""
        made = Nominator()
        for pod, node in self._nominated:
            if not but(pod):
                made.add(pod, node)
        return made
