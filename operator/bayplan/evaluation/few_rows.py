"""Filters and scores of a few rows in plain integers, for which numpy is slower (docs/adr/0011)."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.raw_score import NOT_FEASIBLE, RawScore
from bayplan.framework.interface import CycleState, FewRowsFilterPlugin, FewRowsScorePlugin, FilterPlugin
from bayplan.framework.plugin_calls import PluginCalls
from bayplan.framework.status import Code, Reads

FEW_ROWS: Final = 8
"""Up to so many rows whose pods changed are looked at by themselves, if no node object did."""

# In Python 3.11 naming an enum's member takes longer than all the rest of a comparison.
_SUCCESS: Final = int(Code.SUCCESS)
_ERROR: Final = int(Code.ERROR)
RunOnFew = Callable[[CycleState, PodInfo, NodeTable, Sequence[int]], list[int]]
"""Gives the code or the score of each of a few existing rows."""


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
        self._filters: list[tuple[int, RunOnFew]] = []
        self._measured: list[tuple[int, RunOnFew]] = []
        for index, plugin in numbered:
            few = few_filter(plugin)
            self._filters.append((index, few))
            self._measured.append((index, calls.measured("filter", plugin.name, few)))
        self._calls = calls
        self._runs = calls.count([plugin.name for _, plugin in numbered], "Filter")
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
        self._runs.value += len(existing)
        for index, few_filter in self._measured if self._calls.sampled else self._filters:
            for row, code in zip(existing, few_filter(state, pod, nodes, existing), strict=True):
                codes[index, row] = code
        erring: list[int] = []
        for row in existing:
            worst = max(codes[:, row].tolist(), default=_SUCCESS)
            if worst >= _ERROR:
                erring.append(row)
            feasible[row] = worst == _SUCCESS and (allowed is None or allowed[row])
        return erring


class FewRowsScores:
    """Updates the sums and totals of a few changed rows without numpy."""

    def __init__(self, entries: Sequence[RawScore], calls: PluginCalls) -> None:
        self._entries = entries
        self._scores: list[tuple[RawScore, RunOnFew]] = []
        self._measured: list[tuple[RawScore, RunOnFew]] = []
        for entry in entries:
            plugin = entry.plugin
            if entry.reads is Reads.USAGE:
                few = plugin.score_few if isinstance(plugin, FewRowsScorePlugin) else _on_few(plugin.score)
                self._scores.append((entry, few))
                self._measured.append((entry, calls.measured("score", entry.name, few)))
        self._calls = calls
        self._runs = calls.count([entry.name for entry, _ in self._scores], "Score")

    def update(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> None:
        """Run the scores that read usage on these rows."""
        existing = [row for row in rows if nodes.exists[row]]
        self._runs.value += len(existing)
        for entry, few_score in self._measured if self._calls.sampled else self._scores:
            scores = few_score(state, pod, nodes, existing)
            if entry.constant is not None:
                if not any(scores):
                    continue
                entry.vary()
            for row, score in zip(existing, scores, strict=True):
                entry.raw[row] = score

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


def few_filter(plugin: FilterPlugin) -> RunOnFew:
    """What asks a filter about few rows; whoever looks at a row by itself relies on it."""
    return plugin.filter_few if isinstance(plugin, FewRowsFilterPlugin) else _on_few(plugin.filter)


def _on_few(run: Callable[[CycleState, PodInfo, NodeTable, Rows], NDArray[Any]]) -> RunOnFew:
    """What runs a filter or a score that has no shortcut on few rows."""
    return lambda state, pod, nodes, rows: run(state, pod, nodes, np.array(rows, dtype=np.intp)).tolist()
