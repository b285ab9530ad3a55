"""Filters and scores of a few rows in plain integers: mostly one row changed, and for one row numpy is slower.

Everything here says what `FilterRound` and `ScoreTotals` say of many rows. Figures: docs/adr/0011.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.raw_score import NOT_FEASIBLE, RawScore
from bayplan.framework.interface import (
    CycleState,
    FewRowsFilterPlugin,
    FewRowsScorePlugin,
    FilterPlugin,
    ScorePlugin,
)
from bayplan.framework.plugin_calls import PluginCalls, label_of_codes, label_of_scores
from bayplan.framework.status import Code, Reads

FEW_ROWS: Final = 8
"""Up to so many rows whose pods changed are looked at by themselves, if no node object did."""

# In Python 3.11 naming an enum's member takes longer than all the rest of a comparison.
_SUCCESS: Final = int(Code.SUCCESS)
_ERROR: Final = int(Code.ERROR)

_RunOnFew = Callable[[CycleState, PodInfo, NodeTable, Sequence[int]], list[int]]


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
    """The scores whose weighted sums are kept."""

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
