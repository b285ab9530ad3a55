"""The arithmetic of NodeResourcesFit's strategies on whole columns, in kube-scheduler's integers."""

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.api.quantity import MAX_AMOUNT
from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, MEMORY, PODS, is_scalar
from bayplan.config.bayplan_args import WeightedResource
from bayplan.config.types import ResourceSpec, ScoringStrategy, ScoringStrategyType, UtilizationShapePoint
from bayplan.framework.interface import MAX_NODE_SCORE, Scores
from bayplan.framework.status import ResourceScore
from bayplan.plugins.node_resources.device_amounts import DeviceAmounts

_Amounts = NDArray[np.int64]
_Number = TypeVar("_Number", int, _Amounts)


class ResourceColumns(msgspec.Struct, frozen=True):
    """One resource before rows are picked: what pods take, what the pod wants, what nodes have, and its weight.

    `everywhere` promises that no node lacks the resource, which saves guarding the division.
    """

    name: str
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

    def told(self, row: int, score: int, of_ten: int | None = None, assumed: int = 0) -> ResourceScore:
        """Return what it adds to the score of a row, for explanations; the row has some of it, which scores `score`."""
        after, allocatable = self.on_row(row)
        return ResourceScore(self.name, after - self.wanted, after, allocatable, score, self.weight, of_ten, assumed)


def resource_columns(
    resources: Sequence[ResourceSpec | WeightedResource],
    pod: PodInfo,
    nodes: NodeTable,
    *,
    asked_only: bool = True,
    devices: DeviceAmounts | None = None,
) -> list[ResourceColumns]:
    """Give what to score by for each of `resources` that counts for this pod.

    Of extended resources only those count that the pod asks for, unless `asked_only` is false. Where a DeviceClass
    provides one, what counts are the `devices`, if given.
    """
    columns: list[ResourceColumns] = []
    requests = pod.requests
    for resource in resources:
        name, weight = resource.name, resource.weight
        taken: Column | None
        if name == CPU:
            taken, wanted = nodes.non_zero_cpu, requests.scoring_cpu
        elif name == MEMORY:
            taken, wanted = nodes.non_zero_memory, requests.scoring_memory
        else:
            taken, wanted = nodes.requested.get(name), requests.scoring_amounts.get(name, 0)
            if asked_only and wanted == 0 and is_scalar(name):
                continue
            if devices is not None and (counted := devices.columns(name)) is not None:
                columns.append(ResourceColumns(name, counted[0], min(wanted, MAX_AMOUNT), counted[1], False, weight))
                continue
        column = nodes.allocatable.get(name) if name != PODS else None
        if column is not None:
            everywhere = nodes.all_have(name)
            columns.append(ResourceColumns(name, taken, min(wanted, MAX_AMOUNT), column, everywhere, weight))
    return columns


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
        points.append(half_up(total, max(weight_sum, 1)))
    return points


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


class Scorer:
    """Scores rows by a strategy: `weight` times the mean over the resources that count for a pod, each with its weight.

    LeastAllocated and MostAllocated take the share that is free or taken (upstream: least_allocated.go,
    most_allocated.go). RequestedToCapacityRatio looks the share that is taken up in its shape; there a resource that
    scores 0 does not count, and the mean rounds half up (upstream: requested_to_capacity_ratio.go).
    """

    def __init__(self, strategy: ScoringStrategy, weight: int = 1) -> None:
        self.resources = strategy.resources
        """The resources that may count."""
        self._weight = weight
        has_shape = strategy.type is ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO
        self._least = strategy.type is ScoringStrategyType.LEAST_ALLOCATED
        self._table = shape_table(strategy.shape) if has_shape else None
        self._points: list[int] | None = None if self._table is None else self._table.tolist()

    def score(self, resources: Sequence[ResourceColumns], rows: Rows) -> Scores:
        """Return a score per row, `(rows,) int64`."""
        total = np.zeros(len(rows), dtype=np.int64)
        weight_sum: _Amounts | int = 0
        for resource in resources:
            taken, allocatable = resource.on(rows)
            counts: NDArray[np.bool_] | bool = True
            divisor = allocatable
            if not resource.everywhere:
                counts, divisor = allocatable > 0, np.maximum(allocatable, 1)
            share = np.minimum(taken, allocatable)
            share = (allocatable - share if self._least else share) * MAX_NODE_SCORE // divisor
            if self._table is not None:
                share = np.where(counts, self._table[share], 0)
                counts = share > 0
            total += share * resource.weight
            weight_sum = weight_sum + counts * resource.weight
        divisor = np.maximum(weight_sum, 1)
        return self._weight * (total // divisor if self._table is None else half_up(total, divisor))

    def score_few(self, resources: Sequence[ResourceColumns], rows: Sequence[int]) -> list[int]:
        """Return the same for each of a few rows, in plain integers."""
        points, weight = self._points, self._weight
        scores: list[int] = []
        for row in rows:
            total = weight_sum = 0
            for resource in resources:
                taken, allocatable = resource.on_row(row)
                if allocatable > 0:
                    share = min(taken, allocatable)
                    share = (allocatable - share if self._least else share) * MAX_NODE_SCORE // allocatable
                    if points is not None:
                        share = points[share]
                        if not share:
                            continue
                    total += share * resource.weight
                    weight_sum += resource.weight
            divisor = weight_sum or 1
            scores.append(weight * (total // divisor if points is None else half_up(total, divisor)))
        return scores


_MOST: Final = 2.0**56
"""A hundred times this is within int64. Sums up to 2**53 are exact, and more is in no domain there is."""


def sums_of(ids: NDArray[np.int32], column: Column, domains: int) -> NDArray[np.float64]:
    """Return the sum of a column over the rows of each domain, of which `ids` has one for each row."""
    return np.bincount(ids, column[: len(ids)], domains).astype(np.float64)


def domain_shares(taken: NDArray[np.float64], allocatable: NDArray[np.float64]) -> tuple[Scores, NDArray[np.bool_]]:
    """Return how much of each domain is taken, 0..100, and which domains have any of it."""
    has = np.minimum(allocatable, _MOST)
    used = np.minimum(taken, has).astype(np.int64)
    share: Scores = used * MAX_NODE_SCORE // np.maximum(has, 1.0).astype(np.int64)
    return share, has > 0


def half_up(total: _Number, divisor: _Number) -> _Number:
    """Return round(total / divisor) of non-negative integers, of one or of many, without floats."""
    return (2 * total + divisor) // (2 * divisor)
