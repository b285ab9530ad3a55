"""Masks and scores of one pod shape over all nodes, kept current as rows change instead of worked out anew."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.row_follower import RowFollower
from bayplan.framework.filtering import Filtering, pre_reads
from bayplan.framework.interface import (
    MAX_NODE_SCORE,
    CycleState,
    Normalize,
    NormalizeScorePlugin,
    Reads,
    Scores,
)
from bayplan.framework.nominated_filtering import NominatedFiltering
from bayplan.framework.nominated_table import NominatedTable, Nominations
from bayplan.framework.runtime import Framework, WeightedScore
from bayplan.framework.status import Code

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
        self._asks_every_cycle = any(pre_reads(plugin) is Reads.CLUSTER for plugin in framework.pre_scores)
        self.filtering = (
            Filtering(framework, nodes, self._state)
            if nominations is None or seen is None
            else NominatedFiltering(framework, nodes, self._state, nominations, seen)
        )
        self._follower = RowFollower(nodes)
        self._skipped: set[str] = set()
        self._active: list[_RawScore] = []
        self._totals: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows passed every filter, `(capacity,) bool`."""
        return self.filtering.feasible

    def refresh(self, pod: PodInfo) -> None:
        """Bring the feasible set up to date with the node table."""
        self.filtering.refresh(pod)

    def totals(self, pod: PodInfo) -> NDArray[np.int64]:
        """The weighted sum of normalised scores, or NOT_FEASIBLE, `(capacity,) int64`; call after `refresh`."""
        change = self._follower.follow()
        everything = change.everything
        if everything or self._asks_every_cycle:
            everything |= self._pre_score(pod, anew=everything)
        if everything:
            self._start_over()
            rows = node_rows = self._nodes.rows()
        else:
            exists = self._nodes.exists
            rows, node_rows = change.usage[exists[change.usage]], change.objects[exists[change.objects]]
            self._totals[change.usage] = NOT_FEASIBLE
        everything |= self.filtering.take_spread()
        nodes_changed = everything or len(change.objects) > 0
        for entry in self._active:
            reads = entry.plugin.reads
            if reads is Reads.CLUSTER or (reads is Reads.NODES and nodes_changed):
                entry.update(self._state, pod, self._nodes, self._nodes.rows())
                everything = True
            elif len(asked := rows if reads is Reads.USAGE else node_rows):
                entry.update(self._state, pod, self._nodes, asked)
        feasible = self.feasible
        for entry in self._active:
            everything |= entry.settle(feasible)
        if everything:
            self._totals.fill(NOT_FEASIBLE)
            rows = np.flatnonzero(feasible)
        elif len(rows):
            rows = rows[feasible[rows]]
        if len(rows):
            self._totals[rows] = self._sum(pod, rows)
        return self._totals

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
        before, self._skipped = self._skipped, set()
        feasible = np.flatnonzero(self.feasible)
        for plugin in self._framework.pre_scores:
            if not anew and pre_reads(plugin) is not Reads.CLUSTER:
                if plugin.name in before:
                    self._skipped.add(plugin.name)
            elif plugin.pre_score(self._state, pod, self._nodes, feasible).code is Code.SKIP:
                self._skipped.add(plugin.name)
        return before != self._skipped

    def _start_over(self) -> None:
        self._active = [
            _RawScore(entry, self._nodes.capacity)
            for entry in self._framework.scores
            if entry.plugin.name not in self._skipped
        ]
        self._totals = np.full(self._nodes.capacity, NOT_FEASIBLE, dtype=np.int64)

    def _sum(self, pod: PodInfo, rows: Rows) -> Scores:
        varying = [entry for entry in self._active if entry.constant is None]
        total = np.full(len(rows), sum(entry.constant or 0 for entry in self._active), dtype=np.int64)
        for entry in varying:
            total += entry.weight * entry.normalised(self._state, pod, self._nodes, rows, entry.peak)
        return total


class _RawScore:
    """One score plugin's raw column, and the maximum over feasible rows that its normalisation divides by."""

    __slots__ = ("_always_zero", "name", "peak", "plugin", "raw", "weight")

    def __init__(self, entry: WeightedScore, capacity: int) -> None:
        self.plugin = entry.plugin
        self.weight = entry.weight
        self.name = entry.plugin.name
        self.raw: Scores = np.zeros(capacity, dtype=np.int64)
        self.peak = 0
        # Most clusters have no PreferNoSchedule taint and most pods no preference: their raw column never leaves 0.
        self._always_zero = True

    @property
    def constant(self) -> int | None:
        """The weighted score of every feasible node, if it is the same for all because no raw score left 0."""
        if not self._always_zero or self.plugin.normalize is Normalize.CUSTOM:
            return None
        return self.weight * MAX_NODE_SCORE if self.plugin.normalize is Normalize.REVERSE else 0

    def update(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> None:
        """Ask the plugin about the rows whose answer may have changed."""
        values = self.plugin.score(state, pod, nodes, rows)
        self.raw[rows] = values
        if self._always_zero and np.count_nonzero(values):
            self._always_zero = False

    def settle(self, feasible: NDArray[np.bool_]) -> bool:
        """Recompute the maximum over feasible rows; True if every normalised score moves with it."""
        normalize = self.plugin.normalize
        if normalize is Normalize.CUSTOM:
            return True
        if normalize is Normalize.NONE or self._always_zero:
            return False
        peak = int(np.max(self.raw, where=feasible, initial=0))
        moved, self.peak = peak != self.peak, peak
        return moved

    def normalised(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows, peak: int) -> Scores:
        """The 0..100 scores of `rows` (upstream: plugins/helper/normalize_score.go)."""
        normalize, raw = self.plugin.normalize, self.raw[rows]
        if normalize is Normalize.NONE:
            return raw
        if normalize is Normalize.CUSTOM:
            # Not asserted: a protocol takes as long to check as a plugin to answer.
            custom = cast("NormalizeScorePlugin", self.plugin)
            return custom.normalize_score(state, pod, nodes, rows, raw)
        if peak == 0:
            return np.full(len(rows), MAX_NODE_SCORE, dtype=np.int64) if normalize is Normalize.REVERSE else raw
        scaled = raw * MAX_NODE_SCORE // peak
        return MAX_NODE_SCORE - scaled if normalize is Normalize.REVERSE else scaled
