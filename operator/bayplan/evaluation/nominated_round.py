"""Filters with nominated pods counted, and filters of one node at a time on a table whose pods come and go."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import RowFollower, Rows, together
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.scratch_table import ScratchTable
from bayplan.evaluation.filter_round import FilterRound
from bayplan.evaluation.pre_filters import ANYWHERE, ROWS, UNCHANGED
from bayplan.framework.interface import CycleState, FilterPlugin, NominatedFilterPlugin, PreFilterPlugin
from bayplan.framework.nominated_table import NominatedTable, Nominations
from bayplan.framework.status import Code, Reads, Reason, Status


class SingleNodeFilters:
    """Says whether a pod fits a node of `table` as it stands; `NominatedRound` and preemption's dry run use it.

    It has a state of its own, so plugins that keep counts keep those of `table`. PreFilters of filters that read the
    cluster are run before every node, as kube-scheduler updates their state with AddPod and RemovePod.
    """

    def __init__(
        self,
        pod: PodInfo,
        filters: Sequence[FilterPlugin],
        pre_filters: Sequence[PreFilterPlugin],
        table: ScratchTable,
    ) -> None:
        self.table = table
        self._pod = pod
        self._filters = filters
        self._state: CycleState = {}
        reads_cluster = {plugin.name for plugin in filters if plugin.traits.reads is Reads.CLUSTER}
        self._every_time = [plugin for plugin in pre_filters if plugin.name in reads_cluster]
        self._results: dict[str, Status] = {}
        self._run_pre_filters([plugin for plugin in pre_filters if plugin.name not in reads_cluster])

    def codes(self, row: int) -> list[int]:
        """The code of each filter for one row; 0 of those behind the first that rejects it."""
        self._run_pre_filters(self._every_time)
        rows = np.array([row], dtype=np.intp)
        codes = [0] * len(self._filters)
        for at, plugin in enumerate(self._filters):
            if code := self._code(plugin, rows):
                codes[at] = code
                break
        return codes

    def first_failure(self, row: int, *, explain: bool = False) -> Status | None:
        """The code and name of the first filter that rejects a row, and why if `explain`; None if it fits."""
        for plugin, code in zip(self._filters, self.codes(row), strict=True):
            if code:
                return Status(Code(code), tuple(self.reasons(plugin, row)) if explain else (), plugin.name)
        return None

    def first_failure_with_nominated(
        self, nominated: Sequence[PodInfo], row: int, *, explain: bool = False
    ) -> Status | None:
        """None if the pod fits a row both with the nominated pods added and without, else what it failed of first.

        Upstream: framework/runtime/framework.go RunFilterPluginsWithNominatedPods.
        """
        if nominated:
            added = [pod for pod in nominated if pod.uid not in self.table.pods[row]]
            self.table.place(added, row)
            try:
                failure = self.first_failure(row, explain=explain)
            finally:
                for pod in added:
                    self.table.remove_pod(pod, row)
            if failure is not None:
                return failure
        return self.first_failure(row, explain=explain)

    def reasons(self, plugin: FilterPlugin, row: int) -> list[str]:
        """Why a filter rejects a row, as of its last run."""
        result = self._results.get(plugin.name)
        if result is not None and not result.ok:
            return list(result.reasons)
        found = plugin.reasons(self._state, self._pod, self.table, np.array([row], dtype=np.intp))
        return [reason.text for reason in found if reason.holds[0]]

    def _code(self, plugin: FilterPlugin, rows: Rows) -> int:
        result = self._results.get(plugin.name)
        if result is not None and result.code is not Code.SUCCESS:
            return Code.SUCCESS if result.ok else result.code
        return int(plugin.filter(self._state, self._pod, self.table, rows)[0])

    def _run_pre_filters(self, plugins: Iterable[PreFilterPlugin]) -> None:
        for plugin in plugins:
            self._results[plugin.name] = plugin.pre_filter(self._state, self._pod, self.table).status


class NominatedRound:
    """Keeps the codes of the filters on rows with nominated pods, were these there; `blocked` are the rejected rows.

    Upstream (framework/runtime/framework.go RunFilterPluginsWithNominatedPods) adds to a node only the pods nominated
    to that node. For filters that look at their own row alone, all nodes can have theirs added at once. Filters that
    read the cluster can answer as if those pods were there (`NominatedFilterPlugin`); if one cannot, nodes are filtered
    one at a time.
    """

    def __init__(
        self, plain: FilterRound, nodes: NodeTable, nominations: Nominations, nominated: NominatedTable
    ) -> None:
        self._plain = plain
        self._pre = plain.pre_filters
        self._nodes = nodes
        self._nominations = nominations
        self.nominated = nominated
        """The nominated pods that count."""
        self._nominated_rows = RowFollower(nominated.table)
        self._changed: int = UNCHANGED
        self.start_over()

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return self.codes.nbytes + self.blocked.nbytes

    def start_over(self) -> None:
        """Forget all codes; the filters are those of the plain round, which has started over."""
        capacity, reading_cluster = self._nodes.capacity, self._plain.by_reads[Reads.CLUSTER]
        self._reading_cluster = [(at, each) for at, each in reading_cluster if isinstance(each, NominatedFilterPlugin)]
        self._one_at_a_time = len(self._reading_cluster) < len(reading_cluster)
        self.codes: NDArray[np.int8] = np.zeros((len(self._pre.filters), capacity), dtype=np.int8)
        """As those of the plain round; 0 on rows without nominated pods."""
        self.blocked: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        """The rows that this round rejects, `(capacity,) bool`."""
        self._state: CycleState = {}
        self._own_row: int | None = None
        self._fresh = True

    def refresh(self, pod: PodInfo) -> int:
        """Bring `blocked` up to date with the nominations. Returns UNCHANGED, ROWS or ANYWHERE."""
        before = self.blocked.copy()
        self._changed = UNCHANGED
        if self._one_at_a_time:
            self._filter_each(pod)
        else:
            self._filter_together(pod)
        self._filter_own(pod)
        return self._changed if np.array_equal(before, self.blocked) else ANYWHERE

    def first_rejecting(self, rows: Rows) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The place of the first filter that rejects each of these blocked rows, and whether the plain round tells why.

        Both are `(rows,)`.
        """
        reads = [plugin.traits.reads for plugin in self._pre.filters]
        # Some say the same of a node whatever pods are on it: the plain round has their codes.
        alike = np.array([not self._one_at_a_time and each in (Reads.NODE, Reads.NODES) for each in reads])
        failing = self.codes[:, rows] != 0
        failing[alike] = self._plain.codes[alike][:, rows] != 0
        first = failing.argmax(axis=0)
        return first, alike[first]

    def reasons_of(self, pod: PodInfo, plugin: FilterPlugin, rows: Rows) -> list[Reason]:
        """The reasons of a filter for rows it rejected in this round."""
        one_by_one = self._one_at_a_time or plugin.traits.reads is Reads.CLUSTER
        alone = np.full(len(rows), one_by_one, dtype=np.bool_)
        if self._own_row is not None:
            alone |= rows == self._own_row
        found: dict[str, NDArray[np.bool_]] = {}
        together = np.flatnonzero(~alone)
        if len(together):
            for reason in plugin.reasons(self._state, pod, self.nominated.table, rows[together]):
                found.setdefault(reason.text, np.zeros(len(rows), dtype=np.bool_))[together] |= reason.holds
        if alone.any():
            filters = self._single_node(pod)
            for at in np.flatnonzero(alone).tolist():
                row = int(rows[at])
                filters.table.place(self.nominated.others(row, pod), row)
                filters.codes(row)
                for text in filters.reasons(plugin, row):
                    found.setdefault(text, np.zeros(len(rows), dtype=np.bool_))[at] = True
                filters.table.restore(rows[at : at + 1])
        return [Reason(text, holds) for text, holds in found.items()]

    def _filter_together(self, pod: PodInfo) -> None:
        """Filter rows whose nominated pods or whose usage changed, all with their nominated pods added."""
        change = self._nominated_rows.follow()
        reading_usage = self._plain.by_reads[Reads.USAGE]
        if self._fresh or change.everything:
            self._forget(np.flatnonzero(self.blocked))
            rows = self.nominated.nominated_pods().rows
            self._state = {}
            for pre_filter in self._pre.belonging_to([plugin for _, plugin in reading_usage]):
                pre_filter.pre_filter(self._state, pod, self.nominated.table)
            self._fresh = False
        else:
            changed = change.usage
            if self._own_row is not None:
                changed = together(changed, np.array([self._own_row]))
            self._forget(changed)
            exists, pods = self._nodes.exists, self.nominated.pods
            rows = np.array([row for row in changed.tolist() if row in pods and exists[row]], dtype=np.intp)
        self._own_row = None
        if len(rows):
            self._changed = ROWS
            for index, plugin in reading_usage:
                self.codes[index, rows] = plugin.filter(self._state, pod, self.nominated.table, rows)
        # Asked for only here: with hundreds of nominations sorting them takes as long as filtering a changed row.
        if self._reading_cluster and len((nominated_pods := self.nominated.nominated_pods()).rows):
            rows = nominated_pods.rows
            for index, reading_all in self._reading_cluster:
                self.codes[index, rows] = reading_all.filter_with_nominated(
                    self._plain.state, pod, self._nodes, nominated_pods
                )
        if len(rows):
            self.blocked[rows] = self.codes[:, rows].any(axis=0)

    def _filter_each(self, pod: PodInfo) -> None:
        """Filter every row with nominated pods, one at a time with its own added."""
        self._own_row = None
        self._forget(np.flatnonzero(self.blocked))
        rows = self.nominated.nominated_pods().rows
        if len(rows):
            filters = self._single_node(pod)
            for row in rows.tolist():
                self._filter_row(filters, pod, row)

    def _filter_own(self, pod: PodInfo) -> None:
        """Filter the node `pod` itself is nominated to again: there it must not be counted besides itself."""
        name = self._nominations.nominator.nominated_node(pod.uid)
        row = None if name is None else self._nodes.row(name)
        if row is None or row not in self.nominated.pods:
            return
        self._own_row = row
        if self._one_at_a_time:
            return
        if self.nominated.others(row, pod):
            self._filter_row(self._single_node(pod), pod, row)
        else:
            self._forget(np.array([row], dtype=np.intp))

    def _filter_row(self, filters: SingleNodeFilters, pod: PodInfo, row: int) -> None:
        self._changed = ROWS
        others = self.nominated.others(row, pod)
        if not others:
            self._forget(np.array([row], dtype=np.intp))
            return
        filters.table.place(others, row)
        self.codes[:, row] = filters.codes(row)
        filters.table.restore(np.array([row], dtype=np.intp))
        self.blocked[row] = self.codes[:, row].any()

    def _forget(self, rows: Rows) -> None:
        if len(rows):
            self._changed = ROWS
            self.codes[:, rows] = 0
            self.blocked[rows] = False

    def _single_node(self, pod: PodInfo) -> SingleNodeFilters:
        filters = self._pre.filters
        return SingleNodeFilters(pod, filters, self._pre.belonging_to(filters), self._nominations.without_nominated())
