"""Explains a decision from the evaluation that made it; rejected nodes are grouped by plugin and causes."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, cast
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.evaluation import Evaluation
from bayplan.explain.changes import helpful_changes
from bayplan.explain.explanation import Eviction, Explanation, NodeGroup, NodeScore, PluginScore
from bayplan.framework.candidate import Candidate
from bayplan.framework.causes import LISTED, Cause, Detail, Listed, Pinned, listed, same_for_all, told
from bayplan.framework.interface import DetailedFilterPlugin, PointsOfTenPlugin, ResourceScorePlugin, Scores
from bayplan.framework.runtime import Framework, WeightedScore
from bayplan.framework.status import Diagnosis
from bayplan.shown_text import natural_key

MOST_GROUPS: Final = 16
"""How many groups are told."""

_MOST_DETAILS: Final = 62
"""How many causes of one plugin are looked at, each a bit; a pod may ask for thousands of resources."""

_MOST_CAUSES: Final = 8
"""How many causes of one group are told."""

_OTHER: Final = "other reasons"
Places = NDArray[np.intp]
_Rejection = tuple[str, list[Cause], Rows]


class NodeOrder:
    """Knows the place of each row, sorted once until a node changes, so that groups are listed without sorting."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._rows: Rows | None = None
        self._places: NDArray[np.intp] = np.zeros(0, dtype=np.intp)

    def listed(self, rows: Rows) -> Listed:
        """The first names among existing `rows`, and how many more there are."""
        count = min(len(rows), LISTED)
        places = self._current()[rows]
        first = rows[np.argpartition(places, count - 1)[:count]] if 0 < count < len(rows) else rows
        ordered = first[np.argsort(self._places[first])]
        return Listed(tuple(self._nodes.names[row] for row in ordered.tolist()), len(rows) - count)

    def first(self, rows: Rows) -> int:
        """The row whose name comes first, of at least one."""
        return int(rows[int(self._current()[rows].argmin())])

    def _current(self) -> NDArray[np.intp]:
        rows = self._nodes.rows()
        if self._rows is not rows:
            names = self._nodes.names
            self._places = np.zeros(self._nodes.capacity, dtype=np.intp)
            self._places[sorted(rows.tolist(), key=lambda row: natural_key(names[row]))] = np.arange(len(rows))
            self._rows = rows
        return self._places


def rejected_groups(nodes: NodeTable, order: NodeOrder, evaluation: Evaluation, pod: PodInfo) -> list[NodeGroup]:
    """Return all groups of nodes that `evaluation`, which is up to date, rejects; the largest first.

    Every rejected node is in one group: that of the plugin kube-scheduler would name. Python runs once a group.
    """
    found = sorted(_rejections(nodes, evaluation, pod), key=lambda each: -len(each[2]))
    told_groups = found[:MOST_GROUPS]
    groups = [NodeGroup(len(rows), plugin, tuple(causes), order.listed(rows)) for plugin, causes, rows in told_groups]
    return groups + [NodeGroup(len(rows), plugin, (), Listed()) for plugin, _, rows in found[MOST_GROUPS:]]


def details_of(evaluation: Evaluation, nodes: NodeTable, pod: PodInfo, number: int, rows: Rows) -> list[Detail]:
    """Return the causes for which the filter `number` rejects `rows`; in its own words where it has no better."""
    verdicts = evaluation.verdicts
    plugin = verdicts.filter_at(number)
    details: Iterator[Detail]
    if hasattr(plugin, "details") and verdicts.is_plain(number):
        # Not asserted: a protocol takes as long to check as a plugin to answer.
        details = iter(cast("DetailedFilterPlugin", plugin).details(evaluation.state, pod, nodes, rows))
    else:
        with_nominated = "" if verdicts.is_plain(number) else ", with the pods nominated there"
        reasons = verdicts.reasons_of(pod, number, rows)
        details = (same_for_all(each.holds, told(each.text + with_nominated)) for each in reasons)
    return [each for each in islice(details, _MOST_DETAILS) if each.holds.any()]


def _rejections(nodes: NodeTable, evaluation: Evaluation, pod: PodInfo) -> Iterator[_Rejection]:
    rows, pre_filters, verdicts = nodes.rows(), evaluation.pre_filters, evaluation.verdicts
    if pre_filters.rejection is not None:
        yield pre_filters.rejection.plugin, [told(pre_filters.explained_rejection(pod))], rows
        return
    out = verdicts.narrowed_out(rows)
    if out.any():
        names = pre_filters.narrowed_to or frozenset()
        yield pre_filters.narrowed_plugins, [Pinned(listed(names))], rows[out]
    rows = rows[~out]
    first = verdicts.rejected_by(rows)
    # Faster than sorting them: numbers are few. Those that no filter rejects are -1.
    for number in np.flatnonzero(np.bincount(first + 1, minlength=1)[1:]).tolist():
        rejected = rows[first == number]
        details = details_of(evaluation, nodes, pod, number, rejected)
        for places in _together(details, len(rejected)):
            causes = [each.tell(places) for each in details if each.holds[places[0]]]
            yield verdicts.filter_at(number).name, causes[:_MOST_CAUSES] or [told(_OTHER)], rejected[places]


def _together(details: Sequence[Detail], count: int) -> list[Places]:
    """Return the places, of `count` (at least one), for which the same details hold, group by group."""
    distinguishing = [each.holds for each in details if not each.holds.all()]
    if not distinguishing:
        return [np.arange(count)]
    # Short numbers are sorted several times as fast.
    small = len(distinguishing) < 15
    group: NDArray[np.int16 | np.int64] = np.zeros(count, dtype=np.int16 if small else np.int64)
    for number, holds in enumerate(distinguishing):
        group += holds.astype(group.dtype) << number
    order = np.argsort(group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


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
