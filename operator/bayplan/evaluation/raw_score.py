"""Raw scores of all rows, and filters and scores of a few rows in plain integers, for which numpy is slower."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import (
    MAX_NODE_SCORE,
    CycleState,
    FewRowsFilterPlugin,
    FewRowsScorePlugin,
    FilterPlugin,
    NormalizeScorePlugin,
    ScorePlugin,
    Scores,
)
from bayplan.framework.plugin_calls import PluginCalls, label_of_codes, label_of_scores
from bayplan.framework.runtime import WeightedScore
from bayplan.framework.status import Code, Normalize, Reads

_NORMALIZE: Final = "ScoreExtensionNormalize"

NOT_FEASIBLE: Final = -1
"""The total of a row that may not be chosen."""

FEW_ROWS: Final = 8
"""Up to so many rows whose pods changed are looked at by themselves, if no node object did."""

# In Python 3.11 naming an enum's member takes longer than all the rest of a comparison.
_SUCCESS: Final = int(Code.SUCCESS)
_ERROR: Final = int(Code.ERROR)
_RunOnFew = Callable[[CycleState, PodInfo, NodeTable, Sequence[int]], list[int]]


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
        self.is_relative = normalize in (Normalize.DEFAULT, Normalize.REVERSE)
        """Whether a score depends on the maximum of all."""
        self.is_moving = normalize is Normalize.CUSTOM or self.reads is Reads.CLUSTER
        """Whether every row's score may be another in every cycle."""
        self.peak = 0
        # Most clusters have no PreferNoSchedule taint and most pods no preference: their raw column never leaves 0.
        self.constant: int | None = self.weight * MAX_NODE_SCORE if normalize is Normalize.REVERSE else 0
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
        if self._calls.sampled:
            values = self._calls.run("Score", self.name, label_of_scores, self.plugin.score, state, pod, nodes, rows)
        else:
            values = self.plugin.score(state, pod, nodes, rows)
        if self.constant is not None:
            if not np.count_nonzero(values):
                return
            self.vary()
        self.raw[rows] = values

    def may_move(self, rows: Rows) -> bool:
        """Whether the maximum may be another now that `rows`, whose raw scores stayed, may be feasible or not."""
        return bool((self.raw[rows] >= self.peak).any())

    def settle(self, feasible: NDArray[np.bool_]) -> bool:
        """Recompute the maximum over feasible rows; True if every normalised score moves with it."""
        if self.constant is not None or not self.is_relative:
            return False
        peak = int(np.max(self.raw, where=feasible, initial=0))
        moved, self.peak = peak != self.peak, peak
        return moved

    def normalised(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows, peak: int) -> Scores:
        """The 0..100 scores of `rows` (upstream: plugins/helper/normalize_score.go)."""
        normalize, raw = self._normalize, self.raw[rows]
        if normalize is Normalize.NONE:
            return raw
        if normalize is Normalize.CUSTOM:
            # Not asserted: a protocol takes as long to check as a plugin to answer.
            custom = cast("NormalizeScorePlugin", self.plugin)
            if self._calls.sampled:
                return self._calls.run(
                    _NORMALIZE, self.name, label_of_scores, custom.normalize_score, state, pod, nodes, rows, raw
                )
            return custom.normalize_score(state, pod, nodes, rows, raw)
        if peak == 0:
            return np.full(len(rows), MAX_NODE_SCORE, dtype=np.int64) if normalize is Normalize.REVERSE else raw
        scaled = raw * MAX_NODE_SCORE // peak
        return MAX_NODE_SCORE - scaled if normalize is Normalize.REVERSE else scaled

    def weighted_at(self, state: CycleState, pod: PodInfo, nodes: NodeTable, row: int, rows: Rows) -> int:
        """The weighted score of one of `rows` if exactly these were feasible."""
        if self.constant is not None:
            return self.constant
        if self._normalize is Normalize.NONE:
            return self.weight * self.raw.item(row)
        peak = int(self.raw[rows].max(initial=0))
        if self._normalize is Normalize.CUSTOM:
            asked, at = rows, int(np.argmax(rows == row))
        else:
            asked, at = np.array([row], dtype=np.intp), 0
        return self.weight * int(self.normalised(state, pod, nodes, asked, peak)[at])

    def weighted_row(self, row: int) -> int:
        """The weighted score of a row by the maximum last settled; not for plugins that normalise themselves."""
        score = self.raw.item(row)
        if self.is_relative:
            score = score * MAX_NODE_SCORE // self.peak if self.peak else 0
            if self._normalize is Normalize.REVERSE:
                score = MAX_NODE_SCORE - score
        return self.weight * score


class FewRowsFilters:
    """The filters that read usage, by their number in a round."""

    def __init__(
        self,
        numbered: Sequence[tuple[int, FilterPlugin]],
        codes: NDArray[np.int8],
        allowed: NDArray[np.bool_] | None,
        feasible: NDArray[np.bool_],
        calls: PluginCalls,
    ) -> None:
        self._filters = [(index, _few_filter(plugin)) for index, plugin in numbered]
        self._names = [plugin.name for _, plugin in numbered]
        self._calls = calls
        self._runs = calls.count(self._names, "Filter")
        self._codes = codes
        self._allowed = allowed
        self._feasible = feasible

    def run(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> list[int]:
        """Bring the round's codes and feasible set up to date on these rows.

        Returns the rows for which a filter answered ERROR.
        """
        codes, allowed, feasible, exists = self._codes, self._allowed, self._feasible, nodes.exists
        existing = [row for row in rows if exists[row]]
        if len(existing) < len(rows):
            feasible[list(rows)] = False
        filters = self._filters
        if self._calls.observed:
            self._runs.value += len(existing)
            filters = self._measured() if self._calls.sampled else filters
        for index, few_filter in filters:
            for row, code in zip(existing, few_filter(state, pod, nodes, existing), strict=True):
                codes[index, row] = code
        erring: list[int] = []
        for row in existing:
            worst = max(codes[:, row].tolist(), default=_SUCCESS)
            if worst >= _ERROR:
                erring.append(row)
            feasible[row] = worst == _SUCCESS and (allowed is None or allowed[row])
        return erring

    def _measured(self) -> list[tuple[int, _RunOnFew]]:
        run = self._calls.run
        return [
            (index, partial(run, "Filter", name, label_of_codes, few_filter))
            for name, (index, few_filter) in zip(self._names, self._filters, strict=True)
        ]


class FewRowsScores:
    """Updates the sums and totals of a few changed rows without numpy."""

    def __init__(self, entries: Sequence[RawScore], calls: PluginCalls) -> None:
        self._entries = entries
        self._reading_usage = [(entry, _few_score(entry.plugin)) for entry in entries if entry.reads is Reads.USAGE]
        self._calls = calls
        self._runs = calls.count([entry.name for entry, _ in self._reading_usage], "Score")

    def update(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> None:
        """Run the scores that read usage on these rows."""
        existing = [row for row in rows if nodes.exists[row]]
        reading_usage = self._reading_usage
        if self._calls.observed:
            self._runs.value += len(existing)
            reading_usage = self._measured() if self._calls.sampled else reading_usage
        for entry, few_score in reading_usage:
            scores = few_score(state, pod, nodes, existing)
            if entry.constant is not None:
                if not any(scores):
                    continue
                entry.vary()
            for row, score in zip(existing, scores, strict=True):
                entry.raw[row] = score

    def _measured(self) -> list[tuple[RawScore, _RunOnFew]]:
        run = self._calls.run
        return [
            (entry, partial(run, "Score", entry.name, label_of_scores, few_score))
            for entry, few_score in self._reading_usage
        ]

    def total(
        self,
        rows: Sequence[int],
        *,
        feasible: NDArray[np.bool_],
        sums: NDArray[np.int64],
        totals: NDArray[np.int64],
    ) -> None:
        """Sum the normalised scores of these rows; what is summed of a row without a node does not count."""
        same = sum([entry.constant for entry in self._entries if entry.constant is not None])
        varying = [entry for entry in self._entries if entry.constant is None]
        for row in rows:
            total = same
            for entry in varying:
                total += entry.weighted_row(row)
            sums[row] = total
            totals[row] = total if feasible[row] else NOT_FEASIBLE


def _few_filter(plugin: FilterPlugin) -> _RunOnFew:
    """The plugin's `filter_few`, or its `filter` run on these rows alone."""
    if isinstance(plugin, FewRowsFilterPlugin):
        return plugin.filter_few
    return lambda state, pod, nodes, rows: plugin.filter(state, pod, nodes, np.array(rows, dtype=np.intp)).tolist()


def _few_score(plugin: ScorePlugin) -> _RunOnFew:
    """The plugin's `score_few`, or its `score` run on these rows alone."""
    if isinstance(plugin, FewRowsScorePlugin):
        return plugin.score_few
    return lambda state, pod, nodes, rows: plugin.score(state, pod, nodes, np.array(rows, dtype=np.intp)).tolist()
