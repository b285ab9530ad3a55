"""What evictions would do, kept from one pod to the next like it, for rows on which nothing changed since."""

from collections.abc import Hashable, Sequence
from typing import Final

from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import UsageView
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.framework.interface import FilterPlugin
from bayplan.plugins.preemption.lower_priority import LowerPriorityPods
from bayplan.plugins.preemption.plan import Plan

_KEPT_KINDS: Final = 8


class PlansOfAKind(UsageView):
    """The plans for pods of one kind, as far as they hold; `ColumnTrial` relies on `get` giving only such.

    A plan holds as long as the row has the same pods, the same node and the same possible victims.
    """

    def __init__(self, table: NodeTable, lower: LowerPriorityPods, budgets_version: int) -> None:
        super().__init__(table)
        self.table = table
        self.lower = lower
        self.budgets_version = budgets_version
        self._plans: dict[int, tuple[Sequence[PodInfo], Plan]] = {}

    def _read_all(self) -> None:
        self._plans.clear()

    def _read(self, changes: Rows) -> None:
        for row in changes.tolist():
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
        kept.catch_up()
        return kept


def _kind(pod: PodInfo, filters: Sequence[FilterPlugin]) -> Hashable:
    """Equal for pods of equal priority that these filters treat alike; None if one of them cannot tell."""
    signs: list[Hashable] = [pod.priority]
    for plugin in filters:
        sign_pod = getattr(plugin, "sign_pod", None)
        sign = None if sign_pod is None else sign_pod(pod)
        if sign is None:
            return None
        signs.append((plugin.name, getattr(plugin, "sign_version", 0), sign))
    return tuple(signs)
