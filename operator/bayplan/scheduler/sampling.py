"""A search for feasible nodes that ends when enough are found: how many, from where on, and in which order."""

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.evaluation.evaluation import Evaluation
from bayplan.framework.runtime import Framework

_MIN_FEASIBLE_NODES_TO_FIND = 100
_MIN_PERCENTAGE = 5


class NodeSearch:
    """Finds no more feasible nodes than are enough, beginning where the last search ended; one for all profiles.

    The cycle relies on it where a profile limits its search. It finds what kube-scheduler finds with `parallelism: 1`;
    with more, kube-scheduler's workers run ahead of one another. Upstream: schedule_one.go findNodesThatPassFilters.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._next_start = 0
        self._version = -1
        self._names: dict[str, None] = {}
        self._order: Rows = np.empty(0, dtype=np.intp)

    def follow(self) -> None:
        """Take in which nodes there are; to be called in every cycle, whatever its profile.

        As in kube-scheduler the order is that of the moment when a node last came or went: one that moves to another
        zone keeps its place until then (upstream: backend/cache/cache.go UpdateSnapshot).
        """
        tree = self._nodes.tree
        if self._version == tree.version:
            return
        self._version = tree.version
        if self._names.keys() != tree.names():
            self._names = dict.fromkeys(tree.in_turn())
        self._order = np.array([self._nodes.row(name) for name in self._names], dtype=np.intp)

    def find(self, evaluation: Evaluation, framework: Framework, nominated: int | None = None) -> Rows | None:
        """The feasible rows that the search finds, in its order; None when these are all there are.

        `evaluation` is up to date. `nominated` is the row that was looked at before all others and rejected, if any.
        The next search begins behind the nodes that this one looked at.
        """
        if evaluation.pre_filters.rejection is not None or not len(self._order):
            return None
        searched = evaluation.searched(self._order)
        count = len(searched)
        order = np.roll(searched, -(self._next_start % max(count, 1)))
        passed = np.flatnonzero(evaluation.feasible[order])
        wanted = 1 if framework.takes_first_fit else nodes_to_find(count, framework.percentage_of_nodes_to_score)
        # It ends at the first feasible node that is one too many.
        visited = count if len(passed) <= wanted else int(passed[wanted])
        looked_at = visited + (nominated is not None and not np.any(order[:visited] == nominated))
        self._next_start = (self._next_start + looked_at) % len(self._order)
        return None if len(passed) <= wanted else order[passed[:wanted]]


def nodes_to_find(count: int, percentage: int | None) -> int:
    """How many feasible nodes are enough among `count` (upstream: schedule_one.go numFeasibleNodesToFind).

    A `percentage` of 0 means kube-scheduler's adaptive one, None all nodes.
    """
    if count < _MIN_FEASIBLE_NODES_TO_FIND or percentage is None or percentage >= 100:
        return count
    if percentage == 0:
        percentage = max(50 - count // 125, _MIN_PERCENTAGE)
    return max(count * percentage // 100, _MIN_FEASIBLE_NODES_TO_FIND)
