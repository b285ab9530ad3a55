"""Who rejected which rows and why, read from both rounds of filters when somebody wants to know."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.filter_round import FilterRound
from bayplan.evaluation.nominated_round import NominatedRound
from bayplan.evaluation.pre_filters import PreFilters
from bayplan.framework.interface import FilterPlugin, Rejections
from bayplan.framework.status import Code, Diagnosis, Reason

_PASSED = -1
"""In `rejected_by`: no filter rejected the row."""


class Verdicts:
    """Explains what both rounds of filters found at their last refresh, and keeps it until something changes.

    A node's verdict is that of the first filter that rejects it, in either round. Filters of the round with nominated
    pods are numbered behind those of the plain one.
    """

    def __init__(
        self, pre_filters: PreFilters, plain: FilterRound, nominated: NominatedRound | None, nodes: NodeTable
    ) -> None:
        self.pre_filters = pre_filters
        self._plain = plain
        self._nominated = nominated
        self._nodes = nodes
        self._first: NDArray[np.intp] | None = None
        self._diagnosis: Diagnosis | None = None

    def forget(self) -> None:
        """Work out anew why nodes were rejected, when asked next."""
        self._first = None
        self._diagnosis = None

    def rejected_by(self, rows: Rows) -> NDArray[np.intp]:
        """For each row the number of the first filter that rejects it, or -1, `(rows,) intp`."""
        if not len(self.pre_filters.filters):
            return np.full(len(rows), _PASSED, dtype=np.intp)
        failing = self._plain.codes[:, rows] != 0
        first = np.where(failing.any(axis=0), failing.argmax(axis=0), _PASSED)
        if self._nominated is not None:
            self._nominated.put_first_rejecting(first, rows)
        return first

    def solely_rejected_by(self, rows: Rows) -> NDArray[np.intp]:
        """For each row the number of the only filter that rejects it without nominated pods, or -1, `(rows,) intp`."""
        if not len(self.pre_filters.filters):
            return np.full(len(rows), _PASSED, dtype=np.intp)
        failing = self._plain.codes[:, rows] != 0
        sole = (np.count_nonzero(failing, axis=0) == 1) & ~self.narrowed_out(rows)
        return np.where(sole, failing.argmax(axis=0), _PASSED)

    def is_plain(self, number: int) -> bool:
        """Whether the filter `number` is that of the round without nominated pods."""
        return number < len(self.pre_filters.filters)

    def filter_at(self, number: int) -> FilterPlugin:
        """The filter that `rejected_by` calls `number`, in either round."""
        return self.pre_filters.filters[number % len(self.pre_filters.filters)]

    def narrowed_out(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows a PreFilter left out of the search, `(rows,) bool`."""
        allowed = self._plain.allowed
        return np.zeros(len(rows), dtype=np.bool_) if allowed is None else ~allowed[rows]

    def reasons_of(self, pod: PodInfo, number: int, rows: Rows) -> Iterable[Reason]:
        """The reasons of the filter `number` for rows it rejected."""
        plugin = self.filter_at(number)
        if self._nominated is not None and number >= len(self.pre_filters.filters):
            return self._nominated.reasons_of(pod, plugin, rows)
        return plugin.reasons(self._plain.state, pod, self._nodes, rows)

    def rejections(self) -> Rejections:
        """The codes of all existing nodes, for PostFilter plugins."""
        rows, filters = self._nodes.rows(), self.pre_filters.filters
        if self.pre_filters.rejection is not None:
            codes = np.full(len(rows), self.pre_filters.rejection.code, dtype=np.int8)
        else:
            first = self._first_rejecting()
            codes = np.zeros(len(rows), dtype=np.int8)
            rejected = first != _PASSED
            numbers, at = first[rejected], rows[rejected]
            if self._nominated is None:
                codes[rejected] = self._plain.codes[numbers, at]
            else:
                both = np.concatenate((self._plain.codes, self._nominated.codes))
                codes[rejected] = both[numbers, at]
            if self._plain.allowed is not None:
                codes[self.narrowed_out(rows)] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        seen = None if self._nominated is None else self._nominated.seen
        return Rejections(rows, codes, tuple(filters), self.pre_filters.of(filters), seen, self.pre_filters.ran)

    def diagnose(self, pod: PodInfo) -> Diagnosis:
        """Why no node fits."""
        if self._diagnosis is None:
            self._diagnosis = self._diagnose(pod)
        return self._diagnosis

    def _first_rejecting(self) -> NDArray[np.intp]:
        """As `rejected_by` of all existing rows."""
        if self._first is None:
            self._first = self.rejected_by(self._nodes.rows())
        return self._first

    def _diagnose(self, pod: PodInfo) -> Diagnosis:
        count, rejection = len(self._nodes), self.pre_filters.rejection
        if rejection is not None:
            rejectors = frozenset(rejection.plugin.split())
            return Diagnosis(count, rejector_plugins=rejectors, pre_filter_message=rejection.message)
        rows = self._nodes.rows()
        reasons: dict[str, int] = {}
        plugins: set[str] = set()
        first = self._first_rejecting()
        out = self.narrowed_out(rows)
        if out.any():
            reasons[self.pre_filters.narrowed_reason] = int(np.count_nonzero(out))
            plugins.update(self.pre_filters.narrowed_by)
            rows, first = rows[~out], first[~out]
        for number in np.unique(first[first != _PASSED]).tolist():
            plugins.add(self.filter_at(number).name)
            for reason in self.reasons_of(pod, number, rows[first == number]):
                if held := int(np.count_nonzero(reason.holds)):
                    reasons[reason.text] = reasons.get(reason.text, 0) + held
        return Diagnosis(count, reasons=reasons, rejector_plugins=frozenset(plugins))
