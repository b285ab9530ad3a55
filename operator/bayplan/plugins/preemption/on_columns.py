"""Victims on many nodes at once, for filters that look at nothing but columns, kept for the next pod of that kind."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import UsedOfLate
from bayplan.cache.scratch_table import ScratchTable
from bayplan.evaluation.few_rows import FEW_ROWS, few_filter
from bayplan.framework.interface import CycleState, FilterPlugin, Rejections, SignPlugin
from bayplan.framework.status import Reads
from bayplan.plugins.preemption.victims import Budgets, LowerPriorityPods, VictimSelection, importance

Fits = NDArray[np.bool_]

_KEPT_KINDS: Final = 16


class SelectionsOfAKind:
    """The selections for pods of one kind; `ColumnVictimSelector` relies on `get` giving only those that hold.

    A selection holds as long as the row has the same pods, the same node, the same possible victims, and the same pods
    nominated to it, which `added` are.
    """

    def __init__(self, table: NodeTable, lower: LowerPriorityPods, budgets_version: int) -> None:
        self._table = table
        self.lower = lower
        self.budgets_version = budgets_version
        self._layout = self._position = -1
        self._selections: dict[int, tuple[Sequence[PodInfo], Sequence[PodInfo], VictimSelection]] = {}

    def follow(self) -> None:
        """Forget the selections on rows that changed."""
        table = self._table
        changes = table.usage_changed.since(self._position) if self._layout == table.layout else None
        self._layout, self._position = table.layout, table.usage_changed.position
        if changes is None:
            self._selections.clear()
        else:
            for row in changes.tolist():
                self._selections.pop(row, None)

    def get(self, row: int, added: Sequence[PodInfo]) -> VictimSelection | None:
        """Return the selection for a row, if it still holds."""
        kept = self._selections.get(row)
        # Possible victims change with time as well: pods that were too young to be any.
        return None if kept is None or kept[0] is not self.lower.victims[row] or kept[1] != added else kept[2]

    def put(self, selection: VictimSelection, added: Sequence[PodInfo]) -> None:
        """Keep a selection made of what there is now."""
        self._selections[selection.row] = (self.lower.victims[selection.row], added, selection)


class KeptSelections:
    """The selections for the kinds of pods that were tried last."""

    def __init__(self) -> None:
        self._kinds: UsedOfLate[Hashable, SelectionsOfAKind] = UsedOfLate(_KEPT_KINDS)
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
        """Return the up-to-date selections for pods that `filters` treat like `pod`."""
        kind = self._kind(pod, filters)
        kept = self._kinds.get(kind) if kind is not None else None
        if kept is None or kept.lower is not lower or kept.budgets_version != budgets_version:
            kept = SelectionsOfAKind(table, lower, budgets_version)
            if kind is not None:
                self._kinds.put(kind, kept)
        kept.follow()
        return kept

    def release_unused(self) -> None:
        """Let go of the selections for kinds of which no pod came since the last call."""
        self._kinds.release_unused()

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


@dataclass(eq=False)
class ColumnVictimSelector:
    """Selects what NodeVictimSelector would, on many rows in step: all lose their pods, then get one back at a time.

    Nominated pods stay counted all along: a filter that reads amounts and passes with them passes without them too.
    """

    pod: PodInfo
    rejections: Rejections
    lower: LowerPriorityPods
    budgets: Budgets
    scratch: ScratchTable
    kept: KeptSelections

    def __post_init__(self) -> None:
        nominated = self.rejections.nominated
        self._with_nominated: NodeTable = self.scratch.source if nominated is None else nominated.table
        # A pod that waits for room on a row is among those added to it, and must not be counted beside itself.
        self._own_row = None if nominated is None else nominated.row_of(self.pod)
        added = () if nominated is None or self._own_row is None else nominated.added_to(self._own_row)
        self._own = next((each for each in added if each.uid == self.pod.uid), None)
        self._state: CycleState = {}
        self._screened: set[int] = set()
        # Only these filters can speak against a pod that is given back.
        self._reads_usage = [plugin for plugin in self.rejections.filters if plugin.traits.reads is Reads.USAGE]
        self._kept = self.kept.of(
            self.pod,
            self._reads_usage,
            table=self.scratch.source,
            lower=self.lower,
            budgets_version=self.budgets.version,
        )

    def fit_without_victims(self, rows: Rows, reasons: Counter[str]) -> Fits:
        """Take all possible victims off `rows` of the scratch table and return which rows then fit, `(rows,) bool`.

        Why others do not is counted in `reasons`. The caller restores the columns when it is done with `select`.
        """
        self._screened.update(rows.tolist())
        fits = np.ones(len(rows), dtype=np.bool_)
        if not len(rows):
            return fits
        pod, scratch = self.pod, self.scratch
        self._remove_all(rows)
        for pre_filter in self.rejections.pre_filters:
            pre_filter.pre_filter(self._state, pod, scratch)
        for plugin in self.rejections.filters:
            asked = np.flatnonzero(fits)
            failing = asked[plugin.filter(self._state, pod, scratch, rows[asked]) != 0]
            if not len(failing):
                continue
            fits[failing] = False
            for reason in plugin.reasons(self._state, pod, scratch, rows[failing]):
                if held := int(np.count_nonzero(reason.holds)):
                    reasons[reason.text] += held
        return fits

    def select(self, rows: Sequence[int]) -> dict[int, VictimSelection]:
        """Return the victims on those of `rows` that fit without them, each of which may be asked about once."""
        rows = [row for row in rows if row in self._screened]
        selections = {row: kept for row in rows if (kept := self._kept.get(row, self._added(row))) is not None}
        new = [VictimSelection(row) for row in rows if row not in selections]
        if len(new) > FEW_ROWS:
            self._reprieve(new, np.array([each.row for each in new], dtype=np.intp))
        else:
            self._reprieve_one_by_one(new)
        for each in new:
            selections[each.row] = each
            self._kept.put(each, self._added(each.row))
        return selections

    def _added(self, row: int) -> Sequence[PodInfo]:
        nominated = self.rejections.nominated
        added = () if nominated is None else nominated.added_to(row)
        return tuple([each for each in added if each is not self._own]) if row == self._own_row else added

    def _remove_all(self, rows: Rows) -> None:
        scratch, nominated, lower = self.scratch, self._with_nominated, self.lower
        for name, column in nominated.requested.items():
            scratch.requested[name][rows] = column[rows] - lower.requested[name][rows]
        scratch.pod_count[rows] = nominated.pod_count[rows] - lower.counts[rows]
        if self._own is not None and self._own_row in self._screened:
            self._shift(np.array([self._own_row]), dict(self._amounts([self._own])), slice(None), -1)

    def _reprieve(self, selections: Sequence[VictimSelection], rows: Rows) -> None:
        """Give every row its pods back, those that would violate budgets first, each unless the pod then fails."""
        split = [self.budgets.split_by_violation(self.lower.victims[each.row]) for each in selections]
        orders = [[*violating, *others] if violating else others for violating, others in split]
        lengths = np.array([len(order) for order in orders])
        for step in range(int(lengths.max())):
            at = np.flatnonzero(lengths > step)
            pods = [orders[index][step] for index in at.tolist()]
            amounts = dict(self._amounts(pods))
            self._shift(rows[at], amounts, slice(None), 1)
            refused = np.flatnonzero(~self._fit(rows[at]))
            if not len(refused):
                continue
            self._shift(rows[at[refused]], amounts, refused, -1)
            for index, pod in zip(at[refused].tolist(), (pods[each] for each in refused.tolist()), strict=True):
                selections[index].victims.append(pod)
                selections[index].violations += step < len(split[index][0])
        for selection, (violating, _) in zip(selections, split, strict=True):
            if violating:
                selection.victims.sort(key=importance)

    def _reprieve_one_by_one(self, selections: Sequence[VictimSelection]) -> None:
        """As `_reprieve`, in plain integers: mostly one row has changed since the last pod of this kind."""
        state, pod, scratch = self._state, self.pod, self.scratch
        filters = [few_filter(plugin) for plugin in self._reads_usage] if selections else []
        for selection in selections:
            rows = (selection.row,)
            violating, others = self.budgets.split_by_violation(self.lower.victims[selection.row])
            for step, victim in enumerate([*violating, *others]):
                self._count(victim, selection.row, 1)
                if any(run(state, pod, scratch, rows)[0] for run in filters):
                    self._count(victim, selection.row, -1)
                    selection.victims.append(victim)
                    selection.violations += step < len(violating)
            if violating:
                selection.victims.sort(key=importance)

    def _count(self, victim: PodInfo, row: int, sign: int) -> None:
        requested = self.scratch.requested
        for name, amount in victim.placed.amounts.items():
            if name in requested:
                requested[name][row] += sign * amount
        self.scratch.pod_count[row] += sign

    def _fit(self, rows: Rows) -> Fits:
        fits = np.ones(len(rows), dtype=np.bool_)
        for plugin in self._reads_usage:
            fits &= plugin.filter(self._state, self.pod, self.scratch, rows) == 0
        return fits

    def _amounts(self, pods: Sequence[PodInfo]) -> Iterator[tuple[str, Column]]:
        """What each of `pods` takes, by resource, `(pods,) int64`."""
        taken = [pod.placed.amounts for pod in pods]
        for name in self.scratch.requested.keys() & set().union(*taken):
            yield name, np.array([amounts.get(name, 0) for amounts in taken], dtype=np.int64)

    def _shift(self, rows: Rows, amounts: dict[str, Column], which: "Rows | slice[None]", sign: int) -> None:
        scratch = self.scratch
        for name, column in amounts.items():
            scratch.requested[name][rows] += sign * column[which]
        scratch.pod_count[rows] += sign
