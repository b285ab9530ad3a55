"""Victims that were selected, kept from one pod to the next like it, for rows on which nothing changed since."""

from collections.abc import Callable, Hashable, Sequence
from typing import Final
from weakref import ref

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.framework.interface import FilterPlugin, SignPlugin
from bayplan.plugins.preemption.victims import LowerPriorityPods, VictimSelection

_KEPT_KINDS: Final = 8


class SelectionsOfAKind:
    """The selections for pods of one kind; `ColumnVictimSelector` relies on `get` giving only those that hold.

    A selection holds as long as the row has the same pods, the same node and the same possible victims. The table is
    not kept alive: one with nominated pods goes with these.
    """

    def __init__(self, table: NodeTable, lower: LowerPriorityPods, budgets_version: int) -> None:
        self._table = ref(table)
        self.lower = lower
        self.budgets_version = budgets_version
        self.is_used = True
        """Whether a pod of the kind came since unused ones were let go of."""
        self._layout = self._position = -1
        self._selections: dict[int, tuple[Sequence[PodInfo], VictimSelection]] = {}

    def follow(self, table: NodeTable) -> bool:
        """Forget the selections on rows that changed; False if they were made on another table than this."""
        if self._table() is not table:
            return False
        changes = table.usage_changed.since(self._position) if self._layout == table.layout else None
        self._layout, self._position = table.layout, table.usage_changed.position
        if changes is None:
            self._selections.clear()
        else:
            for row in changes.tolist():
                self._selections.pop(row, None)
        return True

    def get(self, row: int) -> VictimSelection | None:
        """Return the selection for a row, if it still holds."""
        kept = self._selections.get(row)
        # Possible victims change with time as well: pods that were too young to be any.
        return None if kept is None or kept[0] is not self.lower.victims[row] else kept[1]

    def put(self, selection: VictimSelection) -> None:
        """Keep a selection made of what there is now."""
        self._selections[selection.row] = (self.lower.victims[selection.row], selection)


class KeptSelections:
    """The selections for the kinds of pods that were tried last."""

    def __init__(self) -> None:
        self._kinds: RecentlyUsed[Hashable, SelectionsOfAKind] = RecentlyUsed(_KEPT_KINDS)
        self._signers: dict[str, Callable[[PodInfo], Hashable]] = {}

    def of(
        self,
        pod: PodInfo,
        filters: Sequence[FilterPlugin],
        *,
        table: NodeTable,
        lower: LowerPriorityPods,
        budgets_version: int,
    ) -> SelectionsOfAKind:
        """Return the up-to-date selections for pods that `filters` treat like `pod`, among these nominations."""
        kind = self._kind(pod, filters)
        kept = self._kinds.get(kind) if kind is not None else None
        if kept is None or kept.lower is not lower or kept.budgets_version != budgets_version or not kept.follow(table):
            kept = SelectionsOfAKind(table, lower, budgets_version)
            kept.follow(table)
            if kind is not None:
                self._kinds.put(kind, kept)
        kept.is_used = True
        return kept

    def release_unused(self) -> None:
        """Let go of the selections for kinds of which no pod came since the last call."""
        for kind, kept in [*self._kinds.items()]:
            if not kept.is_used:
                self._kinds.drop(kind)
            kept.is_used = False

    def _kind(self, pod: PodInfo, filters: Sequence[FilterPlugin]) -> Hashable:
        """Return what pods of equal priority share that these filters treat alike; None if one gives no signature."""
        signs: list[Hashable] = [pod.priority]
        for plugin in filters:
            signer = self._signers.get(plugin.name)
            if signer is None:
                signer = self._signers[plugin.name] = _signer(plugin)
            sign = signer(pod)
            if sign is None:
                return None
            signs.append((plugin.name, sign))
        return tuple(signs)


def _signer(plugin: FilterPlugin) -> Callable[[PodInfo], Hashable]:
    """Return what gives the plugin's signature of a pod; protocols take too long to check for every pod.

    It is worked out for each pod, so what else than the pod it depends on is in it already.
    """
    return plugin.sign_pod if isinstance(plugin, SignPlugin) else lambda pod: None
