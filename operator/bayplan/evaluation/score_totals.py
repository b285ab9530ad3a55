"""The score half of an evaluation: weighted sums of normalised scores, added up again where one may have moved."""

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import RowChange, Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.few_rows import FEW_ROWS, FewRowsScores
from bayplan.evaluation.raw_score import NOT_FEASIBLE, RawScore
from bayplan.framework.interface import CycleState, Scores
from bayplan.framework.plugin_calls import SUCCESS_LABEL
from bayplan.framework.runtime import Framework
from bayplan.framework.status import SCORES_ZERO, Code, Reads
from bayplan.metrics.instruments import Count

_NO_ROWS: Rows = np.empty(0, dtype=np.intp)


class ScoreTotals:
    """Keeps each row's total; sums of steady scores are kept apart from volatile scores, others in every cycle."""

    def __init__(self, framework: Framework, nodes: NodeTable, state: CycleState) -> None:
        self._framework = framework
        self._nodes = nodes
        self._state = state
        self._every_cycle = [plugin for plugin in framework.pre_scores if plugin.traits.runs_pre_every_cycle]
        self._reads_feasible = any(plugin.traits.reads_feasible for plugin in self._every_cycle)
        self._skipped: set[str] = set()
        self._zero: set[str] = set()
        """Those of the skipped that are shown as scored."""
        self._active: list[RawScore] = []
        self._steady: list[RawScore] = []
        self._volatile: list[RawScore] = []
        self._relative: list[RawScore] = []
        self.attempts = Count()
        """How many attempts ran these plugins; those that skipped are not counted."""
        self._few_rows = FewRowsScores((), framework.calls)
        self._sums: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._totals: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return self._sums.nbytes + self._totals.nbytes + sum([entry.nbytes for entry in self._active])

    def refresh(
        self, pod: PodInfo, change: RowChange, feasible: NDArray[np.bool_], *, anywhere: bool
    ) -> NDArray[np.int64]:
        """Each row's total, or NOT_FEASIBLE, `(capacity,) int64`.

        `change` is what changed in the node table since the last call, and `anywhere` says that rows it does not name
        may have become feasible or not.
        """
        everything = change.everything
        if everything or self._every_cycle:
            started = perf_counter()
            everything |= self._pre_score(pod, feasible, anew=everything)
            if self._framework.calls.observed:
                self._framework.calls.report_within("PreScore", SUCCESS_LABEL, started)
        anywhere |= everything
        if everything:
            self._start_over()
            rows = node_rows = self._nodes.rows()
        elif len(change.usage) <= FEW_ROWS and not (anywhere or self._volatile or len(change.objects)):
            return self._refresh_few(pod, change.usage, feasible)
        else:
            exists = self._nodes.exists
            rows, node_rows = change.usage[exists[change.usage]], change.objects[exists[change.objects]]
        nodes_changed = everything or len(change.objects) > 0
        if self._score(pod, rows, node_rows, nodes_changed=nodes_changed) | self._settle(
            change.usage, feasible, anew=anywhere or nodes_changed
        ):
            anywhere, rows = True, self._nodes.rows()
        if len(rows):
            self._sums[rows] = self._sum(pod, rows)
        if self._volatile:
            self._add_volatile(pod, feasible)
        elif anywhere:
            self._totals = np.where(feasible, self._sums, NOT_FEASIBLE)
        elif len(changed := change.usage):
            self._totals[changed] = np.where(feasible[changed], self._sums[changed], NOT_FEASIBLE)
        return self._totals

    def each(self, pod: PodInfo, rows: Rows) -> dict[str, Scores]:
        """Each plugin's normalised, weighted scores if exactly `rows` were feasible, `(rows,) int64`."""
        result: dict[str, Scores] = {name: np.zeros(len(rows), dtype=np.int64) for name in self._shown_as_zero()}
        for entry in self._active:
            peak = int(entry.raw[rows].max(initial=0))
            result[entry.name] = entry.weight * entry.normalised(self._state, pod, self._nodes, rows, peak)
        return result

    def at(self, pod: PodInfo, row: int, rows: Rows) -> dict[str, int]:
        """What `each` gives one of `rows`, without looking at the others where their scores have no part in it."""
        given = {each.name: each.weighted_at(self._state, pod, self._nodes, row, rows) for each in self._active}
        return dict.fromkeys(self._shown_as_zero(), 0) | given

    def _shown_as_zero(self) -> list[str]:
        return [each.plugin.name for each in self._framework.scores if each.plugin.name in self._zero]

    def _refresh_few(self, pod: PodInfo, changed: Rows, feasible: NDArray[np.bool_]) -> NDArray[np.int64]:
        """As `refresh` when on a few rows pods changed and nothing else: what is left to do after most cycles."""
        if not len(changed):
            return self._totals
        rows = changed.tolist()
        self._few_rows.update(self._state, pod, self._nodes, rows)
        if self._settle(changed, feasible, anew=False):
            existing = self._nodes.rows()
            self._sums[existing] = self._sum(pod, existing)
            self._totals = np.where(feasible, self._sums, NOT_FEASIBLE)
        else:
            self._few_rows.total(rows, feasible=feasible, sums=self._sums, totals=self._totals)
        return self._totals

    def _pre_score(self, pod: PodInfo, feasible: NDArray[np.bool_], *, anew: bool) -> bool:
        """Run the PreScore plugins, unless `anew` only those that read the cluster; True if other scores count now."""
        calls = self._framework.calls
        plugins = self._framework.pre_scores if anew else self._every_cycle
        rows = np.flatnonzero(feasible) if anew or self._reads_feasible else _NO_ROWS
        changed = False
        for plugin in calls.each(plugins):
            status = plugin.pre_score(self._state, pod, self._nodes, rows)
            skips = status.code is Code.SKIP
            if (status is SCORES_ZERO) != (plugin.name in self._zero):
                self._zero ^= {plugin.name}
            if skips != (plugin.name in self._skipped):
                changed = True
                self._skipped ^= {plugin.name}
        if anew or changed:
            asked = (plugin.name for plugin in self._framework.pre_scores if plugin.name not in self._skipped)
            self.attempts = calls.count(asked, "PreScore")
        return changed

    def _start_over(self) -> None:
        capacity, calls = self._nodes.capacity, self._framework.calls
        plugins = [each.plugin for each in self._framework.scores]
        found_nothing = {each.name for each in plugins if each.traits.scores_what_it_found} - self._state.keys()
        self._zero |= found_nothing
        skipped = self._skipped | found_nothing
        self._active = [
            RawScore(entry, capacity, calls) for entry in self._framework.scores if entry.plugin.name not in skipped
        ]
        self._steady = [entry for entry in self._active if not entry.is_volatile]
        self._volatile = [entry for entry in self._active if entry.is_volatile]
        self._relative = [entry for entry in self._steady if entry.is_relative]
        self._few_rows = FewRowsScores(self._steady, calls)
        self._sums = np.zeros(capacity, dtype=np.int64)
        self._totals = np.full(capacity, NOT_FEASIBLE, dtype=np.int64)

    def _score(self, pod: PodInfo, rows: Rows, node_rows: Rows, *, nodes_changed: bool) -> bool:
        """Run plugins on the rows whose raw score may be another; True if that may be all rows."""
        everywhere = False
        for entry in self._active:
            if entry.reads is Reads.CLUSTER:
                continue
            to_score = rows if entry.reads is Reads.USAGE else node_rows
            if entry.reads is Reads.NODES and nodes_changed:
                to_score, everywhere = self._nodes.rows(), True
            if len(to_score):
                entry.update(self._state, pod, self._nodes, to_score)
        return everywhere

    def _settle(self, changed: Rows, feasible: NDArray[np.bool_], *, anew: bool) -> bool:
        """Find the maxima that normalisations divide by; True if one is another, and so are the scores of all rows."""
        has_changed = False
        for entry in self._relative:
            if entry.constant is None and (anew or entry.reads is Reads.USAGE or entry.may_have_other_peak(changed)):
                has_changed |= entry.settle(feasible)
        return has_changed

    def _sum(self, pod: PodInfo, rows: Rows) -> Scores:
        """The weighted sum of the normalised steady scores, `(rows,) int64`."""
        varying = [entry for entry in self._steady if entry.constant is None]
        total = np.full(len(rows), sum([entry.constant or 0 for entry in self._steady]), dtype=np.int64)
        for entry in varying:
            scores = entry.normalised(self._state, pod, self._nodes, rows, entry.peak)
            total += scores if entry.weight == 1 else entry.weight * scores
        return total

    def _add_volatile(self, pod: PodInfo, feasible: NDArray[np.bool_]) -> None:
        """Complete the totals with scores of which every row's may be another in every cycle."""
        for entry in self._volatile:
            if entry.reads is Reads.CLUSTER:
                entry.update(self._state, pod, self._nodes, self._nodes.rows())
                entry.settle(feasible)
        rows = np.flatnonzero(feasible)
        total = self._sums[rows]
        for entry in self._volatile:
            total += entry.weight * entry.normalised(self._state, pod, self._nodes, rows, entry.peak)
        self._totals.fill(NOT_FEASIBLE)
        self._totals[rows] = total
