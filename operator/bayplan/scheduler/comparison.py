"""What a decision is told with: the node that came second, and what each plugin gave each node."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.evaluation import Evaluation
from bayplan.evaluation.raw_score import NOT_FEASIBLE


class Compare(IntEnum):
    """How much of the comparison of nodes is kept for who tells of the decision."""

    NOTHING = 0
    RUNNER_UP = 1
    PLUGINS = 2


@dataclass(frozen=True, slots=True)
class NodeScores:
    """The scores of the nodes that were compared: `totals` by node, and each plugin's part of them, weighted."""

    nodes: list[str]
    by_plugin: dict[str, list[int]]
    totals: list[int]


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The node that would have been chosen without the one that was, its score, and perhaps all scores."""

    runner_up: str
    score: int
    scores: NodeScores | None = None


def compare_nodes(
    compare: Compare,
    nodes: NodeTable,
    evaluation: Evaluation,
    pod: PodInfo,
    *,
    totals: NDArray[np.int64],
    chosen: int,
    rows: Rows | None,
) -> RunnerUp | None:
    """Return what comparing at least two nodes came to; None if that is not wanted.

    `totals` are the scores of `rows`, or of all rows of the table, with NOT_FEASIBLE for those that are not compared;
    `chosen` is the position of the chosen one in it. Nothing is changed.
    """
    if compare is Compare.NOTHING:
        return None
    others = totals.copy()
    others[chosen] = NOT_FEASIBLE
    second = int(others.argmax())
    name = nodes.names[second if rows is None else int(rows[second])]
    return RunnerUp(
        name, int(totals[second]), _all_scores(nodes, evaluation, pod, totals, rows) if compare > 1 else None
    )


def _all_scores(
    nodes: NodeTable, evaluation: Evaluation, pod: PodInfo, totals: NDArray[np.int64], rows: Rows | None
) -> NodeScores:
    compared = np.flatnonzero(evaluation.feasible) if rows is None else rows
    given = evaluation.scores(pod, compared)
    return NodeScores(
        [nodes.names[row] for row in compared.tolist()],
        {plugin: scores.tolist() for plugin, scores in given.items()},
        (totals[compared] if rows is None else totals).tolist(),
    )
