"""The arithmetic of NodeResourcesFit's strategies on whole columns, in kube-scheduler's integers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import Column
from bayplan.config.types import ScoringStrategy, ScoringStrategyType, UtilizationShapePoint
from bayplan.framework.interface import MAX_NODE_SCORE, Scores

_Amounts = NDArray[np.int64]


@dataclass(slots=True)  # made per resource and cycle: a frozen one takes three times as long
class Usage:
    """One resource: what would be `taken` with the pod on the node, and what the node has, `(rows,) int64` each.

    `everywhere` promises that no node lacks the resource, which saves guarding the division.
    """

    taken: _Amounts
    allocatable: _Amounts
    everywhere: bool


RowUsage = tuple[int, int]
"""One resource of one node: what would be taken with the pod on it, and what it has."""


class ResourceColumns(msgspec.Struct, frozen=True):
    """One resource before rows are picked: what pods take, what the pod wants, what nodes have.

    `everywhere` is as in Usage.
    """

    taken: Column | None
    wanted: int
    allocatable: Column
    everywhere: bool

    def usage(self, rows: Rows) -> Usage:
        """Return the resource on many nodes."""
        used = np.full(len(rows), self.wanted) if self.taken is None else self.taken[rows] + self.wanted
        return Usage(used, self.allocatable[rows], self.everywhere)

    def row_usage(self, row: int) -> RowUsage:
        """Return the resource on one node."""
        used = self.wanted if self.taken is None else self.taken.item(row) + self.wanted
        return used, self.allocatable.item(row)


Scorer = Callable[[Sequence[Usage | None], int], Scores]
"""Scores `rows` nodes from one usage per configured resource; None leaves a resource out for every node."""

RowScorer = Callable[[Sequence[RowUsage | None]], int]
"""Scores one node, as a `Scorer` does many; numpy takes ten times as long for one as plain integers do."""

_SHAPE_SCALE = 10
"""Shape scores are given as 0..10 and used as 0..100."""


def scorers(strategy: ScoringStrategy) -> tuple[Scorer, RowScorer]:
    """Return the functions that score many nodes and one node by `strategy`, with its weights and shape."""
    weights = tuple(resource.weight for resource in strategy.resources)
    if strategy.type is ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
        table = shape_table(strategy.shape)
        scores: list[int] = table.tolist()
        return (
            lambda usages, rows: _requested_to_capacity_ratio(usages, weights, table, rows),
            lambda usages: _requested_to_capacity_ratio_of_row(usages, weights, scores),
        )
    least = strategy.type is ScoringStrategyType.LEAST_ALLOCATED
    return (
        lambda usages, rows: _allocated(usages, weights, least, rows),
        lambda usages: _allocated_of_row(usages, weights, least),
    )


def shape_table(shape: Sequence[UtilizationShapePoint]) -> NDArray[np.int64]:
    """Return the score of every utilization 0..100 percent, `(101,) int64`, linear between points.

    Integer slopes truncate toward zero as Go's do, so a falling shape is not off by one (upstream:
    plugins/helper/shape_score.go).
    """
    points = [(point.utilization, point.score * _SHAPE_SCALE) for point in shape]
    return np.array([_broken_linear(points, percent) for percent in range(101)], dtype=np.int64)


def _broken_linear(points: Sequence[tuple[int, int]], percent: int) -> int:
    for i, (utilization, score) in enumerate(points):
        if percent <= utilization:
            if i == 0:
                return score
            before, from_score = points[i - 1]
            rise = (score - from_score) * (percent - before)
            run = utilization - before
            return from_score + (rise // run if rise >= 0 else -(-rise // run))
    return points[-1][1]


def _allocated(usages: Sequence[Usage | None], weights: Sequence[int], least: bool, rows: int) -> Scores:
    """Score by LeastAllocated or MostAllocated (upstream: least_allocated.go, most_allocated.go)."""
    total = np.zeros(rows, dtype=np.int64)
    weight_sum: _Amounts | int = 0
    for usage, weight in zip(usages, weights, strict=True):
        if usage is None:
            continue
        taken, allocatable = usage.taken, usage.allocatable
        counted = np.maximum(allocatable - taken, 0) if least else np.minimum(taken, allocatable)
        if usage.everywhere:
            total += counted * MAX_NODE_SCORE // allocatable * weight
            weight_sum = weight_sum + weight
        else:
            total += counted * MAX_NODE_SCORE // np.maximum(allocatable, 1) * weight
            weight_sum = weight_sum + (allocatable > 0) * weight
    mean: Scores = total // np.maximum(weight_sum, 1)
    return mean


def _allocated_of_row(usages: Sequence[RowUsage | None], weights: Sequence[int], least: bool) -> int:
    total = weight_sum = 0
    for usage, weight in zip(usages, weights, strict=True):
        if usage is None or usage[1] <= 0:
            continue
        taken, allocatable = usage
        counted = max(allocatable - taken, 0) if least else min(taken, allocatable)
        total += counted * MAX_NODE_SCORE // allocatable * weight
        weight_sum += weight
    return total // max(weight_sum, 1)


def _requested_to_capacity_ratio(
    usages: Sequence[Usage | None], weights: Sequence[int], table: NDArray[np.int64], rows: int
) -> Scores:
    """Score by RequestedToCapacityRatio: a resource that scores 0 does not count, and the mean rounds half up.

    Upstream: requested_to_capacity_ratio.go.
    """
    total = np.zeros(rows, dtype=np.int64)
    weight_sum = np.zeros(rows, dtype=np.int64)
    for usage, weight in zip(usages, weights, strict=True):
        if usage is None:
            continue
        taken, allocatable = usage.taken, usage.allocatable
        score = table[np.minimum(taken, allocatable) * MAX_NODE_SCORE // np.maximum(allocatable, 1)]
        counted = (score > 0) & (allocatable > 0)
        total += score * counted * weight
        weight_sum += counted * weight
    # round(total / weight_sum) of non-negative integers, without floats.
    divisor = np.maximum(weight_sum, 1)
    rounded: Scores = (2 * total + divisor) // (2 * divisor)
    return rounded


def _requested_to_capacity_ratio_of_row(
    usages: Sequence[RowUsage | None], weights: Sequence[int], table: Sequence[int]
) -> int:
    total = weight_sum = 0
    for usage, weight in zip(usages, weights, strict=True):
        if usage is None or usage[1] <= 0:
            continue
        taken, allocatable = usage
        score = table[min(taken, allocatable) * MAX_NODE_SCORE // allocatable]
        if score > 0:
            total += score * weight
            weight_sum += weight
    divisor = max(weight_sum, 1)
    return (2 * total + divisor) // (2 * divisor)
