"""The filter half of an evaluation: which rows a pod shape may use, who rejected the others, and why."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.row_follower import RowFollower
from bayplan.framework.interface import (
    CycleState,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    Rejections,
)
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Codes, Diagnosis, Status

_FEW_ROWS = 64
"""Up to so many rows are looked at one by one rather than all."""

_PASSED = -1
"""In `rejected_by`: no filter rejected the row."""


class FilterError(RuntimeError):
    """A filter could not answer about a node, which leaves the pod's cycle without an outcome."""


class Filtering:
    """Keeps, per row, the code of every filter that applies, and from those the feasible set.

    As in kube-scheduler a node's verdict is its first failing filter's, in profile order; here all filters are asked,
    which costs nothing when answers are kept, and the order only decides who is named.
    """

    def __init__(self, framework: Framework, nodes: NodeTable, state: CycleState) -> None:
        self._framework = framework
        self._nodes = nodes
        self._state = state
        self._pre_filtered: dict[str, PreFilterResult] = {}
        self._asked_again: list[PreFilterPlugin] = []
        self.follower = RowFollower(nodes)
        """Where in the table's logs the last `refresh` was."""
        self._filters: list[FilterPlugin] = []
        self._by_reads: dict[Reads, list[tuple[int, FilterPlugin]]] = {}
        self._answers: dict[int, Codes] = {}
        self._answered_rows: Rows | None = None
        self._codes: NDArray[np.int8] = np.zeros((0, 0), dtype=np.int8)
        self._narrowed_to: frozenset[str] | None = None
        self._narrowed_by: list[str] = []
        self._allowed: NDArray[np.bool_] | None = None
        self._feasible: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self.rejection: Status | None = None
        """Set when a PreFilter plugin rejected the pod as a whole; then no row is feasible."""
        self._spread = True
        self._first: NDArray[np.intp] | None = None
        self._diagnosis: Diagnosis | None = None

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows passed every filter, `(capacity,) bool`."""
        return self._feasible

    def refresh(self, pod: PodInfo) -> None:
        """Bring the feasible set up to date with the node table."""
        change = self.follower.follow()
        everything = change.everything
        if everything or not self._say_the_same(pod):
            everything |= self._pre_filter(pod, anew=everything)
            self._forget_verdicts()
        if everything:
            self._start_over()
            rows = node_rows = self._nodes.rows()
        else:
            rows, node_rows = change.usage, change.objects
            if len(rows):
                self._forget_verdicts()
                self._feasible[rows] = False
                rows = rows[self._nodes.exists[rows]]
                node_rows = node_rows[self._nodes.exists[node_rows]]
        if self.rejection is not None:
            return
        if self._allowed is not None and len(node_rows):
            self._narrow(self._allowed, node_rows)
        touched = self._ask(pod, rows, node_rows, nodes_changed=everything or len(change.objects) > 0)
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

    def _raise_error(self, pod: PodInfo, rows: Rows) -> None:
        """End the cycle if a filter could not answer about a row that no filter before it rejects."""
        if self._allowed is not None:
            rows = rows[self._allowed[rows]]
        codes = self._codes[:, rows]
        first = (codes != 0).argmax(axis=0)
        erring = np.flatnonzero(codes[first, np.arange(len(rows))] == Code.ERROR)
        if len(erring):
            index, row = int(first[erring[0]]), rows[erring[:1]]
            plugin = self._filters[index]
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
        if not len(self._filters):
            return np.full(len(rows), _PASSED, dtype=np.intp)
        failing = self._codes[:, rows] != 0
        return np.where(failing.any(axis=0), failing.argmax(axis=0), _PASSED)

    def filter_at(self, index: int) -> FilterPlugin:
        """The filter that `rejected_by` calls `index`."""
        return self._filters[index]

    def narrowed_out(self, rows: Rows) -> NDArray[np.bool_]:
        """Which rows a PreFilter left out of the search, `(rows,) bool`."""
        return np.zeros(len(rows), dtype=np.bool_) if self._allowed is None else ~self._allowed[rows]

    @property
    def narrowed_plugins(self) -> str:
        """The PreFilter plugins that narrowed the search, as one name or several."""
        return " ".join(sorted(self._narrowed_by))

    @property
    def narrowed_reason(self) -> str:
        """What nodes left out by PreFilter plugins are told."""
        return f"node(s) didn't satisfy plugin(s) [{self.narrowed_plugins}]"

    def reasons_of(self, pod: PodInfo, index: int, rows: Rows) -> list[tuple[str, NDArray[np.bool_]]]:
        """The reasons of the filter `index` for rows it rejected, and for which of them each holds."""
        return [
            (reason.text, reason.holds) for reason in self._filters[index].reasons(self._state, pod, self._nodes, rows)
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
            return Rejections(rows, codes, tuple(self._filters), self._pre_filters_of(self._filters))
        first = self._first_rejecting()
        codes = np.zeros(len(rows), dtype=np.int8)
        rejected = first != _PASSED
        codes[rejected] = self._codes_at(first[rejected], rows[rejected])
        codes[self.narrowed_out(rows)] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return Rejections(rows, codes, tuple(self._filters), self._pre_filters_of(self._filters))

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
            plugins.update(self._narrowed_by)
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

    def _pre_filters_of(self, filters: Sequence[FilterPlugin]) -> tuple[PreFilterPlugin, ...]:
        names = {plugin.name for plugin in filters}
        return tuple(plugin for plugin in self._framework.pre_filters if plugin.name in names)

    def _say_the_same(self, pod: PodInfo) -> bool:
        """Whether the PreFilter plugins that read the cluster still say what they said."""
        for plugin in self._asked_again:
            said, says = self._pre_filtered[plugin.name], plugin.pre_filter(self._state, pod, self._nodes)
            if says is not said and says != said:
                return False
        return True

    def _pre_filter(self, pod: PodInfo, *, anew: bool) -> bool:
        """Ask the PreFilter plugins: they may reject the pod, narrow the search, or switch their filter off.

        Unless `anew`, those that do not read the cluster are not asked again, and said what they said. True if the
        outcome differs from last time, so that every row must be asked again.
        """
        before = (self.rejection, self._narrowed_to, self._filters)
        self.rejection = None
        self._narrowed_to = None
        self._narrowed_by = []
        self._asked_again = []
        skipped: set[str] = set()
        for plugin in self._framework.pre_filters:
            kept = None if anew else self._pre_filtered.get(plugin.name)
            if kept is None or (not kept.lasting and pre_reads(plugin) is Reads.CLUSTER):
                kept = plugin.pre_filter(self._state, pod, self._nodes)
            result = self._pre_filtered[plugin.name] = kept
            if not result.lasting and pre_reads(plugin) is Reads.CLUSTER:
                self._asked_again.append(plugin)
            status = result.status
            if status.code is Code.SKIP:
                skipped.add(plugin.name)
            elif status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                self.rejection = Status(status.code, status.reasons, status.plugin or plugin.name)
                break
            elif not status.ok:
                self.rejection = self.rejection or Status(status.code, status.reasons, status.plugin or plugin.name)
            if result.node_names is not None:
                self._narrowed_by.append(plugin.name)
                known: frozenset[str] | None = self._narrowed_to
                self._narrowed_to = result.node_names if known is None else known & result.node_names
                if not self._narrowed_to:
                    self.rejection = self._nothing_left()
                    break
        self._filters = [plugin for plugin in self._framework.filters if plugin.name not in skipped]
        return before != (self.rejection, self._narrowed_to, self._filters)

    def _nothing_left(self) -> Status:
        names = sorted(self._narrowed_by)
        text = (
            f"node(s) didn't satisfy plugin {names[0]}"
            if len(names) == 1
            else f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously"
        )
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (text,), " ".join(names))

    def _start_over(self) -> None:
        capacity = self._nodes.capacity
        self._by_reads = {reads: [] for reads in Reads}
        for numbered in enumerate(self._filters):
            self._by_reads[numbered[1].reads].append(numbered)
        self._answered_rows = None
        self._codes = np.zeros((len(self._filters), capacity), dtype=np.int8)
        self._feasible = np.zeros(capacity, dtype=np.bool_)
        self._allowed = None if self._narrowed_to is None else np.zeros(capacity, dtype=np.bool_)
        self._spread = True

    def _narrow(self, allowed: NDArray[np.bool_], rows: Rows) -> None:
        assert self._narrowed_to is not None
        names, wanted = self._nodes.names, self._narrowed_to
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
                few = len(different) + len(touched) < _FEW_ROWS
                touched = np.union1d(touched, different) if few else existing
        return touched


def pre_reads(plugin: PreFilterPlugin | PreScorePlugin) -> Reads:
    """What the answers of a plugin's PreFilter and PreScore depend on; as its `reads` unless it says otherwise."""
    return getattr(plugin, "pre_reads", getattr(plugin, "reads", Reads.NODE))
