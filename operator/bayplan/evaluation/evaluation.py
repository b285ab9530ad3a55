"""Masks and scores of one pod shape over all nodes, kept current as rows change, and who rejected which rows and why.

Read on in this order: pre_filters, filter_round, nominated_round, then score_totals and raw_score; few_rows
is the shortcut of both halves.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import EVERYTHING, NOTHING, RowChange, RowFollower, Rows, together
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.filter_round import FilterRound
from bayplan.evaluation.nominated_round import NominatedRound
from bayplan.evaluation.pre_filters import ANYWHERE, PreFilters, not_satisfied
from bayplan.evaluation.score_totals import ScoreTotals
from bayplan.framework.interface import CycleState, FilterPlugin, HoldsArrays, Rejections, Scores
from bayplan.framework.nominated_table import NominatedTable, Nominations
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Diagnosis, Reason

_PASSED = -1
"""In place of a filter's: none rejects the row."""

_UNSCORED_ROWS: Final = 1024
"""When several changes leave more rows than this filtered but not scored, the next `totals` scores all rows.

Once all rows are to be scored the count stands at this limit, so that what changes after that joins them."""


@dataclass(frozen=True, slots=True, eq=False)
class FilterRejection:
    """The rows that one filter rejects, in the plain round or in that with nominated pods."""

    plugin: FilterPlugin
    rows: Rows
    found_in: FilterRound | NominatedRound

    @property
    def is_plain(self) -> bool:
        """Whether it rejects them without nominated pods."""
        return isinstance(self.found_in, FilterRound)

    def reasons(self, pod: PodInfo) -> Iterable[Reason]:
        """Why it rejects them."""
        return self.found_in.reasons_of(pod, self.plugin, self.rows)


class Verdicts:
    """Explains what both rounds of filters found at their last refresh, and keeps it until something changes.

    A node's verdict is that of the first filter that rejects it, in either round.
    """

    def __init__(
        self, pre_filters: PreFilters, plain: FilterRound, nominated: NominatedRound | None, nodes: NodeTable
    ) -> None:
        self.pre_filters = pre_filters
        self._plain = plain
        self._nominated = nominated
        self._rounds = (plain,) if nominated is None else (plain, nominated)
        self._nodes = nodes
        self._first: NDArray[np.intp] | None = None
        self._diagnoses: dict[bool, Diagnosis] = {}

    def forget(self) -> None:
        """Work out anew why nodes were rejected, when asked next."""
        self._first = None
        self._diagnoses.clear()

    def by_filter(self, rows: Rows) -> Iterator[FilterRejection]:
        """Divide those of `rows` that are rejected by the first filter that does it."""
        return self._divide(rows, self._first_of(rows))

    def solely_by_filter(self, pod: PodInfo) -> Iterator[FilterRejection]:
        """Divide the rows that a single filter rejects without nominated pods by that."""
        rows = self._nodes.rows()
        failing = self._plain.everywhere(pod, rows) != 0
        sole = (np.count_nonzero(failing, axis=0) == 1) & ~self.narrowed_out(rows)
        return self._divide(rows, np.where(sole, _first_failing(failing), _PASSED))

    def _divide(self, rows: Rows, first: NDArray[np.intp]) -> Iterator[FilterRejection]:
        filters = self.pre_filters.filters
        # Counting takes less than sorting them, as there are few.
        for number in np.flatnonzero(np.bincount(first + 1, minlength=1)[1:]).tolist():
            found_in, place = divmod(number, len(filters))
            yield FilterRejection(filters[place], rows[first == number], self._rounds[found_in])

    def _first_of(self, rows: Rows) -> NDArray[np.intp]:
        """For each row the place of the first filter that rejects it, or -1, `(rows,) intp`.

        Those of the round with nominated pods are counted on from the last of the plain one.
        """
        first = _first_failing(self._plain.codes.take(rows, axis=1))
        if self._nominated is not None:
            blocked = self._nominated.blocked[rows]
            if blocked.any():
                found, is_plain = self._nominated.first_rejecting(rows[blocked])
                first[blocked] = np.where(is_plain, found, found + len(self.pre_filters.filters))
        return first

    def narrowed_out(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows a PreFilter left out of the search, `(rows,) bool`."""
        allowed = self._plain.allowed
        return np.zeros(len(rows), dtype=np.bool_) if allowed is None else ~allowed[rows]

    def rejections(self) -> Rejections:
        """The codes of all existing nodes, for PostFilter plugins."""
        rows, filters = self._nodes.rows(), self.pre_filters.filters
        if self.pre_filters.rejection is not None:
            codes = np.full(len(rows), self.pre_filters.rejection.code, dtype=np.int8)
            first = np.full(len(rows), _PASSED)
        else:
            first = self._first_rejecting()
            codes = np.zeros(len(rows), dtype=np.int8)
            rejected = first != _PASSED
            plain = self._plain.codes
            of_rounds = plain if self._nominated is None else np.concatenate([plain, self._nominated.codes])
            codes[rejected] = of_rounds[first[rejected], rows[rejected]]
            if self._plain.allowed is not None:
                codes[self.narrowed_out(rows)] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
                first = np.where(self.narrowed_out(rows), _PASSED, first)
            first = np.where(first == _PASSED, _PASSED, first % max(len(filters), 1))
        nominated = None if self._nominated is None else self._nominated.nominated
        pre_filters = self.pre_filters.belonging_to(filters)
        return Rejections(rows, codes, tuple(filters), pre_filters, nominated, self.pre_filters.ran, first)

    def diagnose(
        self, pod: PodInfo, *, with_reasons: bool = True, within: Rows | None = None, tried: int | None = None
    ) -> Diagnosis:
        """Why no node fits, of those `within` if given; without reasons only who rejects the pod, which is quick.

        `tried` is the row of the pod's nominated node, which a search that is narrowed begins with.
        """
        if within is not None or (tried is not None and self._plain.allowed is not None):
            rows = self._nodes.rows() if within is None else within
            first = self._first_rejecting() if within is None else self._first_of(within)
            return self._diagnose(pod, rows, first, with_reasons=with_reasons, tried=tried)
        known = self._diagnoses.get(with_reasons)
        if known is None:
            rows = self._nodes.rows()
            known = self._diagnose(pod, rows, self._first_rejecting(), with_reasons=with_reasons)
            self._diagnoses[with_reasons] = known
        return known

    def _first_rejecting(self) -> NDArray[np.intp]:
        """As `_first_of` all existing rows."""
        if self._first is None:
            self._first = self._first_of(self._nodes.rows())
        return self._first

    def _diagnose(
        self, pod: PodInfo, rows: Rows, first: NDArray[np.intp], *, with_reasons: bool, tried: int | None = None
    ) -> Diagnosis:
        count, rejection = len(rows), self.pre_filters.rejection
        if rejection is not None:
            rejectors = frozenset(rejection.plugin.split())
            return Diagnosis(count, rejector_plugins=rejectors, pre_filter_message=rejection.message)
        reasons: dict[str, int] = {}
        plugins: set[str] = set()
        out = self.narrowed_out(rows)
        if out.any():
            plugins.update(self.pre_filters.narrowed_by)
            # It has its own reason, and who rejects it is named with those that narrowed the search (upstream:
            # evaluateNominatedNode, which adds to the set of these).
            looked_at = (rows == tried) & (first != _PASSED)
            plugins.update(each.plugin.name for each in self._divide(rows[looked_at], first[looked_at]))
            out &= ~looked_at
            if out.any():
                reasons[not_satisfied(plugins)] = int(np.count_nonzero(out))
            rows, first = rows[~out], first[~out]
        for each in self._divide(rows, first):
            plugins.add(each.plugin.name)
            for reason in each.reasons(pod) if with_reasons else ():
                if held := int(np.count_nonzero(reason.holds)):
                    reasons[reason.text] = reasons.get(reason.text, 0) + held
        return Diagnosis(count, reasons=reasons, rejector_plugins=frozenset(plugins))


def _first_failing(failing: NDArray[np.bool_ | np.int8]) -> NDArray[np.intp]:
    """For each column the first line in which it is not 0, or -1, `(columns,) intp`; there may be no lines.

    There are few lines: one after the other they take half of what finding a maximum in each column does.
    """
    first = np.full(failing.shape[1], _PASSED, dtype=np.intp)
    for line in range(len(failing) - 1, -1, -1):
        np.putmask(first, failing[line], line)
    return first


class Evaluation:
    """What one profile says of one pod shape: which rows are feasible, and the total score of each.

    Pods with the same `Framework.signature` that respect the same nominations (`nominated`) share an evaluation.
    `refresh` brings the filters up to date, `totals` the scores; both redo only rows that changed, unless a plugin
    depends on more than its own row. As in kube-scheduler a node's verdict is its first failing filter's, in profile
    order; here all filters are run but those `asked_late`, which costs nothing when answers are kept, and the order
    only decides who is named.
    """

    def __init__(
        self,
        framework: Framework,
        nodes: NodeTable,
        nominations: Nominations | None = None,
        nominated: NominatedTable | None = None,
    ) -> None:
        # Nominations know whoever keeps evaluations: those that respect none do not hold them.
        respected = () if nominations is None or nominated is None else (nominations, nominated)
        self.anew = partial(Evaluation, framework, nodes, *respected)
        """Makes one that respects the same and knows nothing yet, to try out what would change the verdict."""
        state = self.state = CycleState()
        """What plugins wrote in PreFilter, Filter and PreScore; the pods that share the evaluation share it."""
        self.pre_filters = PreFilters(framework, nodes, state)
        self._plain = FilterRound(self.pre_filters, nodes, state, framework.calls)
        self._nominated = NominatedRound(self._plain, nodes, *respected) if respected else None
        self.verdicts = Verdicts(self.pre_filters, self._plain, self._nominated, nodes)
        self.feasible: NDArray[np.bool_] = self._plain.feasible
        """Which rows passed every filter in both rounds, `(capacity,) bool`."""
        self.scored = ScoreTotals(framework, nodes, state)
        self._follower = RowFollower(nodes)
        self._unscored: list[RowChange] = []
        self._unscored_rows = 0
        self._feasible_anywhere = False
        """Whether any row may have become feasible, or not feasible, since the last `totals`."""
        self.is_whole = True
        """Whether all that it says is of one time: not once a plugin raised, before all had been asked."""

    @property
    def nbytes(self) -> int:
        """What its arrays and those of its plugins take, without the nominated pods it respects."""
        of_plugins = [value.nbytes for value in self.state.values() if isinstance(value, HoldsArrays)]
        nominated = 0 if self._nominated is None else self._nominated.nbytes + self.feasible.nbytes
        return self._plain.nbytes + nominated + self.scored.nbytes + sum(of_plugins)

    def refresh(self, pod: PodInfo) -> None:
        """Bring the feasible set up to date with the node table."""
        self.is_whole = False
        change = self._follower.follow()
        self._feasible_anywhere |= self._filter(pod, change) == ANYWHERE
        if change.everything or len(change.usage):
            self._unscored_rows += len(change.usage)
            if change.everything or (self._unscored and self._unscored_rows > _UNSCORED_ROWS):
                self._unscored, self._unscored_rows = [EVERYTHING], _UNSCORED_ROWS
            else:
                self._unscored.append(change)
        self.is_whole = True

    @property
    def suitable(self) -> NDArray[np.bool_]:
        """Which rows no filter rejects for their node's sake alone, whatever pods come and go, `(capacity,) bool`."""
        return self._plain.suitable

    def searched(self, rows: Rows) -> Rows:
        """Those of `rows` that a search visits: all, or what a PreFilter narrowed it to; in the same order."""
        allowed = self._plain.allowed
        return rows if allowed is None else rows[allowed[rows]]

    def totals(self, pod: PodInfo) -> NDArray[np.int64]:
        """Score what `refresh` found changed since the last call, and return the sums; call after `refresh`.

        They are the weighted sums of normalised scores, or NOT_FEASIBLE, `(capacity,) int64`.
        """
        unscored, anywhere = self._unscored, self._feasible_anywhere
        self._unscored, self._unscored_rows, self._feasible_anywhere = [], 0, False
        change = unscored[0] if len(unscored) == 1 else _together(unscored)
        self.is_whole = False
        found = self.scored.refresh(pod, change, self.feasible, anywhere=anywhere)
        self.is_whole = True
        return found

    def scores(self, pod: PodInfo, rows: Rows) -> dict[str, Scores]:
        """Each plugin's normalised, weighted scores if exactly `rows` were the feasible nodes, `(rows,) int64` each.

        For a sampled search, where normalisation sees only the sample, and for explanations.
        """
        self.totals(pod)
        self.is_whole = False
        found = self.scored.each(pod, rows)
        self.is_whole = True
        return found

    def scores_at(self, pod: PodInfo, row: int, rows: Rows | None = None) -> dict[str, int]:
        """What `scores` gives one of `rows`, or of all feasible ones."""
        self.totals(pod)
        self.is_whole = False
        found = self.scored.at(pod, row, np.flatnonzero(self.feasible) if rows is None else rows)
        self.is_whole = True
        return found

    def totals_of(self, pod: PodInfo, rows: Rows) -> NDArray[np.int64]:
        """The sums of `scores`, `(rows,) int64`."""
        total = np.zeros(len(rows), dtype=np.int64)
        for scores in self.scores(pod, rows).values():
            total += scores
        return total

    def _filter(self, pod: PodInfo, change: RowChange) -> int:
        """Bring the feasible set up to date with the node table. Returns UNCHANGED, ROWS or ANYWHERE.

        All rows are filtered `anew` where the table's logs do not say what changed, or where PreFilter plugins have
        others be filtered, or by other filters.
        """
        plain, nominated = self._plain, self._nominated
        changed = self.pre_filters.refresh(pod, anew=change.everything)
        anew = changed == ANYWHERE
        if anew:
            plain.start_over()
            if nominated is not None:
                nominated.start_over()
        if self.pre_filters.rejection is None:
            found = plain.refresh(pod, change, anew=anew)
            if nominated is not None:
                found = max(found, nominated.refresh(pod))
            changed = max(changed, found)
        if changed:
            self.feasible = plain.feasible if nominated is None else plain.feasible & ~nominated.blocked
        if changed or len(change.usage):
            self.verdicts.forget()
        return changed


def _together(changes: list[RowChange]) -> RowChange:
    """What changed in any of `changes`."""
    if not changes:
        return NOTHING
    usage = together(*[change.usage for change in changes])
    objects = together(*[change.objects for change in changes])
    return RowChange(any(change.everything for change in changes), usage, objects)
