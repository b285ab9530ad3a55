"""Whom a pod group may have evicted, anywhere in the cluster, and in what order they are spared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bayplan.cache.group_members import PodGroupKey
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.candidate import start_time
from bayplan.groups.pod_group import PodGroup
from bayplan.groups.pod_groups import PodGroups
from bayplan.plugins.preemption.victims import Budgets, VictimRule

_ROWS_AT_ONCE = 128


@dataclass(frozen=True, slots=True, eq=False)
class VictimUnit:
    """Pods that end together or stay together: one pod, or all of a group of disruption mode `all`.

    `rows` are those of its pods. `is_grouped` is whether they are of a pod group of Kubernetes' own kind, whose
    priority counts then. Upstream: framework/preemption/types.go Victim.
    """

    pods: tuple[PodInfo, ...]
    rows: tuple[int, ...]
    priority: int
    is_grouped: bool

    @property
    def importance(self) -> tuple[int, bool, int, float]:
        """Sort the most important unit first (upstream: framework/preemption/util.go MoreImportantVictim)."""
        return -self.priority, not self.is_grouped, -len(self.pods), min(map(start_time, self.pods))


def units_below(
    priority: int, nodes: NodeTable, groups: PodGroups | None, rule: VictimRule, besides: PodGroupKey
) -> Iterator[list[VictimUnit] | None]:
    """Give None now and then, and at last the units of lower priority that have run long enough.

    Pods of the group `besides`, which is to get the room, are none, and neither is a group one of whose pods is spared
    by the rule.
    """
    units: list[VictimUnit] = []
    whole: dict[PodGroupKey, list[tuple[PodInfo, int]]] = {}
    priority_of: dict[PodGroupKey, int] = {}
    now = rule.now()
    for number, row in enumerate(nodes.rows().tolist(), 1):
        for pod in nodes.pods[row].values():
            key = None if groups is None else groups.of(pod)
            group = None if key is None or groups is None else groups.get(key)
            own = priority_in_group(pod, group)
            if own >= priority or key == besides:
                continue
            if key is not None and group is not None and group.evicted_as_one:
                whole.setdefault(key, []).append((pod, row))
                priority_of[key] = own
            elif _may_end(pod, rule, now):
                units.append(VictimUnit((pod,), (row,), own, pod.pod.spec.scheduling_group is not None))
        if not number % _ROWS_AT_ONCE:
            yield None
    for key, members in whole.items():
        pods, rows = zip(*members, strict=True)
        if all(_may_end(pod, rule, now) for pod in pods):
            units.append(VictimUnit(pods, rows, priority_of[key], is_grouped=True))
    yield units


def priority_in_group(pod: PodInfo, group: PodGroup | None) -> int:
    """Return the priority by which group preemption counts a pod: its group's, or its own where there is none."""
    return pod.priority if group is None or group.priority is None else group.priority


def in_order_of_sparing(units: Sequence[VictimUnit], budgets: Budgets) -> list[VictimUnit]:
    """Return the units in the order in which they are given back: those first whose end would violate a budget.

    One pod that would is enough for its unit (upstream: FilterVictimsWithPDBViolation).
    """
    ranked = sorted(units, key=lambda unit: unit.importance)
    violating = {id(pod) for pod in budgets.split_by_violation([pod for unit in ranked for pod in unit.pods])[0]}
    return sorted(ranked, key=lambda unit: not any(id(pod) in violating for pod in unit.pods))


def _may_end(pod: PodInfo, rule: VictimRule, now: float) -> bool:
    return not rule.minimum_runtime or rule.evictable_from(pod) <= now
