"""PrioritySort: important pods first, then the ones that wait longest."""

from typing import ClassVar

from bayplan.framework.status import Traits
from bayplan.queue.queue_settings import priority_sort


class PrioritySort:
    """Orders by priority, then by the time a pod was queued (upstream: plugins/queuesort/priority_sort.go)."""

    name: ClassVar[str] = "PrioritySort"
    traits: ClassVar[Traits] = Traits()
    sort_key = staticmethod(priority_sort)
