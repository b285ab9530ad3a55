"""Explains one decision from the evaluation that it was taken by."""

from weakref import WeakKeyDictionary

import numpy as np
from msgspec import UNSET, structs

from bayplan.cache.node_table import NodeTable
from bayplan.evaluation.evaluation import Evaluation
from bayplan.explain.changes import helpful_changes
from bayplan.explain.explanation import Eviction, Explanation, NodeScore, PluginScore
from bayplan.explain.node_groups import MOST_GROUPS, NodeOrder, RejectedNodes
from bayplan.framework.causes import listed
from bayplan.framework.interface import NotedScorePlugin, PointsOfTenPlugin, ResourceScorePlugin, Scores
from bayplan.framework.runtime import WeightedScore
from bayplan.framework.status import Diagnosis
from bayplan.scheduler.decision import Decision, FitError


class Explainer:
    """Explains decisions over one node table, each before its pod is assumed; it changes nothing.

    Of pods of one shape that fit nowhere only the first is worked out, until the cluster changes.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._order = NodeOrder(nodes)
        self._known: WeakKeyDictionary[Evaluation, tuple[Diagnosis, Explanation]] = WeakKeyDictionary()

    def explain(self, decision: Decision) -> Explanation:
        """Explain why the node was chosen and others were not, or why no node fits and what would help."""
        outcome = decision.outcome
        if isinstance(outcome, FitError):
            return self._fit_error(decision, outcome)
        chosen, runner_up = compared_scores(decision)
        return structs.replace(
            _groups(RejectedNodes(decision, self._order)),
            chosen=chosen,
            runner_up=runner_up,
            margin=None if runner_up is None else chosen.total - runner_up.total,
            unscored=outcome.unscored,
        )

    def _fit_error(self, decision: Decision, fit_error: FitError) -> Explanation:
        evaluation = decision.evaluation
        diagnosis = evaluation.verdicts.diagnose(decision.pod)
        known = self._known.get(evaluation)
        if known is None or known[0] is not diagnosis:
            rejected = RejectedNodes(decision, self._order)
            known = diagnosis, structs.replace(_groups(rejected), changes=tuple(helpful_changes(rejected)))
            self._known[evaluation] = known
        explanation, candidates = known[1], fit_error.post_filter.candidates
        if not candidates:
            return explanation
        nominated = fit_error.post_filter.nominated_node_name
        chosen = next((each for each in candidates if each.node_name == nominated), candidates[0])
        eviction = Eviction(listed([each.key for each in chosen.victims]), chosen.node_name)
        return structs.replace(explanation, changes=(*explanation.changes, eviction))


def _groups(rejected: RejectedNodes) -> Explanation:
    groups = rejected.groups()
    left_out = groups[MOST_GROUPS:]
    count = len(rejected.decision.nodes)
    return Explanation(
        nodes=count,
        feasible=count - sum(group.count for group in groups),
        groups=tuple(groups[:MOST_GROUPS]),
        other_groups=len(left_out),
        nodes_in_other_groups=sum(group.count for group in left_out),
    )


def compared_scores(decision: Decision) -> tuple[NodeScore, NodeScore | None]:
    """Return what the chosen node and the best of the others were given, if exactly the found ones were compared.

    Of equal totals the first one found wins, as in the cycle.
    """
    rows = decision.found
    given = decision.evaluation.scores(decision.pod, rows)
    totals: Scores = np.zeros(len(rows), dtype=np.int64)
    for scores in given.values():
        totals += scores
    everywhere = {name for name, scores in given.items() if len(rows) > 1 and scores.min() == scores.max()}

    def told(place: int) -> NodeScore:
        row = int(rows[place])
        plugins = [
            _plugin_score(decision, each, int(given[each.plugin.name][place]), row, each.plugin.name in everywhere)
            for each in decision.framework.scores
            if each.plugin.name in given
        ]
        return NodeScore(decision.nodes.names[row], int(totals[place]), tuple(plugins))

    at = int(np.flatnonzero(rows == decision.row)[0])
    if len(rows) == 1:
        return told(at), None
    others = totals.copy()
    others[at] = np.iinfo(np.int64).min
    return told(at), told(int(others.argmax()))


def _plugin_score(
    decision: Decision, entry: WeightedScore, weighted: int, row: int, is_everywhere: bool
) -> PluginScore:
    plugin, weight = entry.plugin, entry.weight
    pod, nodes = decision.pod, decision.nodes
    points = plugin.points_of_ten(pod, nodes, [row]) if isinstance(plugin, PointsOfTenPlugin) else ()
    return PluginScore(
        plugin.name,
        weighted // weight,
        weight,
        weighted,
        of_ten=points[0] if points else None,
        resources=tuple(plugin.resource_scores(pod, nodes, row)) if isinstance(plugin, ResourceScorePlugin) else (),
        everywhere=is_everywhere,
        note=plugin.score_note(pod) if isinstance(plugin, NotedScorePlugin) else UNSET,
    )
