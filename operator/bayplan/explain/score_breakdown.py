"""How the score of the chosen node came about, beside that of the node that came second."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from msgspec import structs

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.evaluation import Evaluation
from bayplan.explain.explanation import NodeScore, PluginScore
from bayplan.framework.interface import PointsOfTenPlugin, ResourceScorePlugin, Scores
from bayplan.framework.runtime import WeightedScore


def compared_scores(
    nodes: NodeTable, evaluation: Evaluation, scoring: Sequence[WeightedScore], pod: PodInfo, *, rows: Rows, chosen: int
) -> tuple[NodeScore, NodeScore | None]:
    """Return what the row `chosen` and the best of the others were given, if exactly `rows` were compared.

    Of equal totals the first of `rows` wins, as in the cycle. `chosen` is one of `rows`.
    """
    given = evaluation.scores(pod, rows)
    totals: Scores = np.zeros(len(rows), dtype=np.int64)
    for scores in given.values():
        totals += scores

    everywhere = {name for name, scores in given.items() if len(rows) > 1 and scores.min() == scores.max()}

    def told(place: int) -> NodeScore:
        plugins = [
            _plugin_score(each, int(given[each.plugin.name][place]), pod, nodes, int(rows[place]))
            for each in scoring
            if each.plugin.name in given
        ]
        marked = [structs.replace(each, everywhere=each.plugin in everywhere) for each in plugins]
        return NodeScore(nodes.names[int(rows[place])], int(totals[place]), tuple(marked))

    at = int(np.flatnonzero(rows == chosen)[0])
    if len(rows) == 1:
        return told(at), None
    others = totals.copy()
    others[at] = np.iinfo(np.int64).min
    return told(at), told(int(others.argmax()))


def _plugin_score(entry: WeightedScore, weighted: int, pod: PodInfo, nodes: NodeTable, row: int) -> PluginScore:
    plugin, weight = entry.plugin, entry.weight
    # Not asserted: a protocol takes as long to check as a plugin to answer.
    points, resources = [], []
    if hasattr(plugin, "points_of_ten"):
        points = cast("PointsOfTenPlugin", plugin).points_of_ten(pod, nodes, [row])
    if hasattr(plugin, "resource_scores"):
        resources = cast("ResourceScorePlugin", plugin).resource_scores(pod, nodes, row)
    of_ten = points[0] if points else None
    return PluginScore(plugin.name, weighted // weight, weight, weighted, of_ten, tuple(resources))
