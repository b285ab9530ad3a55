"""Filters and scores of a few rows in plain integers: after most cycles one row changed, and numpy takes longer for it.

Everything here says what `FilterRound` and `ScoreTotals` say of many rows. Figures: docs/adr/0011.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.raw_score import NOT_FEASIBLE, RawScore
from bayplan.framework.interface import (
    CycleState,
    FilterPlugin,
    RowFilterPlugin,
    RowScorePlugin,
    ScorePlugin,
)
from bayplan.framework.status import Code
from bayplan.framework.traits import Reads

FEW_ROWS: Final = 8
"""Up to so many rows whose pods changed are looked at by themselves, if no node object did."""

_OfRow = Callable[[CycleState, PodInfo, NodeTable, int], int]


class RowFilters:
    """The filters that read usage, by their number in a round."""

    def __init__(
        self,
        numbered: Sequence[tuple[int, FilterPlugin]],
        codes: NDArray[np.int8],
        allowed: NDArray[np.bool_] | None,
        feasible: NDArray[np.bool_],
    ) -> None:
        self._filters = [(index, _filter_row(plugin)) for index, plugin in numbered]
        self._codes = codes
        self._allowed = allowed
        self._feasible = feasible

    def run(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> list[int]:
        """Bring the round's codes and feasible set up to date on these rows; those some filter answered ERROR for."""
        codes, allowed, feasible = self._codes, self._allowed, self._feasible
        erring: list[int] = []
        for row in rows:
            feasible[row] = False
            if not nodes.exists[row]:
                continue
            for index, filter_row in self._filters:
                codes[index, row] = filter_row(state, pod, nodes, row)
            worst = max(codes[:, row].tolist(), default=Code.SUCCESS)
            if worst >= Code.ERROR:
                erring.append(row)
            feasible[row] = worst == Code.SUCCESS and (allowed is None or allowed[row])
        return erring


class RowScores:
    """The scores whose weighted sums are kept."""

    def __init__(self, entries: Sequence[RawScore]) -> None:
        self._entries = entries
        self._reading_usage = [(entry, _score_row(entry.plugin)) for entry in entries if entry.reads is Reads.USAGE]

    def update(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> None:
        """Run the scores that read usage on these rows."""
        existing = [row for row in rows if nodes.exists[row]]
        for entry, score_row in self._reading_usage:
            for row in existing:
                value = score_row(state, pod, nodes, row)
                if entry.constant is not None:
                    if not value:
                        continue
                    entry.vary()
                entry.raw[row] = value

    def total(
        self,
        rows: Sequence[int],
        *,
        feasible: NDArray[np.bool_],
        sums: NDArray[np.int64],
        totals: NDArray[np.int64],
    ) -> None:
        """Sum the normalised scores of these rows; what is summed of a row without a node does not count."""
        for row in rows:
            total = 0
            for entry in self._entries:
                constant = entry.constant
                total += entry.weighted_row(row) if constant is None else constant
            sums[row] = total
            totals[row] = total if feasible[row] else NOT_FEASIBLE


def _filter_row(plugin: FilterPlugin) -> _OfRow:
    """The plugin's `filter_row`, or its `filter` run on one row."""
    if isinstance(plugin, RowFilterPlugin):
        return plugin.filter_row
    return lambda state, pod, nodes, row: int(plugin.filter(state, pod, nodes, np.array([row]))[0])


def _score_row(plugin: ScorePlugin) -> _OfRow:
    """The plugin's `score_row`, or its `score` run on one row."""
    if isinstance(plugin, RowScorePlugin):
        return plugin.score_row
    return lambda state, pod, nodes, row: int(plugin.score(state, pod, nodes, np.array([row]))[0])
