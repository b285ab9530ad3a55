"""Trying out, without touching the cluster, whom evicting on which node would make a pod fit."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.cache.shadow_table import ShadowTable
from bayplan.framework.candidate import Candidate
from bayplan.framework.interface import FilterPlugin, Rejections
from bayplan.framework.status import Code
from bayplan.framework.traits import Reads
from bayplan.plugins.preemption.budgets import Budgets
from bayplan.plugins.preemption.importance import VictimRule
from bayplan.plugins.preemption.kept_plans import KeptPlans
from bayplan.plugins.preemption.lower_priority import LowerPriorityPods
from bayplan.plugins.preemption.on_columns import ColumnTrial
from bayplan.plugins.preemption.one_node import OneNodeTrial
from bayplan.plugins.preemption.plan import Plan

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
STRICT: Final = "node(s) where no victims can be found without violating a PodDisruptionBudget"

_KEPT_PRIORITIES: Final = 8
_LEAST_BLOCK: Final = 16


@dataclass(slots=True)
class Findings:
    """The nodes that would fit after evictions, in the order found, and how many nodes would not for what reason.

    The reasons are complete only when there is no candidate.
    """

    candidates: list[Candidate] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    spotless: bool = False
    """Whether some candidate violates no budget."""
    errors: list[str] = field(default_factory=list)
    """What went wrong on nodes where evictions led to something unexpected."""


class DryRun:
    """Finds victims on the nodes whose rejection evictions could lift.

    Upstream: framework/preemption/preemption.go findCandidates and DryRunPreemption. With `strict` a node whose
    victims together are more than a disruption budget allows is none; others violate nothing, whereas kube-scheduler
    counts a violation for a victim that other pods of its budget come before, evicted or not.
    """

    def __init__(self, nodes: NodeTable, budgets: Budgets, rule: VictimRule, *, strict: bool = False) -> None:
        self._nodes = nodes
        self._budgets = budgets
        self._rule = rule
        self._strict = strict
        self._scratch = ShadowTable(nodes)
        self._lower: RecentlyUsed[int, LowerPriorityPods] = RecentlyUsed(_KEPT_PRIORITIES)
        self._kept = KeptPlans()

    def run(self, pod: PodInfo, rejections: Rejections, *, start: int, wanted: int) -> Findings:
        """Visit the nodes from the one at `start` on until `wanted` candidates are found, one without violations."""
        findings = Findings()
        rows = potential_rows(rejections)
        findings.reasons[NOT_HELPFUL] = len(rejections.rows) - len(rows)
        if not len(rows):
            return findings
        lower = self._lower_priority(pod.priority)
        has_victims = lower.counts[rows] > 0
        findings.reasons[NO_VICTIMS] = int(np.count_nonzero(~has_victims))
        order = np.roll(rows, -start)
        order = order[lower.counts[order] > 0]
        self._scratch.follow()
        columns = ColumnTrial(pod, rejections, lower, self._budgets, self._scratch, kept=self._kept)
        one_node = OneNodeTrial(pod, rejections, lower, self._budgets, self._scratch)
        together = _can_be_columns(pod, rejections, self._nodes, order)
        screened = order[together]
        try:
            fits = columns.screen(screened, findings.reasons)
            alone = ~together
            together[together] = fits
            order = order[together | alone]
            self._collect(findings, _Trials(columns, one_node, set(screened.tolist())), order, wanted)
        finally:
            self._scratch.restore_columns(screened)
        return findings

    def ripe_at(self, priority: int) -> float:
        """When the first pod that was too young to be a victim no longer is, in seconds since the epoch, or inf."""
        lower = self._lower.get(priority)
        return inf if lower is None else lower.ripe_at

    def _collect(self, findings: Findings, trials: "_Trials", order: Rows, wanted: int) -> None:
        """Find victims on the rows in order until there are enough candidates; a block of rows at a time."""
        at = 0
        while at < len(order):
            block = order[at : at + max(wanted - len(findings.candidates), _LEAST_BLOCK)].tolist()
            at += len(block)
            for plan in trials.plans(block):
                self._take(findings, plan)
                if findings.spotless and len(findings.candidates) >= wanted:
                    return

    def _take(self, findings: Findings, plan: Plan) -> None:
        violations = plan.violations
        if self._strict and violations:
            violations = len(self._budgets.split(plan.victims)[0])
        if self._strict and violations:
            findings.reasons[STRICT] += 1
        elif plan.victims:
            # Objects may have been replaced since, with nothing that matters here changed but, say, a deletion begun.
            now = self._nodes.pods[plan.row]
            victims = tuple([now[victim.uid] for victim in plan.victims])
            candidate = plan.candidate
            if candidate is None or candidate.victims != victims or candidate.pdb_violations != violations:
                candidate = plan.candidate = Candidate(self._nodes.names[plan.row], victims, violations)
            findings.candidates.append(candidate)
            findings.spotless |= not violations
        elif plan.error:
            findings.errors.append(plan.error)
        else:
            findings.reasons.update(plan.reasons)

    def _lower_priority(self, priority: int) -> LowerPriorityPods:
        lower = self._lower.get(priority)
        if lower is None:
            lower = self._lower.put(priority, LowerPriorityPods(self._nodes, priority, self._rule))
        lower.follow()
        return lower


@dataclass(frozen=True, slots=True)
class _Trials:
    """The two ways to try a row; `screened` rows are tried on columns."""

    columns: ColumnTrial
    one_node: OneNodeTrial
    screened: Collection[int]

    def plans(self, rows: Sequence[int]) -> Iterator[Plan]:
        """What evictions would do on each row, in order; nodes that are tried alone are tried as they are asked for."""
        together = self.columns.plans([row for row in rows if row in self.screened])
        for row in rows:
            yield together[row] if row in together else self.one_node.plan(row)


def _can_be_columns(
    pod: PodInfo, rejections: Rejections, nodes: NodeTable, rows: Rows
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows can be tried on columns alone: no filter reads pods, and the row's amounts are sums."""
    if not all(_reads_columns(plugin) for plugin in rejections.filters):
        return np.zeros(len(rows), dtype=np.bool_)
    seen = rejections.nominated
    no_sums = {*nodes.clamped_rows()}
    if seen is not None:
        no_sums |= {*seen.table.clamped_rows()}
        # A pod that waits for room on this very node is in the table already and must not be counted twice.
        own_row = seen.row_of(pod)
        if own_row is not None:
            no_sums.add(own_row)
    return ~np.isin(rows, list(no_sums)) if no_sums else np.ones(len(rows), dtype=np.bool_)


def potential_rows(rejections: Rejections) -> Rows:
    """The rows whose rejection evictions could lift."""
    rows: Rows = rejections.rows[rejections.codes == Code.UNSCHEDULABLE]
    return rows


def _reads_columns(plugin: FilterPlugin) -> bool:
    traits = plugin.traits
    return traits.reads in (Reads.NODE, Reads.NODES) or (traits.reads is Reads.USAGE and not traits.reads_pods)
