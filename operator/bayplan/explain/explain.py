"""Explains one decision from the evaluation that it was taken by."""

from collections.abc import Callable, Sequence
from typing import cast
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import structs

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.evaluation import Evaluation
from bayplan.explain.changes import helpful_changes
from bayplan.explain.explanation import Eviction, Explanation, NodeScore, PluginScore
from bayplan.explain.node_groups import MOST_GROUPS, NodeOrder, rejected_groups
from bayplan.framework.candidate import Candidate
from bayplan.framework.causes import listed
from bayplan.framework.interface import PointsOfTenPlugin, ResourceScorePlugin, Scores
from bayplan.framework.runtime import Framework, WeightedScore
from bayplan.framework.status import Diagnosis


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


class Explainer:
    """Explains decisions over one node table; it changes nothing, and the evaluations it is given are up to date.

    Of pods of one shape that fit nowhere only the first is worked out, until the cluster changes.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._order = NodeOrder(nodes)
        self._known: WeakKeyDictionary[Evaluation, tuple[Diagnosis, Explanation]] = WeakKeyDictionary()

    def rejection(
        self, pod: PodInfo, evaluation: Evaluation, candidates: Sequence[Candidate], anew: Callable[[], Evaluation]
    ) -> Explanation:
        """Explain why no node fits; `anew` makes an evaluation that sees what `evaluation` sees.

        `candidates` are what preemption found, the chosen one first.
        """
        diagnosis = evaluation.verdicts.diagnose(pod)
        known = self._known.get(evaluation)
        if known is None or known[0] is not diagnosis:
            changes = helpful_changes(self._nodes, self._order, evaluation, pod, anew)
            known = diagnosis, structs.replace(self._groups(pod, evaluation), changes=tuple(changes))
            self._known[evaluation] = known
        explanation = known[1]
        if not candidates:
            return explanation
        chosen = candidates[0]
        eviction = Eviction(listed([each.key for each in chosen.victims]), chosen.node_name)
        return structs.replace(explanation, changes=(*explanation.changes, eviction))

    def placement(
        self,
        pod: PodInfo,
        evaluation: Evaluation,
        framework: Framework,
        *,
        row: int,
        rows: Rows | None,
        unscored: str | None,
    ) -> Explanation:
        """Explain why the node of `row` was chosen of `rows`, or of all feasible ones, and why the others were not."""
        compared = np.flatnonzero(evaluation.feasible) if rows is None else rows
        chosen, runner_up = compared_scores(self._nodes, evaluation, framework.scores, pod, rows=compared, chosen=row)
        margin = None if runner_up is None else chosen.total - runner_up.total
        return structs.replace(
            self._groups(pod, evaluation), chosen=chosen, runner_up=runner_up, margin=margin, unscored=unscored
        )

    def _groups(self, pod: PodInfo, evaluation: Evaluation) -> Explanation:
        groups = rejected_groups(self._nodes, self._order, evaluation, pod)
        left_out = groups[MOST_GROUPS:]
        count = len(self._nodes)
        return Explanation(
            nodes=count,
            feasible=count - sum(group.count for group in groups),
            groups=tuple(groups[:MOST_GROUPS]),
            other_groups=len(left_out),
            nodes_in_other_groups=sum(group.count for group in left_out),
        )
