"""NodeResourcesBalancedAllocation: prefer nodes whose resources the pod leaves more evenly used."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import is_scalar
from bayplan.config.types import NodeResourcesBalancedAllocationArgs
from bayplan.framework.interface import MAX_NODE_SCORE, CycleState, Normalize, Reads, Scores
from bayplan.framework.status import SKIP, SUCCESS, Status

_Fractions = NDArray[np.float64]


class NodeResourcesBalancedAllocation:
    """Scores how much the pod improves a node's balance (upstream: plugins/noderesources/balanced_allocation.go).

    The standard deviation is the one place where kube-scheduler computes in float64; the same operations in the same
    order give the same bits here.
    """

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    reads: ClassVar[Reads] = Reads.USAGE
    normalize: ClassVar[Normalize] = Normalize.NONE

    def __init__(self, args: NodeResourcesBalancedAllocationArgs) -> None:
        self._resources = tuple(resource.name for resource in args.resources)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        amounts = pod.requests.amounts
        return tuple(amounts.get(name, 0) for name in self._resources)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        amounts = pod.requests.amounts
        return SUCCESS if any(amounts.get(name, 0) for name in self._resources) else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        before: list[_Fractions] = []
        after: list[_Fractions] = []
        present: list[NDArray[np.bool_]] = []
        for name in self._resources:
            wanted = pod.requests.amounts.get(name, 0)
            column = nodes.allocatable.get(name)
            if column is None or (wanted == 0 and is_scalar(name)):
                continue
            allocatable = column[rows]
            taken = nodes.requested_column(name)
            used = np.zeros(len(rows), dtype=np.int64) if taken is None else taken[rows]
            divisor = np.maximum(allocatable, 1)
            before.append(np.minimum(used / divisor, 1.0))
            after.append(np.minimum((used + wanted) / divisor, 1.0))
            present.append(allocatable > 0)
        change = _balance(after, present, len(rows)) - _balance(before, present, len(rows))
        half = MAX_NODE_SCORE // 2
        return half + (half + change) // 2


def _balance(fractions: Sequence[_Fractions], present: Sequence[NDArray[np.bool_]], rows: int) -> Scores:
    """`int((1 - std) * 100)` per row over the resources its node has, `(rows,) int64`."""
    if not fractions:
        return np.full(rows, MAX_NODE_SCORE, dtype=np.int64)
    if len(fractions) == 2 and all(p.all() for p in present):
        std: _Fractions = np.abs((fractions[0] - fractions[1]) / 2)
    else:
        std = _std(fractions, present, rows)
    return ((1 - std) * float(MAX_NODE_SCORE)).astype(np.int64)


def _std(fractions: Sequence[_Fractions], present: Sequence[NDArray[np.bool_]], rows: int) -> _Fractions:
    count = np.zeros(rows, dtype=np.int64)
    total = np.zeros(rows)
    for fraction, has in zip(fractions, present, strict=True):
        count += has
        total += np.where(has, fraction, 0.0)
    divisor = np.maximum(count, 1)
    mean = total / divisor
    squares = np.zeros(rows)
    for fraction, has in zip(fractions, present, strict=True):
        off = fraction - mean
        squares += np.where(has, off * off, 0.0)
    # With two resources kube-scheduler halves the difference instead; the bits can differ from the general formula.
    difference = np.zeros(rows)
    for fraction, has in zip(fractions, present, strict=True):
        difference = np.where(has, fraction - difference, difference)
    std = np.where(count == 2, np.abs(difference / 2), np.sqrt(squares / divisor))
    return np.where(count < 2, 0.0, std)
