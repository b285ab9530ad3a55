"""NodeResourcesBalancedAllocation: prefer nodes whose resources the pod leaves more evenly used."""

import math
from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import is_scalar
from bayplan.config.types import NodeResourcesBalancedAllocationArgs
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Scores
from bayplan.framework.status import SKIP, SUCCESS, Reads, Status, Traits
from bayplan.plugins.node_resources.device_amounts import DeviceAmounts
from bayplan.plugins.node_resources.resource_scoring import ResourceColumns, resource_columns

_Fractions = NDArray[np.float64]


class NodeResourcesBalancedAllocation:
    """Scores how much the pod improves a node's balance (upstream: plugins/noderesources/balanced_allocation.go).

    The standard deviation is the one place where kube-scheduler computes in float64; the same operations in the same
    order give the same bits here.
    """

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    traits: ClassVar[Traits] = Traits(reads=Reads.USAGE)

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, devices: DeviceAmounts) -> None:
        self._resources = tuple(resource.name for resource in args.resources)
        self._scalars = frozenset(filter(is_scalar, self._resources))
        self._devices = devices

    def sign_pod(self, pod: PodInfo) -> Hashable:
        if self._devices.concerns(pod, self._resources):
            return None
        amounts = pod.requests.amounts
        return tuple(amounts.get(name, 0) for name in self._resources)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        amounts = pod.requests.amounts
        return SUCCESS if any(amounts.get(name, 0) for name in self._resources) else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        if not any(pod.requests.amounts.get(name, 0) for name in self._resources):
            # Only reached where a profile disables the plugin's PreScore, which skips such pods.
            return np.zeros(len(rows), dtype=np.int64)
        fractions: list[_Fractions] = []
        present: list[NDArray[np.bool_] | None] = []
        for column in self._columns(pod, nodes):
            with_pod, allocatable = column.on(rows)
            # Two lines at once: without the pod, and with it.
            both = with_pod - np.array(((column.wanted,), (0,)), dtype=np.int64)
            if column.everywhere:
                present.append(None)
            else:
                present.append(allocatable > 0)
                allocatable = np.maximum(allocatable, 1)
            fractions.append(np.minimum(both / allocatable, 1.0))
        before, after = _balance(fractions, present, len(rows))
        half = MAX_NODE_SCORE // 2
        scores: Scores = half + (half + after - before) // 2
        return scores

    def score_few(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> list[int]:
        amounts = pod.requests.amounts
        if not any(amounts.get(name, 0) for name in self._resources):
            return [0] * len(rows)
        columns = self._columns(pod, nodes)
        half = MAX_NODE_SCORE // 2
        scores: list[int] = []
        for row in rows:
            without: list[float] = []
            with_pod: list[float] = []
            for column in columns:
                used, allocatable = column.on_row(row)
                if allocatable > 0:
                    # Divided as floats, as numpy does and Python's integers do not.
                    without.append(min(float(used - column.wanted) / float(allocatable), 1.0))
                    with_pod.append(min(float(used) / float(allocatable), 1.0))
            scores.append(half + (half + _balance_of_row(with_pod) - _balance_of_row(without)) // 2)
        return scores

    def _columns(self, pod: PodInfo, nodes: NodeTable) -> list[ResourceColumns]:
        """Give what counts: what pods request of cpu, memory and the like, and of the others what the pod asks for."""
        amounts = pod.requests.amounts
        columns: list[ResourceColumns] = []
        for name in self._resources:
            wanted, column = amounts.get(name, 0), nodes.allocatable.get(name)
            if name in self._scalars and not wanted:
                continue
            if name in self._scalars and (by_devices := self._devices.columns(name)):
                columns.append(ResourceColumns(name, by_devices[0], wanted, by_devices[1], False, 1))
            elif column is not None:
                taken, everywhere = nodes.requested.get(name), nodes.all_have(name)
                columns.append(ResourceColumns(name, taken, wanted, column, everywhere, 1))
        return columns


def _balance_of_row(fractions: Sequence[float]) -> int:
    """Return what `_balance` does for one node, from the resources it has."""
    if len(fractions) == 2:
        return int((1 - abs((fractions[0] - fractions[1]) / 2)) * float(MAX_NODE_SCORE))
    return int((1 - _std_of_row(fractions)) * float(MAX_NODE_SCORE))


def _std_of_row(fractions: Sequence[float]) -> float:
    if len(fractions) < 2:
        return 0.0
    # Added up one after the other: `sum` of floats rounds less often than kube-scheduler.
    total = squares = 0.0
    for fraction in fractions:
        total += fraction
    mean = total / len(fractions)
    for fraction in fractions:
        squares += (fraction - mean) * (fraction - mean)
    return math.sqrt(squares / len(fractions))


def _balance(fractions: Sequence[_Fractions], present: Sequence[NDArray[np.bool_] | None], rows: int) -> Scores:
    """Return `int((1 - std) * 100)` over the resources each node has, `(2, rows) int64` from fractions `(2, rows)`."""
    if not fractions:
        return np.full((2, rows), MAX_NODE_SCORE, dtype=np.int64)
    if len(fractions) == 2 and all(has is None for has in present):
        std: _Fractions = np.abs((fractions[0] - fractions[1]) / 2)
    else:
        std = _std(fractions, [np.ones(rows, dtype=np.bool_) if has is None else has for has in present], rows)
    return ((1 - std) * float(MAX_NODE_SCORE)).astype(np.int64)


def _std(fractions: Sequence[_Fractions], present: Sequence[NDArray[np.bool_]], rows: int) -> _Fractions:
    count = np.zeros(rows, dtype=np.int64)
    total = np.zeros((2, rows))
    for fraction, has in zip(fractions, present, strict=True):
        count += has
        total += np.where(has, fraction, 0.0)
    divisor = np.maximum(count, 1)
    mean = total / divisor
    squares = np.zeros((2, rows))
    # With two resources kube-scheduler halves their difference instead; the bits can differ from the general formula.
    difference = np.zeros((2, rows))
    for fraction, has in zip(fractions, present, strict=True):
        off = fraction - mean
        squares += np.where(has, off * off, 0.0)
        difference = np.where(has, fraction - difference, difference)
    std = np.where(count == 2, np.abs(difference / 2), np.sqrt(squares / divisor))
    return np.where(count < 2, 0.0, std)


class ResultingBalance:
    """Scores `100 * (1 - spread)`, with the spread between the least and the most used resource; 0 where one is full.

    Source: pkg/scheduler/algorithm/priorities/balanced_resource_allocation.go of release 1.16, there on 0..10 and for
    cpu and memory. As there, containers that request none of these count with what scores take for them, and a node
    that lacks one of them scores 0.
    """

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    traits: ClassVar[Traits] = Traits(reads=Reads.USAGE)

    def __init__(self, args: NodeResourcesBalancedAllocationArgs) -> None:
        self._resources = args.resources

    def sign_pod(self, pod: PodInfo) -> Hashable:
        requests = pod.requests
        others = tuple(requests.scoring_amounts.get(each.name, 0) for each in self._resources)
        return (requests.scoring_cpu, requests.scoring_memory, others)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        columns = self._columns(pod, nodes)
        if not columns:
            return np.zeros(len(rows), dtype=np.int64)
        lowest, highest = np.ones(len(rows)), np.zeros(len(rows))
        for column in columns:
            used, allocatable = column.on(rows)
            fraction = np.where(allocatable > 0, used / np.maximum(allocatable, 1), 1.0)
            lowest, highest = np.minimum(lowest, fraction), np.maximum(highest, fraction)
        balance = (1 - (highest - lowest)) * float(MAX_NODE_SCORE)
        scores: Scores = np.where(highest < 1, balance, 0.0).astype(np.int64)
        return scores

    def score_few(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Sequence[int]) -> list[int]:
        columns = self._columns(pod, nodes)
        scores: list[int] = []
        for row in rows:
            fractions = []
            for column in columns:
                used, allocatable = column.on_row(row)
                fractions.append(float(used) / float(allocatable) if allocatable > 0 else 1.0)
            full = max(fractions, default=1.0) >= 1
            scores.append(0 if full else int((1 - (max(fractions) - min(fractions))) * float(MAX_NODE_SCORE)))
        return scores

    def _columns(self, pod: PodInfo, nodes: NodeTable) -> list[ResourceColumns]:
        """Give what counts, extended resources for pods that want them; nothing where one of these is on no node."""
        wanted = pod.requests.scoring_amounts
        names = [each.name for each in self._resources if not is_scalar(each.name) or wanted.get(each.name, 0)]
        if any(nodes.allocatable.get(name) is None for name in names):
            return []
        return resource_columns(self._resources, pod, nodes)
