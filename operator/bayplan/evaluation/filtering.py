"""The filter half of an evaluation: which rows a pod shape may use, who rejected the others, and why."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.row_follower import RowChange, RowFollower
from bayplan.evaluation.pre_filtering import PreFiltering
from bayplan.framework.interface import CycleState, FilterPlugin, Reads, Rejections
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Codes, Diagnosis, Status

FEW_ROWS = 8
"""Up to so many rows whose pods changed are looked at by themselves: numpy would take longer to be asked."""

_NOT_MANY_ROWS = 64
"""Up to so many rows are picked out rather than all looked at."""

_PASSED = -1
"""In `rejected_by`: no filter rejected the row."""

_RowFilter = Callable[[CycleState, PodInfo, NodeTable, int], int]


class FilterError(RuntimeError):
    """A filter could not answer about a node, which leaves the pod's cycle without an outcome."""


class Filtering:
    """Keeps, per row, the code of every filter that applies, and from those the feasible set.

    As in kube-scheduler a node's verdict is its first failing filter's, in profile order; here all filters are asked,
    which costs nothing when answers are kept, and the order only decides who is named.
    """

    def __init__(self, framework: Framework, nodes: NodeTable, state: CycleState) -> None:
        self._nodes = nodes
        self._state = state
        self._pre = PreFiltering(framework, nodes, state)
        self.follower = RowFollower(nodes)
        """Where in the table's logs the last `refresh` was."""
        self._by_reads: dict[Reads, list[tuple[int, FilterPlugin]]] = {}
        self._row_filters: list[tuple[int, _RowFilter]] = []
        self._answers: dict[int, Codes] = {}
        self._answered_rows: Rows | None = None
        self._codes: NDArray[np.int8] = np.zeros((0, 0), dtype=np.int8)
        self._allowed: NDArray[np.bool_] | None = None
        self._feasible: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._spread = True
        self._first: NDArray[np.intp] | None = None
        self._diagnosis: Diagnosis | None = None

    @property
    def rejection(self) -> Status | None:
        """Set when a PreFilter plugin rejected the pod as a whole; then no row is feasible."""
        return self._pre.rejection

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows passed every filter, `(capacity,) bool`."""
        return self._feasible

    def refresh(self, pod: PodInfo) -> None:
        """Bring the feasible set up to date with the node table."""
        change = self.follower.follow()
        everything = change.everything
        if everything or not self._pre.says_the_same(pod):
            everything |= self._pre.ask(pod, anew=everything)
            self._forget_verdicts()
        if everything:
            self._start_over()
        elif len(change.usage):
            self._forget_verdicts()
        if self.rejection is not None:
            return
        if everything or len(change.usage) > FEW_ROWS or len(change.objects) or self._by_reads[Reads.CLUSTER]:
            self._look(pod, change, everything=everything)
        else:
            self._look_at_each(pod, change.usage.tolist())

    def _look(self, pod: PodInfo, change: RowChange, *, everything: bool) -> None:
        """Ask about rows of which something changed, and find out which of all are feasible."""
        exists = self._nodes.exists
        if everything:
            rows = node_rows = self._nodes.rows()
        else:
            self._feasible[change.usage] = False
            rows, node_rows = change.usage[exists[change.usage]], change.objects[exists[change.objects]]
        if self._allowed is not None and len(node_rows):
            self._narrow(self._allowed, node_rows)
        nodes_changed = everything or len(change.objects) > 0
        touched = self._ask(pod, rows, node_rows, nodes_changed=nodes_changed)
        if len(touched):
            # Reduced over whole columns when most rows are asked about, as copying some out takes longer.
            most = 2 * len(touched) > self._nodes.capacity
            codes = np.bitwise_or.reduce(self._codes if most else self._codes[:, touched], axis=0)
            codes = codes[touched] if most else codes
            if int(codes.max()) >= Code.ERROR:
                self._raise_error(pod, touched)
            passed = codes == 0
            if self._allowed is not None:
                passed &= self._allowed[touched]
            self._feasible[touched] = passed

    def _look_at_each(self, pod: PodInfo, rows: Sequence[int]) -> None:
        """As `_look` where on a few rows pods changed and nothing else: what is left to do after most cycles."""
        for row in rows:
            self._feasible[row] = False
            if not self._nodes.exists[row]:
                continue
            for index, filter_row in self._row_filters:
                self._codes[index, row] = filter_row(self._state, pod, self._nodes, row)
            worst = max(self._codes[:, row].tolist(), default=Code.SUCCESS)
            if worst >= Code.ERROR:
                self._raise_error(pod, np.array([row], dtype=np.intp))
            self._feasible[row] = worst == Code.SUCCESS and (self._allowed is None or self._allowed[row])

    def _raise_error(self, pod: PodInfo, rows: Rows) -> None:
        """End the cycle if a filter could not answer about a row that no filter before it rejects."""
        if self._allowed is not None:
            rows = rows[self._allowed[rows]]
        codes = self._codes[:, rows]
        first = (codes != 0).argmax(axis=0)
        erring = np.flatnonzero(codes[first, np.arange(len(rows))] == Code.ERROR)
        if len(erring):
            index, row = int(first[erring[0]]), rows[erring[:1]]
            plugin = self._pre.filters[index]
            texts = [each.text for each in plugin.reasons(self._state, pod, self._nodes, row) if each.holds[0]]
            raise FilterError(f'running "{plugin.name}" filter plugin: {", ".join(texts)}')

    def take_spread(self) -> bool:
        """Whether, since the last call, rows may have changed that no log names; the answer is forgotten."""
        spread, self._spread = self._spread, False
        return spread

    def feasible_count(self) -> int:
        """How many nodes passed."""
        return int(np.count_nonzero(self.feasible))

    def candidates(self) -> Rows:
        """The rows a search visits: all existing nodes, or those a PreFilter narrowed it to."""
        rows = self._nodes.rows()
        return rows if self._allowed is None else rows[self._allowed[rows]]

    def rejected_by(self, rows: Rows) -> NDArray[np.intp]:
        """For each row the index of the first filter that rejects it, or -1, `(rows,) intp`."""
        if not len(self._pre.filters):
            return np.full(len(rows), _PASSED, dtype=np.intp)
        failing = self._codes[:, rows] != 0
        return np.where(failing.any(axis=0), failing.argmax(axis=0), _PASSED)

    def filter_at(self, index: int) -> FilterPlugin:
        """The filter that `rejected_by` calls `index`."""
        return self._pre.filters[index]

    def narrowed_out(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows a PreFilter left out of the search, `(rows,) bool`."""
        return np.zeros(len(rows), dtype=np.bool_) if self._allowed is None else ~self._allowed[rows]

    @property
    def narrowed_plugins(self) -> str:
        """The PreFilter plugins that narrowed the search, as one name or several."""
        return self._pre.narrowed_plugins

    @property
    def narrowed_reason(self) -> str:
        """What nodes left out by PreFilter plugins are told."""
        return f"node(s) didn't satisfy plugin(s) [{self.narrowed_plugins}]"

    def reasons_of(self, pod: PodInfo, index: int, rows: Rows) -> list[tuple[str, NDArray[np.bool_]]]:
        """The reasons of the filter `index` for rows it rejected, and for which of them each holds."""
        return [
            (reason.text, reason.holds)
            for reason in self._pre.filters[index].reasons(self._state, pod, self._nodes, rows)
        ]

    def _forget_verdicts(self) -> None:
        """Why nodes were rejected may be another now."""
        self._first = None
        self._diagnosis = None

    def _first_rejecting(self) -> NDArray[np.intp]:
        """As `rejected_by` of all existing rows, worked out once until something changes."""
        if self._first is None:
            self._first = self.rejected_by(self._nodes.rows())
        return self._first

    def rejections(self) -> Rejections:
        """The codes of all existing nodes, for PostFilter plugins."""
        rows = self._nodes.rows()
        if self.rejection is not None:
            codes = np.full(len(rows), self.rejection.code, dtype=np.int8)
            return Rejections(rows, codes, tuple(self._pre.filters), self._pre.of(self._pre.filters))
        first = self._first_rejecting()
        codes = np.zeros(len(rows), dtype=np.int8)
        rejected = first != _PASSED
        codes[rejected] = self._codes_at(first[rejected], rows[rejected])
        codes[self.narrowed_out(rows)] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return Rejections(rows, codes, tuple(self._pre.filters), self._pre.of(self._pre.filters))

    def diagnose(self, pod: PodInfo) -> Diagnosis:
        """Why no node fits; worked out once until something changes."""
        if self._diagnosis is None:
            self._diagnosis = self._diagnose(pod)
        return self._diagnosis

    def _diagnose(self, pod: PodInfo) -> Diagnosis:
        count = len(self._nodes)
        if self.rejection is not None:
            rejectors = frozenset(self.rejection.plugin.split())
            return Diagnosis(count, rejector_plugins=rejectors, pre_filter_message=self.rejection.message)
        rows = self._nodes.rows()
        reasons: dict[str, int] = {}
        plugins: set[str] = set()
        first = self._first_rejecting()
        out = self.narrowed_out(rows)
        if out.any():
            reasons[self.narrowed_reason] = int(np.count_nonzero(out))
            plugins.update(self._pre.narrowed_by)
            rows, first = rows[~out], first[~out]
        for index in np.unique(first[first != _PASSED]).tolist():
            plugins.add(self.filter_at(index).name)
            for text, holds in self.reasons_of(pod, index, rows[first == index]):
                if held := int(np.count_nonzero(holds)):
                    reasons[text] = reasons.get(text, 0) + held
        return Diagnosis(count, reasons=reasons, rejector_plugins=frozenset(plugins))

    def _codes_at(self, filters: NDArray[np.intp], rows: Rows) -> Codes:
        """What the filters numbered `filters` said of `rows`, one each."""
        return self._codes[filters, rows]

    def _start_over(self) -> None:
        capacity = self._nodes.capacity
        self._by_reads = {reads: [] for reads in Reads}
        for numbered in enumerate(self._pre.filters):
            self._by_reads[numbered[1].reads].append(numbered)
        self._row_filters = [(index, _row_filter(plugin)) for index, plugin in self._by_reads[Reads.USAGE]]
        self._answered_rows = None
        self._codes = np.zeros((len(self._pre.filters), capacity), dtype=np.int8)
        self._feasible = np.zeros(capacity, dtype=np.bool_)
        self._allowed = None if self._pre.narrowed_to is None else np.zeros(capacity, dtype=np.bool_)
        self._spread = True

    def _narrow(self, allowed: NDArray[np.bool_], rows: Rows) -> None:
        assert self._pre.narrowed_to is not None
        names, wanted = self._nodes.names, self._pre.narrowed_to
        allowed[rows] = [names[row] in wanted for row in rows.tolist()]

    def _ask(self, pod: PodInfo, rows: Rows, node_rows: Rows, *, nodes_changed: bool) -> Rows:
        """Have each filter look again at the rows its answer may have changed for; returns the rows looked at."""
        state, nodes, codes = self._state, self._nodes, self._codes
        if len(rows):
            for index, plugin in self._by_reads[Reads.USAGE]:
                codes[index, rows] = plugin.filter(state, pod, nodes, rows)
        if len(node_rows):
            for index, plugin in self._by_reads[Reads.NODE]:
                codes[index, node_rows] = plugin.filter(state, pod, nodes, node_rows)
        reading_all = self._by_reads[Reads.CLUSTER]
        if reading_all:
            # Even where a code stays, its reason may be another.
            self._forget_verdicts()
        if nodes_changed:
            reading_all = self._by_reads[Reads.NODES] + reading_all
        return self._ask_about_all(pod, reading_all, rows) if reading_all else rows

    def _ask_about_all(self, pod: PodInfo, numbered: Sequence[tuple[int, FilterPlugin]], touched: Rows) -> Rows:
        """Have filters look at all rows; returns `touched` and those whose code is another than before."""
        existing = self._nodes.rows()
        if existing is not self._answered_rows:
            self._answered_rows = existing
            self._answers.clear()
        for index, plugin in numbered:
            answer = plugin.filter(self._state, pod, self._nodes, existing)
            said = self._answers.get(index)
            differs = answer != (self._codes[index, existing] if said is None else said)
            # Copied, as the plugin may write to its own array in the next cycle.
            self._answers[index] = answer.copy()
            different = existing[differs]
            if len(different):
                self._codes[index, different] = answer[differs]
                self._spread = True
                self._forget_verdicts()
                few = len(different) + len(touched) < _NOT_MANY_ROWS
                touched = np.union1d(touched, different) if few else existing
        return touched


def _row_filter(plugin: FilterPlugin) -> _RowFilter:
    """The plugin's `filter_row`, or its `filter` asked about one row."""
    of_row: _RowFilter | None = getattr(plugin, "filter_row", None)
    return of_row or (lambda state, pod, nodes, row: int(plugin.filter(state, pod, nodes, np.array([row]))[0]))
