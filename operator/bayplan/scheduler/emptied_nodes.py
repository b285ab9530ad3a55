"""The nodes without the pods that a group may have evicted, kept from one group that waits to the next."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from bayplan.cache.cache import Cache
from bayplan.cache.change_log import RowFollower
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import UsedOfLate
from bayplan.cache.scratch_table import KEPT_SCRATCH_POD_BYTES
from bayplan.framework.nominator import Nominator
from bayplan.framework.runtime import Framework
from bayplan.groups.pod_groups import PodGroups
from bayplan.plugins.preemption.victims import priority_in_group
from bayplan.scheduler.cycle import SchedulingCycle

_KEPT_PRIORITIES: Final = 4
_ROWS_AT_ONCE: Final = 128


@dataclass(eq=False)
class EmptiedNodes:
    """A copy of a cache's nodes without all pods below a priority; group preemption tries on it who would fit at best.

    `follow` brings it up to date row by row, so that it costs what changed and not what exists. Whoever places pods on
    `cache` by `cycle` takes them back.
    """

    source: Cache
    priority: int
    groups: PodGroups
    nominator: Nominator
    frameworks: Mapping[str, Framework]
    cache: Cache = field(default_factory=Cache, init=False)
    cycle: SchedulingCycle = field(init=False)
    _rows: RowFollower = field(init=False)
    _version: int = field(default=0, init=False)
    _left_out: dict[int, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._rows = RowFollower(self.source.nodes)

    @property
    def is_all(self) -> bool:
        """Whether no pod is left out, because there is none of lower priority."""
        return not self._left_out

    def follow(self) -> Iterator[None]:
        """Take in what changed, and yield now and then; who stops half way makes another one."""
        source, change = self.source.nodes, self._rows.follow()
        version, objects = self.groups.priorities_version, change.objects.tolist()
        is_known = not change.everything and version == self._version
        if not is_known or any(source.names[row] != self.cache.nodes.names[row] for row in objects):
            self._version = version
            yield from self._start_over()
            return
        for row in objects:
            node = source.nodes[row]
            if node is not None:
                self.cache.nodes.set_node(node)
        for row in change.usage.tolist():
            self._read(row)

    def _start_over(self) -> Iterator[None]:
        nodes = self.cache.nodes = self.source.nodes.copy()
        nodes.pods_changed.set_kept(KEPT_SCRATCH_POD_BYTES)
        self._left_out.clear()
        for number, row in enumerate(nodes.rows().tolist(), 1):
            lower = [pod for pod in nodes.pods[row].values() if self._is_below(pod)]
            for pod in lower:
                nodes.remove_pod(pod, row)
            if lower:
                self._left_out[row] = len(lower)
            if not number % _ROWS_AT_ONCE:
                yield
        self.cycle = SchedulingCycle(nodes, self.nominator, self.frameworks.values(), tell_reasons=False)

    def _read(self, row: int) -> None:
        """Have the pods that stay on a row, and no others."""
        nodes, there = self.cache.nodes, self.source.nodes.pods[row]
        stay = {uid: pod for uid, pod in there.items() if not self._is_below(pod)}
        for uid, pod in [*nodes.pods[row].items()]:
            if stay.get(uid) is not pod:
                nodes.remove_pod(pod, row)
        for uid, pod in stay.items():
            if uid not in nodes.pods[row]:
                nodes.add_pod(pod, row)
        self._left_out.pop(row, None)
        if len(there) > len(stay):
            self._left_out[row] = len(there) - len(stay)

    def _is_below(self, pod: PodInfo) -> bool:
        return priority_in_group(pod, self.groups.object_of(pod)) < self.priority


@dataclass(eq=False)
class KeptEmptiedNodes:
    """The emptied nodes of the priorities that were asked for last; groups that wait share them.

    Each is a copy of all that pods take on `source`, so there are few, and none that nobody asked for of late.
    """

    source: Cache
    groups: PodGroups
    nominator: Nominator
    _kept: UsedOfLate[int, EmptiedNodes] = field(default_factory=lambda: UsedOfLate(_KEPT_PRIORITIES), init=False)

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, priority: int, frameworks: Mapping[str, Framework]) -> EmptiedNodes:
        """Hand out those of a priority, which are kept again once they are given back as they were."""
        emptied = self._kept.get(priority)
        if emptied is not None:
            self._kept.drop(priority)
            if emptied.frameworks is frameworks:
                return emptied
        return EmptiedNodes(self.source, priority, self.groups, self.nominator, frameworks)

    def give_back(self, emptied: EmptiedNodes) -> None:
        """Keep them for the next group."""
        self._kept.put(emptied.priority, emptied)

    def release_unused(self) -> None:
        """Let go of those that no group needed since the last call: they hold pods that may be gone."""
        self._kept.release_unused()
        for emptied in self._kept.values():
            emptied.cycle.release_unused()
