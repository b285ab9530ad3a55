"""Groups rejected nodes by the plugin that rejects them and by its causes."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.evaluation.evaluation import FilterRejection
from bayplan.explain.explanation import NodeGroup
from bayplan.framework.causes import LISTED, Cause, Detail, Listed, Pinned, listed, same_for_all, told
from bayplan.framework.interface import DetailedFilterPlugin
from bayplan.scheduler.decision import Decision
from bayplan.shown_text import natural_key


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


MOST_GROUPS: Final = 16
"""How many groups are told."""

_MOST_DETAILS: Final = 62
"""How many causes of one plugin are looked at, each a bit; a pod may ask for thousands of resources."""

_MOST_CAUSES: Final = 8
"""How many causes of one group are told."""

_OTHER: Final = "other reasons"

Places = NDArray[np.intp]
_Rejection = tuple[str, list[Cause], Rows]


class RejectedNodes:
    """The nodes that a decision's filters reject, with the causes; `order` is that of the decision's node table."""

    def __init__(self, decision: Decision, order: NodeOrder) -> None:
        self.decision = decision
        self.order = order

    def groups(self) -> list[NodeGroup]:
        """Return all groups, the largest first.

        Every rejected node is in one: that of the plugin kube-scheduler would name. Python runs once a group.
        """
        found = sorted(self._rejections(), key=lambda each: -len(each[2]))
        groups = [
            NodeGroup(len(rows), plugin, tuple(causes), self.order.listed(rows))
            for plugin, causes, rows in found[:MOST_GROUPS]
        ]
        return groups + [NodeGroup(len(rows), plugin, (), Listed()) for plugin, _, rows in found[MOST_GROUPS:]]

    def details(self, rejection: FilterRejection) -> list[Detail]:
        """Return the causes of the rejection; in the filter's own words where it has no better."""
        decision, is_plain, plugin = self.decision, rejection.is_plain, rejection.plugin
        details: Iterable[Detail]
        if is_plain and isinstance(plugin, DetailedFilterPlugin):
            details = plugin.details(decision.evaluation.state, decision.pod, decision.nodes, rejection.rows)
        else:
            with_nominated = "" if is_plain else ", with the pods nominated there"
            reasons = rejection.reasons(decision.pod)
            details = (same_for_all(each.holds, told(each.text + with_nominated)) for each in reasons)
        return [each for each in islice(details, _MOST_DETAILS) if each.holds.any()]

    def _rejections(self) -> Iterator[_Rejection]:
        rows, evaluation = self.decision.nodes.rows(), self.decision.evaluation
        pre_filters, verdicts = evaluation.pre_filters, evaluation.verdicts
        if pre_filters.rejection is not None:
            yield pre_filters.rejection.plugin, [told(pre_filters.explained_rejection(self.decision.pod))], rows
            return
        out = verdicts.narrowed_out(rows)
        if out.any():
            names = pre_filters.narrowed_to or frozenset()
            yield pre_filters.narrowed_plugins, [Pinned(listed(names))], rows[out]
        for rejection in verdicts.by_filter(rows[~out]):
            details, rejected = self.details(rejection), rejection.rows
            for places in _together(details, len(rejected)):
                causes = [each.tell(places) for each in details if each.holds[places[0]]]
                yield rejection.plugin.name, causes[:_MOST_CAUSES] or [told(_OTHER)], rejected[places]


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
