"""PrioritySort: important pods first, then the ones that wait longest."""

from typing import ClassVar

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.traits import Traits


class PrioritySort:
    """Orders by priority, then by the time a pod was queued (upstream: plugins/queuesort/priority_sort.go)."""

    name: ClassVar[str] = "PrioritySort"
    traits: ClassVar[Traits] = Traits()

    def sort_key(self, pod: PodInfo, timestamp: float) -> tuple[int, float]:
        return (-pod.priority, timestamp)
