"""The scores that one plugin gives all rows, and how they are normalised."""

from typing import Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, NormalizeScorePlugin, Scores
from bayplan.framework.plugin_calls import PluginCalls
from bayplan.framework.runtime import WeightedScore
from bayplan.framework.status import Normalize, Reads

NOT_FEASIBLE: Final = -1
"""The total of a row that may not be chosen."""

_Amount = TypeVar("_Amount", int, Scores)


class RawScore:
    """One score plugin's raw column, and the maximum over feasible rows that its normalisation divides by.

    An evaluation keeps one for each plugin that scores its pods.
    """

    def __init__(self, entry: WeightedScore, capacity: int, calls: PluginCalls) -> None:
        self._calls = calls
        self.runs = calls.count((entry.plugin.name,), "Score")
        """The rows that the plugin was run on."""
        self.plugin = entry.plugin
        self.weight = entry.weight
        self.name = entry.plugin.name
        self.reads = entry.plugin.traits.reads
        self._normalize = normalize = entry.plugin.traits.normalize
        self._is_reversed = normalize is Normalize.REVERSE
        self.is_relative = normalize in (Normalize.DEFAULT, Normalize.REVERSE)
        """Whether a score depends on the maximum of all."""
        self.is_volatile = normalize is Normalize.CUSTOM or self.reads is Reads.CLUSTER
        """Whether every row's score may be another in every cycle."""
        self.peak = 0
        # Most clusters have no PreferNoSchedule taint and most pods no preference: their raw column never leaves 0.
        self.constant: int | None = self.weight * MAX_NODE_SCORE if self._is_reversed else 0
        """The weighted score of every feasible node, as long as it is the same for all because no raw score left 0."""
        self.raw: Scores = np.broadcast_to(np.int64(0), capacity)
        """`(capacity,) int64`, without memory of its own while the score is constant."""
        if normalize is Normalize.CUSTOM:
            self.vary()

    @property
    def nbytes(self) -> int:
        """What the raw column takes."""
        return self.raw.nbytes if self.constant is None else 0

    def vary(self) -> None:
        """Allocate the column: some raw score is about to leave 0."""
        self.constant = None
        self.raw = np.zeros(len(self.raw), dtype=np.int64)

    def update(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> None:
        """Run the plugin on the rows whose score may have changed."""
        self.runs.value += len(rows)
        values = self._calls.of(self.plugin).score(state, pod, nodes, rows)
        if self.constant is not None:
            if not np.count_nonzero(values):
                return
            self.vary()
        self.raw[rows] = values

    def may_have_other_peak(self, rows: Rows) -> bool:
        """Whether the maximum may be another now that `rows`, whose raw scores stayed, may be feasible or not."""
        return bool((self.raw[rows] >= self.peak).any())

    def settle(self, feasible: NDArray[np.bool_]) -> bool:
        """Recompute the maximum over feasible rows; True if it is another, and every normalised score with it."""
        if self.constant is not None or not self.is_relative:
            return False
        before, self.peak = self.peak, int(np.max(self.raw, where=feasible, initial=0))
        return before != self.peak

    def normalised(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows, peak: int) -> Scores:
        """The 0..100 scores of `rows`, of which `peak` is the maximum."""
        raw = self.raw[rows]
        if self._normalize is not Normalize.CUSTOM:
            return self._scaled(raw, peak) if self.is_relative else raw
        # Not asserted: a protocol takes as long to check as a plugin to answer.
        custom = cast("NormalizeScorePlugin", self.plugin)
        return self._calls.of(custom).normalize_score(state, pod, nodes, rows, raw)

    def weighted_at(self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int, rows: Rows) -> int:
        """The weighted score of one of `rows` if exactly these were feasible."""
        if self.constant is not None:
            return self.constant
        if self._normalize is Normalize.CUSTOM:
            return self.weight * int(self.normalised(state, pod, nodes, rows, 0)[np.argmax(rows == row)])
        raw: int = self.raw.item(row)
        return self.weight * (self._scaled(raw, int(self.raw[rows].max(initial=0))) if self.is_relative else raw)

    def weighted_row(self, row: int) -> int:
        """The weighted score of a row by the maximum last settled; not for plugins that normalise themselves."""
        raw: int = self.raw.item(row)
        return self.weight * (self._scaled(raw, self.peak) if self.is_relative else raw)

    def _scaled(self, raw: _Amount, peak: int) -> _Amount:
        """Relative raw scores as 0..100 where their maximum is `peak` (upstream: plugins/helper/normalize_score.go)."""
        share = raw * MAX_NODE_SCORE // peak if peak else raw
        return MAX_NODE_SCORE - share if self._is_reversed else share
