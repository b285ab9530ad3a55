"""Groups rejected nodes by the plugin that rejects them and by its causes."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.evaluation import Evaluation
from bayplan.explain.explanation import NodeGroup
from bayplan.framework.causes import Cause, Detail, Listed, listed, same_for_all, told
from bayplan.framework.interface import DetailedFilterPlugin

MOST_GROUPS: Final = 16
"""How many groups are told."""

_MOST_DETAILS: Final = 64
"""How many causes of one plugin are looked at; a pod may ask for thousands of resources."""

_SORTED_NODES: Final = 1000
"""Of how many nodes of a group the first by name are found; of more, these are the first by age."""

_MOST_CAUSES: Final = 8
"""How many causes of one group are told."""

_OTHER: Final = "other reasons"

Places = NDArray[np.intp]
_Rejection = tuple[str, list[Cause], Rows]


def rejected_groups(nodes: NodeTable, evaluation: Evaluation, pod: PodInfo) -> list[NodeGroup]:
    """Return all groups of nodes that `evaluation`, which is up to date, rejects; the largest first.

    Every rejected node is in one group: that of the plugin kube-scheduler would name. Python runs once a group.
    """
    found = sorted(_rejections(nodes, evaluation, pod), key=lambda each: -len(each[2]))
    told_groups = found[:MOST_GROUPS]
    groups = [NodeGroup(len(rows), plugin, tuple(causes), _names(nodes, rows)) for plugin, causes, rows in told_groups]
    return groups + [NodeGroup(len(rows), plugin, (), listed(())) for plugin, _, rows in found[MOST_GROUPS:]]


def details_of(evaluation: Evaluation, nodes: NodeTable, pod: PodInfo, number: int, rows: Rows) -> list[Detail]:
    """Return the causes for which the filter `number` rejects `rows`; in its own words where it has no better."""
    verdicts = evaluation.verdicts
    plugin = verdicts.filter_at(number)
    details: Iterator[Detail]
    if isinstance(plugin, DetailedFilterPlugin) and verdicts.is_plain(number):
        details = iter(plugin.details(evaluation.state, pod, nodes, rows))
    else:
        with_nominated = "" if verdicts.is_plain(number) else ", with the pods nominated there"
        reasons = verdicts.reasons_of(pod, number, rows)
        details = (same_for_all(each.holds, told(each.text + with_nominated)) for each in reasons)
    return [each for each in islice(details, _MOST_DETAILS) if each.holds.any()]


def _rejections(nodes: NodeTable, evaluation: Evaluation, pod: PodInfo) -> Iterator[_Rejection]:
    rows, pre_filters, verdicts = nodes.rows(), evaluation.pre_filters, evaluation.verdicts
    if pre_filters.rejection is not None:
        yield pre_filters.rejection.plugin, [told(pre_filters.rejection.message)], rows
        return
    out = verdicts.narrowed_out(rows)
    if out.any():
        yield pre_filters.narrowed_plugins, [told(pre_filters.narrowed_reason)], rows[out]
    rows = rows[~out]
    first = verdicts.rejected_by(rows)
    for number in np.unique(first[first >= 0]).tolist():
        rejected = rows[first == number]
        details = details_of(evaluation, nodes, pod, number, rejected)
        for places in _together(details, len(rejected)):
            causes = [each.tell(places) for each in details if each.holds[places[0]]]
            yield verdicts.filter_at(number).name, causes[:_MOST_CAUSES] or [told(_OTHER)], rejected[places]


def _together(details: Sequence[Detail], count: int) -> list[Places]:
    """Return the places, of `count`, for which the same details hold, group by group."""
    group: Places = np.zeros(count, dtype=np.intp)
    for detail in details:
        # Numbered anew each time, so that no number grows beyond twice the places.
        group = np.unique(2 * group + detail.holds, return_inverse=True)[1].astype(np.intp)
    order = np.argsort(group, kind="stable")
    return [each for each in np.split(order, np.cumsum(np.bincount(group))[:-1]) if len(each)]


def _names(nodes: NodeTable, rows: Rows) -> Listed:
    return listed((nodes.names[row] for row in rows[:_SORTED_NODES].tolist()), len(rows))
