"""Trying out, without touching the cluster, whom evicting on which node would make a pod fit."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Final, NamedTuple

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import UsedOfLate
from bayplan.cache.scratch_table import ScratchTable
from bayplan.evaluation.nominated_round import SingleNodeFilters
from bayplan.framework.candidate import Candidate
from bayplan.framework.interface import FilterPlugin, Rejections
from bayplan.framework.status import Code, Reads
from bayplan.groups.pod_groups import PodGroups
from bayplan.plugins.preemption.on_columns import ColumnVictimSelector, KeptSelections
from bayplan.plugins.preemption.victims import (
    Budgets,
    LowerPriorityPods,
    VictimRule,
    VictimSelection,
    importance,
    unit_importance,
)

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
STRICT: Final = "node(s) where no victims can be found without violating a PodDisruptionBudget"
SEVERAL_BUDGETS: Final = "node(s) where a victim has more than one PodDisruptionBudget, which the Eviction API refuses"

_KEPT_PRIORITIES: Final = 8
_LEAST_BLOCK: Final = 16


@dataclass(slots=True)
class Findings:
    """The nodes that would fit after evictions, in the order found, and how many nodes would not for what reason.

    The reasons are complete only when there is no candidate.
    """

    candidates: list[Candidate] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    has_non_violating: bool = False
    """Whether some candidate violates no budget."""
    errors: list[str] = field(default_factory=list)
    """What went wrong on nodes where evictions led to something unexpected."""
    evictable_from: float = inf
    """When the first pod that is too young to be a victim no longer is, in seconds since the epoch, or inf."""


class _Unit(NamedTuple):
    """Pods that end together, and those of them that are on the node."""

    pods: tuple[PodInfo, ...]
    here: tuple[PodInfo, ...]


def _importance(unit: _Unit) -> tuple[int, bool, int, float]:
    first = unit.pods[0]
    return unit_importance(unit.pods, first.priority, is_grouped=first.pod.spec.scheduling_group is not None)


@dataclass(eq=False)
class NodeVictimSelector:
    """Removes all possible victims of a node on a scratch table, then spares as many as it can, pod by pod.

    It works with any filters (upstream: default_preemption.go SelectVictimsOnNode).
    """

    pod: PodInfo
    rejections: Rejections
    lower: LowerPriorityPods
    budgets: Budgets
    scratch: ScratchTable
    groups: PodGroups

    @cached_property
    def _filters(self) -> SingleNodeFilters:
        return SingleNodeFilters(self.pod, self.rejections.filters, self.rejections.pre_filters, self.scratch)

    def select(self, row: int) -> VictimSelection:
        """Return the victims on `row`, or why there are none; the scratch table is as before."""
        # They look at the table before anything is taken off it.
        filters = self._filters
        try:
            return self._select(filters, row)
        finally:
            self.scratch.restore(np.array([row], dtype=np.intp))

    def _select(self, filters: SingleNodeFilters, row: int) -> VictimSelection:
        scratch, seen = self.scratch, self.rejections.nominated
        nominated = [] if seen is None else seen.others(row, self.pod)
        units = self._units(row)
        for victim in (victim for unit in units for victim in unit.here):
            scratch.remove_pod(victim, row)
        selection = VictimSelection(row)
        failure = filters.first_failure_with_nominated(nominated, row, explain=True)
        if failure is not None:
            selection.reasons = failure.reasons
            if failure.code is Code.ERROR:
                selection.error = f'running "{failure.plugin}" filter plugin: {failure.message}'
            return selection
        violating = {
            id(pod) for pod in self.budgets.split_by_violation([pod for unit in units for pod in unit.pods])[0]
        }
        units.sort(key=lambda unit: not any(id(pod) in violating for pod in unit.pods))
        for unit in units:
            scratch.place(unit.here, row)
            if filters.first_failure_with_nominated(nominated, row) is not None:
                for victim in unit.here:
                    scratch.remove_pod(victim, row)
                selection.victims += unit.pods
                selection.violations += sum(id(pod) in violating for pod in unit.pods)
        selection.victims.sort(key=importance)
        return selection

    def _units(self, row: int) -> list[_Unit]:
        """The possible victims, most important first: pods, and groups that end as a whole, with their pods elsewhere.

        A group one of whose pods is spared is none (upstream: framework/preemption/types.go).
        """
        possible = self.lower.victims[row]
        wholes = [self.groups.evicted_as_one(pod) for pod in possible]
        if not any(wholes):
            return [_Unit((pod,), (pod,)) for pod in possible]
        units: dict[str, _Unit] = {}
        for pod, whole in zip(possible, wholes, strict=True):
            pods = (pod,) if whole is None else tuple(sorted(whole.values(), key=importance))
            if all(each.priority < self.pod.priority and self.lower.is_old_enough(each) for each in pods):
                here = tuple(each for each in pods if each.uid in self.scratch.source.pods[row])
                units[pods[0].uid] = _Unit(pods, here)
        return sorted(units.values(), key=_importance)


@dataclass(eq=False)
class DryRun:
    """Finds victims on the nodes whose rejection evictions could lift.

    Upstream: framework/preemption/preemption.go findCandidates and DryRunPreemption. With `strict` a node whose
    victims together are more than a disruption budget allows, or one of which has several budgets, is no candidate, and
    all candidates violate nothing.
    kube-scheduler counts a violation also for a victim that pods of its budget come before which are spared.
    """

    nodes: NodeTable
    budgets: Budgets
    rule: VictimRule
    groups: PodGroups
    strict: bool = False

    def __post_init__(self) -> None:
        self._scratch: ScratchTable | None = None
        self._lower: UsedOfLate[int, LowerPriorityPods] = UsedOfLate(_KEPT_PRIORITIES)
        self._kept = KeptSelections()

    def release_unused(self) -> None:
        """Let go of the pods that no dry run has looked at since the last call."""
        self._lower.release_unused()
        if not self._lower:
            self._scratch = None
        self._kept.release_unused()

    def run(self, pod: PodInfo, rejections: Rejections, rows: Rows, *, start: int, wanted: int) -> Findings:
        """Visit the nodes from the one at `start` on until `wanted` candidates are found, one without violations.

        `rows` are those that `rows_where_preemption_might_help` found.
        """
        findings = Findings()
        findings.reasons[NOT_HELPFUL] = len(rejections.rows) - len(rows)
        if not len(rows):
            return findings
        lower = self._lower_priority(pod.priority)
        findings.evictable_from = lower.evictable_from
        has_victims = lower.counts[rows] > 0
        findings.reasons[NO_VICTIMS] = int(np.count_nonzero(~has_victims))
        if not has_victims.any():
            return findings
        order = np.roll(rows, -start)
        order = order[lower.counts[order] > 0]
        scratch = self._scratch = self._scratch or ScratchTable(self.nodes)
        scratch.follow()
        columns = ColumnVictimSelector(pod, rejections, lower, self.budgets, scratch, self._kept)
        one_node = NodeVictimSelector(pod, rejections, lower, self.budgets, scratch, self.groups)
        on_columns = _can_be_on_columns(rejections, self.nodes, order)
        if names := self.groups.nodes_of_those_evicted_as_one():
            on_columns &= ~np.isin(order, [row for name in names if (row := self.nodes.row(name)) is not None])
        screened = order[on_columns]
        try:
            fits = ~on_columns
            fits[on_columns] = columns.fit_without_victims(screened, findings.reasons)
            self._collect(findings, columns, one_node, order[fits], wanted)
        finally:
            scratch.restore_columns(screened)
        return findings

    def _collect(
        self, findings: Findings, columns: ColumnVictimSelector, one_node: NodeVictimSelector, order: Rows, wanted: int
    ) -> None:
        """Select victims on the rows in order until there are enough candidates; a block of rows at a time.

        Each block is as large as all before it together, so that few are made where every node violates a budget.
        """
        at = 0
        while at < len(order):
            block = order[at : at + max(wanted - len(findings.candidates), _LEAST_BLOCK, at)].tolist()
            at += len(block)
            selected = columns.select(block)
            for row in block:
                self._take(findings, selected.get(row) or one_node.select(row))
                if findings.has_non_violating and len(findings.candidates) >= wanted:
                    return

    def _take(self, findings: Findings, selection: VictimSelection) -> None:
        violations = selection.violations
        if self.strict and violations:
            violating = self.budgets.split_by_violation(selection.victims)[0]
            violations = len(violating)
        if self.strict and violations:
            findings.reasons[SEVERAL_BUDGETS if any(map(self.budgets.is_refused, violating)) else STRICT] += 1
        elif selection.victims:
            # Objects may have been replaced since, with nothing that matters here changed but, say, a deletion begun.
            now = self.nodes.pods[selection.row]
            victims = tuple([now.get(victim.uid, victim) for victim in selection.victims])
            candidate = selection.candidate
            if candidate is None or candidate.victims != victims or candidate.pdb_violations != violations:
                candidate = selection.candidate = Candidate(self.nodes.names[selection.row], victims, violations)
            findings.candidates.append(candidate)
            findings.has_non_violating |= not violations
        elif selection.reasons is None:
            name = self.nodes.names[selection.row]
            findings.errors.append(f'expected at least one victim pod on node "{name}"')
        elif selection.error:
            findings.errors.append(selection.error)
        else:
            findings.reasons.update(selection.reasons)

    def _lower_priority(self, priority: int) -> LowerPriorityPods:
        lower = self._lower.get(priority)
        if lower is None:
            lower = self._lower.put(priority, LowerPriorityPods(self.nodes, priority, self.rule))
        lower.follow()
        return lower


def _can_be_on_columns(
    rejections: Rejections, nodes: NodeTable, rows: Rows
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which rows can be tried on columns alone: no filter reads pods, and the row's amounts are sums."""
    if not all(_reads_columns(plugin) for plugin in rejections.filters):
        return np.zeros(len(rows), dtype=np.bool_)
    seen = rejections.nominated
    no_sums = {*nodes.clamped_rows}
    if seen is not None:
        no_sums |= {*seen.table.clamped_rows}
    return ~np.isin(rows, list(no_sums)) if no_sums else np.ones(len(rows), dtype=np.bool_)


def rows_where_preemption_might_help(rejections: Rejections) -> Rows:
    """Return the rows whose rejection evictions could lift (upstream: nodesWherePreemptionMightHelp)."""
    rows: Rows = rejections.rows[rejections.codes == Code.UNSCHEDULABLE]
    return rows


def _reads_columns(plugin: FilterPlugin) -> bool:
    traits = plugin.traits
    return traits.reads in (Reads.NODE, Reads.NODES) or (traits.reads is Reads.USAGE and not traits.reads_pods)
