"""Masks and scores of one pod shape over all nodes, kept current as rows change instead of worked out anew."""

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.row_follower import RowFollower
from bayplan.evaluation.filtering import FEW_ROWS, Filtering
from bayplan.evaluation.nominated_filtering import NominatedFiltering
from bayplan.evaluation.pre_filtering import pre_reads
from bayplan.evaluation.raw_score import RawScore
from bayplan.framework.interface import CycleState, Reads, Scores
from bayplan.framework.nominated_table import NominatedTable, Nominations
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code

_NO_ROWS: Rows = np.empty(0, dtype=np.intp)

NOT_FEASIBLE = -1
"""The total of a row that may not be chosen."""


class Evaluation:
    """What one profile says of one pod shape: which rows are feasible, and the total score of each.

    Pods with the same `Framework.signature` that see the same nominations (`seen`) share an evaluation. `refresh`
    brings the filters up to date, `totals` the scores; both redo only rows that changed, unless a plugin depends on
    more than its own row.
    """

    def __init__(
        self,
        framework: Framework,
        nodes: NodeTable,
        nominations: Nominations | None = None,
        seen: NominatedTable | None = None,
    ) -> None:
        self._framework = framework
        self._nodes = nodes
        self._state: CycleState = {}
        self._asked_again = [plugin for plugin in framework.pre_scores if pre_reads(plugin) is Reads.CLUSTER]
        self._shows_feasible = any(getattr(plugin, "reads_feasible", True) for plugin in self._asked_again)
        self.filtering = (
            Filtering(framework, nodes, self._state)
            if nominations is None or seen is None
            else NominatedFiltering(framework, nodes, self._state, nominations, seen)
        )
        self._follower = RowFollower(nodes)
        self._skipped: set[str] = set()
        self._active: list[RawScore] = []
        self._kept: list[RawScore] = []
        self._moving: list[RawScore] = []
        self._relative: list[RawScore] = []
        self._sums: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._totals: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    @property
    def state(self) -> CycleState:
        """What plugins wrote in PreFilter, Filter and PreScore; the pods that share the evaluation share it."""
        return self._state

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows passed every filter, `(capacity,) bool`."""
        return self.filtering.feasible

    def refresh(self, pod: PodInfo) -> None:
        """Bring the feasible set up to date with the node table."""
        self.filtering.refresh(pod)

    def totals(self, pod: PodInfo) -> NDArray[np.int64]:
        """The weighted sum of normalised scores, or NOT_FEASIBLE, `(capacity,) int64`; call after `refresh`."""
        change = self._follower.follow_to(self.filtering.follower)
        everything = change.everything
        if everything or self._asked_again:
            everything |= self._pre_score(pod, anew=everything)
        spread = self.filtering.take_spread() or everything
        if everything:
            self._start_over()
            rows = node_rows = self._nodes.rows()
        elif len(change.usage) <= FEW_ROWS and not (spread or self._moving or len(change.objects)):
            return self._totals_after(pod, change.usage)
        else:
            exists = self._nodes.exists
            rows, node_rows = change.usage[exists[change.usage]], change.objects[exists[change.objects]]
        nodes_changed = everything or len(change.objects) > 0
        if self._update(pod, rows, node_rows, nodes_changed) | self._settle(change.usage, anew=spread or nodes_changed):
            spread, rows = True, self._nodes.rows()
        if len(rows):
            self._sums[rows] = self._sum(pod, rows)
        if self._moving:
            self._add_moving(pod)
        elif spread:
            self._totals = np.where(self.feasible, self._sums, NOT_FEASIBLE)
        elif len(changed := change.usage):
            self._totals[changed] = np.where(self.feasible[changed], self._sums[changed], NOT_FEASIBLE)
        return self._totals

    def _totals_after(self, pod: PodInfo, changed: Rows) -> NDArray[np.int64]:
        """As `totals` when on a few rows pods changed and nothing else: what is left to do after most cycles."""
        feasible = self.feasible
        existing = [row for row in changed.tolist() if self._nodes.exists[row]]
        for entry in self._kept:
            if entry.reads is Reads.USAGE:
                entry.update_rows(self._state, pod, self._nodes, existing)
        if self._settle(changed, anew=False):
            rows = self._nodes.rows()
            self._sums[rows] = self._sum(pod, rows)
            self._totals = np.where(feasible, self._sums, NOT_FEASIBLE)
            return self._totals
        for row in changed.tolist():
            self._sums[row] = total = self._sum_of_row(row)
            self._totals[row] = total if feasible[row] else NOT_FEASIBLE
        return self._totals

    def _update(self, pod: PodInfo, rows: Rows, node_rows: Rows, nodes_changed: bool) -> bool:
        """Have plugins look again at the rows whose raw score may be another; True if that may be all rows."""
        everywhere = False
        for entry in self._active:
            if entry.reads is Reads.CLUSTER:
                continue
            asked = rows if entry.reads is Reads.USAGE else node_rows
            if entry.reads is Reads.NODES and nodes_changed:
                asked, everywhere = self._nodes.rows(), True
            if len(asked):
                entry.update(self._state, pod, self._nodes, asked)
        return everywhere

    def _settle(self, changed: Rows, *, anew: bool) -> bool:
        """Find the maxima that normalisations divide by; True if one moved, and with it the scores of all rows."""
        moved = False
        for entry in self._relative:
            if anew or entry.reads is Reads.USAGE or entry.may_move(changed):
                moved |= entry.settle(self.feasible)
        return moved

    def _add_moving(self, pod: PodInfo) -> None:
        """Complete the totals with scores of which every row's may be another in every cycle."""
        feasible = self.feasible
        for entry in self._moving:
            if entry.reads is Reads.CLUSTER:
                entry.update(self._state, pod, self._nodes, self._nodes.rows())
                entry.settle(feasible)
        rows = np.flatnonzero(feasible)
        total = self._sums[rows]
        for entry in self._moving:
            total += entry.weight * entry.normalised(self._state, pod, self._nodes, rows, entry.peak)
        self._totals.fill(NOT_FEASIBLE)
        self._totals[rows] = total

    def scores(self, pod: PodInfo, rows: Rows) -> dict[str, Scores]:
        """Each plugin's normalised, weighted scores if exactly `rows` were the feasible nodes, `(rows,) int64` each.

        For a sampled search, where normalisation sees only the sample, and for explanations.
        """
        self.totals(pod)
        result: dict[str, Scores] = {}
        for entry in self._active:
            peak = int(entry.raw[rows].max(initial=0))
            result[entry.name] = entry.weight * entry.normalised(self._state, pod, self._nodes, rows, peak)
        return result

    def _pre_score(self, pod: PodInfo, *, anew: bool) -> bool:
        """Ask the PreScore plugins, unless `anew` only those that read the cluster; True if other scores count now."""
        asked = self._framework.pre_scores if anew else self._asked_again
        feasible = np.flatnonzero(self.feasible) if anew or self._shows_feasible else _NO_ROWS
        changed = False
        for plugin in asked:
            skips = plugin.pre_score(self._state, pod, self._nodes, feasible).code is Code.SKIP
            if skips != (plugin.name in self._skipped):
                changed = True
                self._skipped ^= {plugin.name}
        return changed

    def _start_over(self) -> None:
        capacity = self._nodes.capacity
        self._active = [
            RawScore(entry, capacity) for entry in self._framework.scores if entry.plugin.name not in self._skipped
        ]
        self._kept = [entry for entry in self._active if not entry.is_moving]
        self._moving = [entry for entry in self._active if entry.is_moving]
        self._relative = [entry for entry in self._kept if entry.is_relative]
        self._sums = np.zeros(capacity, dtype=np.int64)
        self._totals = np.full(capacity, NOT_FEASIBLE, dtype=np.int64)

    def _sum(self, pod: PodInfo, rows: Rows) -> Scores:
        varying: list[RawScore] = []
        same = 0
        for entry in self._kept:
            constant = entry.constant
            if constant is None:
                varying.append(entry)
            else:
                same += constant
        total = np.full(len(rows), same, dtype=np.int64)
        for entry in varying:
            scores = entry.normalised(self._state, pod, self._nodes, rows, entry.peak)
            total += scores if entry.weight == 1 else entry.weight * scores
        return total

    def _sum_of_row(self, row: int) -> int:
        """As `_sum`, of one row; what it says of a row without a node does not count."""
        total = 0
        for entry in self._kept:
            constant = entry.constant
            total += entry.weighted_row(row) if constant is None else constant
        return total
