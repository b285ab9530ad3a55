"""NodeResourcesFit's answers with their numbers, for explanations."""

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import ScoringStrategy
from bayplan.framework.causes import Detail, Shortage
from bayplan.framework.interface import ResourceScore
from bayplan.plugins.node_resources.resource_scoring import points_of_ten, resource_columns, scorer


def free_amounts(nodes: NodeTable, name: str, rows: Rows) -> NDArray[np.int64]:
    """Return what is free of a resource on each row, 0 where no node has any, `(rows,) int64`."""
    column, taken = nodes.allocatable.get(name), nodes.requested.get(name)
    free: NDArray[np.int64] = np.zeros(len(rows), dtype=np.int64) if column is None else column[rows]
    return free if taken is None else free - taken[rows]


def shortage_detail(nodes: NodeTable, rows: Rows, name: str, asked: int, free: NDArray[np.int64]) -> Detail:
    """Return the cause that less of a resource than `asked` is `free` on some of the rows."""

    def tell(places: NDArray[np.intp]) -> Shortage:
        most = int(places[int(free[places].argmax())])
        return Shortage(name, asked, int(free[most]), nodes.names[int(rows[most])])

    return Detail(asked > free, tell)


def resource_scores(strategy: ScoringStrategy, pod: PodInfo, nodes: NodeTable, row: int) -> list[ResourceScore]:
    """Return what each resource that counts for the pod adds to the score of a row.

    The formulas are those of the score itself, asked about one resource at a time.
    """
    scores: list[ResourceScore] = []
    scoring = scorer(strategy)
    for resource in strategy.resources:
        columns = resource_columns([resource], pod, nodes)
        for column in columns:
            after, allocatable = column.on_row(row)
            if allocatable <= 0:
                continue
            (score,) = scoring.score_few(columns, [row])
            of_ten = points_of_ten(strategy.shape, columns, [row])[0] if strategy.shape else None
            before = after - column.wanted
            taken = nodes.requested.get(resource.name)
            asked = pod.requests.amounts.get(resource.name, 0) + (0 if taken is None else int(taken[row]))
            assumed = max(after - asked, 0)
            amounts = before, after, allocatable
            scores.append(ResourceScore(resource.name, *amounts, score, column.weight, of_ten, assumed))
    return scores
