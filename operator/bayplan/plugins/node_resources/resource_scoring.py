"""The arithmetic of NodeResourcesFit's strategies on whole columns, in kube-scheduler's integers."""

from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.api.quantity import MAX_AMOUNT
from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, MEMORY, PODS, is_scalar
from bayplan.config.types import ResourceSpec, ScoringStrategy, ScoringStrategyType, UtilizationShapePoint
from bayplan.framework.interface import MAX_NODE_SCORE, Scores

_Amounts = NDArray[np.int64]


class ResourceColumns(msgspec.Struct, frozen=True):
    """One resource before rows are picked: what pods take, what the pod wants, what nodes have, and its weight.

    `everywhere` promises that no node lacks the resource, which saves guarding the division.
    """

    taken: Column | None
    wanted: int
    allocatable: Column
    everywhere: bool
    weight: int

    def on(self, rows: Rows) -> tuple[_Amounts, _Amounts]:
        """Return what would be taken with the pod on these rows, and what they have, `(rows,) int64` each."""
        used = np.full(len(rows), self.wanted) if self.taken is None else self.taken[rows] + self.wanted
        return used, self.allocatable[rows]

    def on_row(self, row: int) -> tuple[int, int]:
        """Return what would be taken with the pod on one row, and what it has."""
        used = self.wanted if self.taken is None else self.taken.item(row) + self.wanted
        return used, self.allocatable.item(row)


def resource_columns(resources: Sequence[ResourceSpec], pod: PodInfo, nodes: NodeTable) -> list[ResourceColumns]:
    """Give what to score by for each of `resources` that counts for this pod."""
    columns: list[ResourceColumns] = []
    requests = pod.requests
    for resource in resources:
        name = resource.name
        taken: Column | None
        if name == CPU:
            taken, wanted = nodes.non_zero_cpu, requests.scoring_cpu
        elif name == MEMORY:
            taken, wanted = nodes.non_zero_memory, requests.scoring_memory
        else:
            taken, wanted = nodes.requested.get(name), requests.scoring_amounts.get(name, 0)
            if wanted == 0 and is_scalar(name):
                continue
        column = nodes.allocatable.get(name) if name != PODS else None
        if column is not None:
            everywhere = nodes.all_have(name)
            columns.append(ResourceColumns(taken, min(wanted, MAX_AMOUNT), column, everywhere, resource.weight))
    return columns


class Scorer(Protocol):
    """Scores rows by the resources that count for a pod; `score_few` in plain integers, which is faster for a few."""

    def score(self, resources: Sequence[ResourceColumns], rows: Rows) -> Scores:
        """Return a score per row, `(rows,) int64`."""
        ...

    def score_few(self, resources: Sequence[ResourceColumns], rows: Sequence[int]) -> list[int]:
        """Return the same for each of a few rows."""
        ...


_SHAPE_SCALE = 10
"""Shape scores are given as 0..10 and used as 0..100."""


def points_of_ten(
    shape: Sequence[UtilizationShapePoint], resources: Sequence[ResourceColumns], rows: Sequence[int]
) -> list[int]:
    """Return the score of each row on the shape's own 0..10, as Kubernetes 1.16 and the documentation work it out.

    There every resource is cut to whole points before the mean is taken, so a node may have 5 points here and 60 of
    100 today (release 1.16: pkg/scheduler/algorithm/priorities/requested_to_capacity_ratio.go).
    """
    corners = [(point.utilization, point.score) for point in shape]
    points: list[int] = []
    for row in rows:
        total = weight_sum = 0
        for resource in resources:
            taken, allocatable = resource.on_row(row)
            if allocatable > 0:
                # What is free rounds down, so utilization rounds up: the other way round than today.
                free = (allocatable - min(taken, allocatable)) * 100 // allocatable
                if point := _broken_linear(corners, 100 - free):
                    total += point * resource.weight
                    weight_sum += resource.weight
        divisor = max(weight_sum, 1)
        points.append((2 * total + divisor) // (2 * divisor))
    return points


def scorer(strategy: ScoringStrategy) -> Scorer:
    """Return what scores by `strategy`; the weights come with the resources."""
    if strategy.type is ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
        return _RequestedToCapacityRatio(strategy.shape)
    return _Allocated(least=strategy.type is ScoringStrategyType.LEAST_ALLOCATED)


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


class _Allocated:
    """LeastAllocated and MostAllocated (upstream: least_allocated.go, most_allocated.go)."""

    def __init__(self, *, least: bool) -> None:
        self._least = least

    def score(self, resources: Sequence[ResourceColumns], rows: Rows) -> Scores:
        total = np.zeros(len(rows), dtype=np.int64)
        weight_sum: _Amounts | int = 0
        for resource in resources:
            taken, allocatable = resource.on(rows)
            counted = np.maximum(allocatable - taken, 0) if self._least else np.minimum(taken, allocatable)
            if resource.everywhere:
                total += counted * MAX_NODE_SCORE // allocatable * resource.weight
                weight_sum = weight_sum + resource.weight
            else:
                total += counted * MAX_NODE_SCORE // np.maximum(allocatable, 1) * resource.weight
                weight_sum = weight_sum + (allocatable > 0) * resource.weight
        mean: Scores = total // np.maximum(weight_sum, 1)
        return mean

    def score_few(self, resources: Sequence[ResourceColumns], rows: Sequence[int]) -> list[int]:
        scores: list[int] = []
        for row in rows:
            total = weight_sum = 0
            for resource in resources:
                taken, allocatable = resource.on_row(row)
                if allocatable > 0:
                    counted = min(taken, allocatable)
                    if self._least:
                        counted = allocatable - counted
                    total += counted * MAX_NODE_SCORE // allocatable * resource.weight
                    weight_sum += resource.weight
            scores.append(total // weight_sum if weight_sum else 0)
        return scores


class _RequestedToCapacityRatio:
    """A resource that scores 0 does not count, and the mean rounds half up.

    Upstream: requested_to_capacity_ratio.go.
    """

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        self._table = shape_table(shape)
        self._scores: list[int] = self._table.tolist()

    def score(self, resources: Sequence[ResourceColumns], rows: Rows) -> Scores:
        total = np.zeros(len(rows), dtype=np.int64)
        weight_sum = np.zeros(len(rows), dtype=np.int64)
        for resource in resources:
            taken, allocatable = resource.on(rows)
            score = self._table[np.minimum(taken, allocatable) * MAX_NODE_SCORE // np.maximum(allocatable, 1)]
            counted = (score > 0) & (allocatable > 0)
            total += score * counted * resource.weight
            weight_sum += counted * resource.weight
        # round(total / weight_sum) of non-negative integers, without floats.
        divisor = np.maximum(weight_sum, 1)
        rounded: Scores = (2 * total + divisor) // (2 * divisor)
        return rounded

    def score_few(self, resources: Sequence[ResourceColumns], rows: Sequence[int]) -> list[int]:
        scores: list[int] = []
        for row in rows:
            total = weight_sum = 0
            for resource in resources:
                taken, allocatable = resource.on_row(row)
                score = self._scores[min(taken, allocatable) * MAX_NODE_SCORE // allocatable] if allocatable > 0 else 0
                if score > 0:
                    total += score * resource.weight
                    weight_sum += resource.weight
            divisor = max(weight_sum, 1)
            scores.append((2 * total + divisor) // (2 * divisor))
        return scores
