"""Applies the events of pod groups, of either kind, to what is known of them."""

from collections.abc import Callable
from dataclasses import dataclass

from bayplan.api.object_store import Handler
from bayplan.api.pod_group_objects import PodGroup as PodGroupObject
from bayplan.cache.group_members import GroupSource
from bayplan.groups.pod_group import read_pod_group
from bayplan.groups.pod_groups import PodGroups
from bayplan.queue.scheduling_queue import SchedulingQueue


@dataclass(eq=False)
class PodGroupEvents(Handler[PodGroupObject]):
    """Keeps the groups of one source, and whether pods are grouped by it at all; `on_gone` receives a group's UID."""

    queue: SchedulingQueue
    groups: PodGroups
    source: GroupSource
    wake: Callable[[], None]
    on_gone: Callable[[str], None]

    def on_add(self, obj: PodGroupObject) -> None:
        """A group appeared or changed: how many start together, or what is said of it."""
        self.queue.set_group(read_pod_group(obj, self.source))
        self.wake()

    def on_delete(self, obj: PodGroupObject) -> None:
        """A group went away; its members wait for another of its name."""
        self.queue.remove_group(read_pod_group(obj, self.source).key)
        self.on_gone(obj.metadata.uid)
        self.wake()

    def on_synced(self) -> None:
        """All groups there were at the start are known, so the API server serves them."""
        if self.groups.serve(self.source):
            self.queue.regroup()
            self.wake()
