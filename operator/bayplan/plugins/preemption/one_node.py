"""Victims on one node, found pod by pod with any filters (upstream: default_preemption.go SelectVictimsOnNode)."""

import numpy as np

from bayplan.cache.pod_info import PodInfo
from bayplan.cache.shadow_table import ShadowTable
from bayplan.evaluation.single_node_filters import SingleNodeFilters
from bayplan.framework.interface import Rejections
from bayplan.plugins.preemption.budgets import Budgets
from bayplan.plugins.preemption.lower_priority import LowerPriorityPods
from bayplan.plugins.preemption.victims import VictimSelection, importance, no_victim_needed


class NodeVictimSelector:
    """Removes all possible victims of a node on a scratch table, then spares as many as it can."""

    def __init__(
        self, pod: PodInfo, rejections: Rejections, lower: LowerPriorityPods, budgets: Budgets, scratch: ShadowTable
    ) -> None:
        self._pod = pod
        self._rejections = rejections
        self._lower = lower
        self._budgets = budgets
        self._scratch = scratch
        self._filters: SingleNodeFilters | None = None

    def select(self, row: int) -> VictimSelection:
        """Return the victims on `row`, or why there are none; the scratch table is as before."""
        if self._filters is None:
            rejections = self._rejections
            self._filters = SingleNodeFilters(self._pod, rejections.filters, rejections.pre_filters, self._scratch)
        try:
            return self._select(self._filters, row)
        finally:
            self._scratch.restore(np.array([row], dtype=np.intp))

    def _select(self, filters: SingleNodeFilters, row: int) -> VictimSelection:
        scratch, seen = self._scratch, self._rejections.nominated
        nominated = [] if seen is None else seen.others(row, self._pod)
        possible = self._lower.victims[row]
        for victim in possible:
            scratch.remove_pod(victim, row)
        selection = VictimSelection(row)
        failure = filters.first_failure_with_nominated(nominated, row, explain=True)
        if failure is not None:
            selection.reasons = list(failure.reasons)
            return selection
        violating, others = self._budgets.split_by_violation(possible)
        for index, victim in enumerate([*violating, *others]):
            scratch.place([victim], row)
            if filters.first_failure_with_nominated(nominated, row) is not None:
                scratch.remove_pod(victim, row)
                selection.victims.append(victim)
                selection.violations += index < len(violating)
        selection.victims.sort(key=importance)
        if not selection.victims:
            selection.error = no_victim_needed(scratch.names[row])
        return selection
