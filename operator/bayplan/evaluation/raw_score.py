"""The raw scores of one plugin over all nodes, and how they become 0..100."""

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Normalize, NormalizeScorePlugin, Reads, Scores
from bayplan.framework.runtime import WeightedScore


class RawScore:
    """One score plugin's raw column, and the maximum over feasible rows that its normalisation divides by.

    An evaluation keeps one for each plugin that scores its pods.
    """

    __slots__ = (
        "_score_row",
        "constant",
        "is_moving",
        "is_relative",
        "name",
        "peak",
        "plugin",
        "raw",
        "reads",
        "weight",
    )

    def __init__(self, entry: WeightedScore, capacity: int) -> None:
        self.plugin = entry.plugin
        self.weight = entry.weight
        self.name = entry.plugin.name
        self.reads = entry.plugin.reads
        normalize = entry.plugin.normalize
        self.is_relative = normalize in (Normalize.DEFAULT, Normalize.REVERSE)
        """Whether a score depends on the maximum of all."""
        self.is_moving = normalize is Normalize.CUSTOM or self.reads is Reads.CLUSTER
        """Whether every row's score may be another in every cycle."""
        self._score_row: Callable[[CycleState, PodInfo, NodeTable, int], int] | None = getattr(
            entry.plugin, "score_row", None
        )
        self.raw: Scores = np.zeros(capacity, dtype=np.int64)
        self.peak = 0
        # Most clusters have no PreferNoSchedule taint and most pods no preference: their raw column never leaves 0.
        self.constant: int | None = 0
        """The weighted score of every feasible node, as long as it is the same for all because no raw score left 0."""
        if normalize is Normalize.CUSTOM:
            self.constant = None
        elif normalize is Normalize.REVERSE:
            self.constant = self.weight * MAX_NODE_SCORE

    def update(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> None:
        """Ask the plugin about the rows whose answer may have changed."""
        values = self.plugin.score(state, pod, nodes, rows)
        self.raw[rows] = values
        if self.constant is not None and np.count_nonzero(values):
            self.constant = None

    def update_rows(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> None:
        """As `update`, for so few rows that each is better asked about by itself."""
        if self._score_row is None:
            self.update(state, pod, nodes, np.array(rows, dtype=np.intp))
            return
        for row in rows:
            self.raw[row] = value = self._score_row(state, pod, nodes, row)
            if value:
                self.constant = None

    def may_move(self, rows: Rows) -> bool:
        """Whether the maximum may be another now that `rows`, whose raw scores stayed, may be feasible or not."""
        return self.constant is None and bool((self.raw[rows] >= self.peak).any())

    def settle(self, feasible: NDArray[np.bool_]) -> bool:
        """Recompute the maximum over feasible rows; True if every normalised score moves with it."""
        if self.constant is not None or not self.is_relative:
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

    def weighted_row(self, row: int) -> int:
        """The weighted score of a row by the maximum last settled; not for plugins that normalise themselves."""
        score = self.raw.item(row)
        if self.is_relative:
            score = score * MAX_NODE_SCORE // self.peak if self.peak else 0
            if self.plugin.normalize is Normalize.REVERSE:
                score = MAX_NODE_SCORE - score
        return self.weight * score
