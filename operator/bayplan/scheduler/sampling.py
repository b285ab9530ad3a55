"""Limits a search to as many feasible nodes as percentageOfNodesToScore requires."""

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.evaluation.evaluation import Evaluation

_MIN_FEASIBLE_NODES_TO_FIND = 100
_MIN_PERCENTAGE = 5


class NodeSampler:
    """Remembers where the last search ended, so that all nodes get their turn; the cycle relies on it.

    Upstream: schedule_one.go findNodesThatPassFilters.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._next_start = 0

    def sample(self, evaluation: Evaluation, percentage: int) -> Rows | None:
        """The feasible rows that a limited search finds, in its order; None when it is as good as a whole one.

        `evaluation` is up to date with the node table.
        """
        candidates = evaluation.candidates()
        count = len(candidates)
        wanted = nodes_to_find(count, percentage)
        if wanted >= count or evaluation.pre_filters.rejection is not None:
            return None
        order = np.roll(candidates, -(self._next_start % count))
        passed = np.flatnonzero(evaluation.feasible[order])
        if len(passed) > wanted:
            visited = int(passed[wanted - 1]) + 1
            passed = passed[:wanted]
        else:
            visited = count
        self._next_start = (self._next_start + visited) % len(self._nodes)
        return order[passed]


def nodes_to_find(count: int, percentage: int) -> int:
    """How many feasible nodes are enough among `count` (upstream: schedule_one.go numFeasibleNodesToFind).

    A `percentage` of 0 means kube-scheduler's adaptive one.
    """
    if count < _MIN_FEASIBLE_NODES_TO_FIND or percentage >= 100:
        return count
    if percentage == 0:
        percentage = max(50 - count // 125, _MIN_PERCENTAGE)
    return max(count * percentage // 100, _MIN_FEASIBLE_NODES_TO_FIND)
