"""The plain round of filters: each is run again where what it reads changed, and its codes are kept."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import RowChange, Rows, together
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.few_rows import FEW_ROWS, FewRowsFilters
from bayplan.evaluation.pre_filters import ANYWHERE, ROWS, UNCHANGED, PreFilters
from bayplan.framework.interface import CycleState, FilterPlugin
from bayplan.framework.plugin_calls import PluginCalls
from bayplan.framework.status import Code, Codes, Reads, Reason

_NOT_MANY_ROWS = 64
"""Fewer rows are picked out rather than all looked at."""

NumberedFilters = Sequence[tuple[int, FilterPlugin]]
"""Filters with their places among those that apply."""


class FilterError(RuntimeError):
    """A filter could not answer about a node, which leaves the pod's cycle without an outcome."""


class FilterRound:
    """Keeps, per row, the code of every filter that applies, and from those the feasible set."""

    def __init__(self, pre_filters: PreFilters, nodes: NodeTable, state: CycleState, calls: PluginCalls) -> None:
        self.pre_filters = pre_filters
        self._calls = calls
        self.state = state
        self._nodes = nodes
        self.start_over()

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        answers = sum(answer.nbytes for answer in self._answers.values())
        return self.codes.nbytes + self.feasible.nbytes + (0 if self.allowed is None else self.allowed.nbytes) + answers

    @property
    def suitable(self) -> NDArray[np.bool_]:
        """Which rows pass the filters that look at nodes and at no pods, `(capacity,) bool`."""
        of_nodes = [number for reads in (Reads.NODE, Reads.NODES) for number, _ in self.by_reads[reads]]
        passed: NDArray[np.bool_] = self._nodes.exists & ~self.codes[of_nodes].any(axis=0)
        return passed if self.allowed is None else passed & self.allowed

    def start_over(self) -> None:
        """Forget all codes; the filters are those that the PreFilters left."""
        capacity, filters = self._nodes.capacity, self.pre_filters.filters
        self.by_reads: dict[Reads, list[tuple[int, FilterPlugin]]] = {reads: [] for reads in Reads}
        """The filters that apply, numbered, by what they read."""
        for numbered in enumerate(filters):
            self.by_reads[numbered[1].traits.reads].append(numbered)
        self._answers: dict[int, Codes] = {}
        self._answered_rows: Rows | None = None
        self.codes: NDArray[np.int8] = np.zeros((len(filters), capacity), dtype=np.int8)
        """What each filter that applies says of each row, `(filters, capacity) int8`."""
        self.feasible: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        is_narrowed = self.pre_filters.narrowed_to is not None
        self.allowed: NDArray[np.bool_] | None = np.zeros(capacity, dtype=np.bool_) if is_narrowed else None
        """The rows that PreFilters narrowed the search to, `(capacity,) bool`, or None."""
        self._runs = {
            reads: self._calls.count((plugin.name for _, plugin in self.by_reads[reads]), "Filter")
            for reads in (Reads.USAGE, Reads.NODE)
        }
        self._reading_cluster = self.by_reads[Reads.CLUSTER]
        self._reading_all = {
            index: self._calls.count((plugin.name,), "Filter")
            for index, plugin in (*self.by_reads[Reads.NODES], *self._reading_cluster)
        }
        self._few_rows = FewRowsFilters(
            self.by_reads[Reads.USAGE], self.codes, self.allowed, self.feasible, self._calls
        )

    def refresh(self, pod: PodInfo, change: RowChange, *, anew: bool) -> int:
        """Run filters where they may say something else, on all rows if `anew`.

        Returns UNCHANGED, ROWS or ANYWHERE, by which rows may have another verdict.

        Raises:
            FilterError: a filter answered ERROR for a row that no filter before it rejects.
        """
        if anew or len(change.usage) > FEW_ROWS or len(change.objects) or self._reading_cluster:
            return self._refresh_many(pod, change, anew=anew)
        if not len(change.usage):
            return UNCHANGED
        erring = self._few_rows.run(self.state, pod, self._nodes, change.usage.tolist())
        if erring:
            self._raise_error(pod, np.array(erring, dtype=np.intp))
        return ROWS

    def _refresh_many(self, pod: PodInfo, change: RowChange, *, anew: bool) -> int:
        nodes = self._nodes
        if anew:
            rows = node_rows = nodes.rows()
        else:
            self.feasible[change.usage] = False
            rows, node_rows = (rows[nodes.exists[rows]] for rows in (change.usage, change.objects))
        if self.allowed is not None and len(node_rows):
            wanted = self.pre_filters.narrowed_to or ()
            self.allowed[node_rows] = [nodes.names[row] in wanted for row in node_rows.tolist()]
        for reads, to_filter in ((Reads.USAGE, rows), (Reads.NODE, node_rows)):
            if len(to_filter):
                self._runs[reads].value += len(to_filter)
                for index, plugin in self.by_reads[reads]:
                    answer = self._calls.of(plugin).filter(self.state, pod, nodes, to_filter)
                    self.codes[index, to_filter] = answer
        reading_all = self._reading_cluster
        if anew or len(change.objects):
            reading_all = self.by_reads[Reads.NODES] + reading_all
        different = self._filter_all(pod, reading_all)
        if different is not None:
            few = len(different) + len(rows) < _NOT_MANY_ROWS
            rows = together(rows, different) if few else nodes.rows()
        self._combine(pod, rows)
        # Even where a code of a filter that reads the cluster stays, its reason may be another.
        return ROWS if different is None else ANYWHERE

    def reasons_of(self, pod: PodInfo, plugin: FilterPlugin, rows: Rows) -> Iterable[Reason]:
        """The reasons of a filter for rows it rejected."""
        return plugin.reasons(self.state, pod, self._nodes, rows)

    def everywhere(self, pod: PodInfo, rows: Rows) -> NDArray[np.int8]:
        """What each filter says of rows whatever those before it say, `(filters, rows) int8`; explanations rely on it.

        It is asked for all rows that a search visits, as plugins then know only these.
        """
        codes = self.codes[:, rows]
        for index, plugin in self._reading_cluster:
            if plugin.traits.asked_late:
                codes[index] = plugin.filter(self.state, pod, self._nodes, rows)
        return codes

    def _ask(self, pod: PodInfo, index: int, plugin: FilterPlugin, existing: Rows) -> Codes:
        """What a filter says of all rows, or, where it is asked late, of those that no filter before it rejects."""
        asked = existing
        if plugin.traits.asked_late:
            is_asked = ~self.codes[:index, existing].any(axis=0)
            asked = existing[is_asked if self.allowed is None else is_asked & self.allowed[existing]]
        self._reading_all[index].value += len(asked)
        codes = self._calls.of(plugin).filter(self.state, pod, self._nodes, asked)
        if len(asked) == len(existing):
            return codes
        answer: Codes = np.zeros(len(existing), dtype=np.int8)
        answer[np.searchsorted(existing, asked)] = codes
        return answer

    def _filter_all(self, pod: PodInfo, numbered: NumberedFilters) -> Rows | None:
        """Run filters on all rows; the rows whose code is another than before, None if there are none."""
        existing = self._nodes.rows()
        if existing is not self._answered_rows:
            self._answered_rows = existing
            self._answers.clear()
        found: list[Rows] = []
        for index, plugin in numbered:
            answer = self._ask(pod, index, plugin, existing)
            before = self._answers.get(index)
            differs = answer != (self.codes[index, existing] if before is None else before)
            # Copied, as the plugin may write to its own array in the next cycle.
            self._answers[index] = answer.copy()
            different = existing[differs]
            if len(different):
                self.codes[index, different] = answer[differs]
                found.append(different)
        return np.concatenate(found) if found else None

    def _combine(self, pod: PodInfo, rows: Rows) -> None:
        """Find out which of `rows` every filter passed."""
        if not len(rows):
            return
        # Reduced over whole columns when most rows are asked about, as copying some out takes longer.
        most = 2 * len(rows) > self._nodes.capacity
        worst = np.bitwise_or.reduce(self.codes if most else self.codes[:, rows], axis=0)
        worst = worst[rows] if most else worst
        if int(worst.max()) >= Code.ERROR:
            self._raise_error(pod, rows)
        passed = worst == 0
        if self.allowed is not None:
            passed &= self.allowed[rows]
        self.feasible[rows] = passed

    def _raise_error(self, pod: PodInfo, rows: Rows) -> None:
        """End the cycle if a filter could not answer about a row that no filter before it rejects."""
        if self.allowed is not None:
            rows = rows[self.allowed[rows]]
        codes = self.codes[:, rows]
        first = (codes != 0).argmax(axis=0)
        erring = np.flatnonzero(codes[first, np.arange(len(rows))] == Code.ERROR)
        if len(erring):
            index, row = int(first[erring[0]]), rows[erring[:1]]
            plugin = self.pre_filters.filters[index]
            self._calls.failed(plugin.name, "Filter")
            texts = [each.text for each in self.reasons_of(pod, plugin, row) if each.holds[0]]
            raise FilterError(f'running "{plugin.name}" filter plugin: {", ".join(texts)}')
