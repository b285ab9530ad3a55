"""What evictions would do, kept from one pod to the next like it, for rows on which nothing changed since."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.cache.row_follower import RowFollower
from bayplan.framework.interface import FilterPlugin, SignPlugin, VersionedSignPlugin
from bayplan.plugins.preemption.lower_priority import LowerPriorityPods
from bayplan.plugins.preemption.plan import Plan

_KEPT_KINDS: Final = 8


@dataclass(slots=True, eq=False)
class PlansOfAKind:
    """The plans for pods of one kind, as far as they hold; `ColumnTrial` relies on `get` giving only such.

    A plan holds as long as the row has the same pods, the same node and the same possible victims.
    """

    table: NodeTable
    lower: LowerPriorityPods
    budgets_version: int
    _follower: RowFollower = field(init=False)
    _plans: dict[int, tuple[Sequence[PodInfo], Plan]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._follower = RowFollower(self.table)

    def follow(self) -> None:
        """Forget the plans of rows that changed."""
        change = self._follower.follow()
        if change.everything:
            self._plans.clear()
            return
        for row in change.usage.tolist():
            self._plans.pop(row, None)

    def get(self, row: int) -> Plan | None:
        """The plan for a row, if it still holds."""
        kept = self._plans.get(row)
        # Possible victims change with time as well: pods that were too young to be any.
        return None if kept is None or kept[0] is not self.lower.victims[row] else kept[1]

    def put(self, plan: Plan) -> None:
        """Keep a plan made of what there is now."""
        self._plans[plan.row] = (self.lower.victims[plan.row], plan)


class KeptPlans:
    """The plans of the kinds of pods that were tried last."""

    def __init__(self) -> None:
        self._kinds: RecentlyUsed[Hashable, PlansOfAKind] = RecentlyUsed(_KEPT_KINDS)

    def of(
        self,
        pod: PodInfo,
        filters: Sequence[FilterPlugin],
        *,
        table: NodeTable,
        lower: LowerPriorityPods,
        budgets_version: int,
    ) -> PlansOfAKind:
        """The plans for pods that `filters` treat like `pod`, among these pods and nominations, up to date."""
        kind = _kind(pod, filters)
        kept = self._kinds.get(kind) if kind is not None else None
        if (
            kept is None
            or kept.table is not table
            or kept.lower is not lower
            or kept.budgets_version != budgets_version
        ):
            kept = PlansOfAKind(table, lower, budgets_version)
            if kind is not None:
                self._kinds.put(kind, kept)
        kept.follow()
        return kept


def _kind(pod: PodInfo, filters: Sequence[FilterPlugin]) -> Hashable:
    """Equal for pods of equal priority that these filters treat alike; None if one of them cannot tell."""
    signs: list[Hashable] = [pod.priority]
    for plugin in filters:
        sign = plugin.sign_pod(pod) if isinstance(plugin, SignPlugin) else None
        if sign is None:
            return None
        version = plugin.sign_version if isinstance(plugin, VersionedSignPlugin) else 0
        signs.append((plugin.name, version, sign))
    return tuple(signs)
