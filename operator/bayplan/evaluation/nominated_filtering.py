"""Filters asked twice: a node must fit with the pods that are nominated to it, and without them."""

from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.row_follower import RowFollower
from bayplan.evaluation.filtering import Filtering
from bayplan.evaluation.trial import Trial
from bayplan.framework.interface import CycleState, FilterPlugin, Reads, Rejections
from bayplan.framework.nominated_table import Beside, NominatedTable, Nominations
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Codes


class FilterBeside(Protocol):
    """A filter that reads the cluster and can tell what pods besides those on a row would change for that row."""

    def filter_beside(self, state: CycleState, pod: PodInfo, nodes: NodeTable, beside: Beside) -> Codes:
        """A code per row of `beside`, `(rows,) int8`."""
        ...


class NominatedFiltering(Filtering):
    """As Filtering, for pods that see nominations; a node's verdict is the first of both rounds that rejects it.

    Upstream (framework/runtime/framework.go RunFilterPluginsWithNominatedPods) adds to a node only the pods nominated
    to that node. For filters that look at their own row alone all nodes can have theirs added at once, and filters
    that read the cluster may know how to answer as if; if one does not, nodes are asked one at a time.
    """

    def __init__(
        self, framework: Framework, nodes: NodeTable, state: CycleState, nominations: Nominations, seen: NominatedTable
    ) -> None:
        super().__init__(framework, nodes, state)
        self._nominations = nominations
        self._seen = seen
        self._beside_state: CycleState = {}
        self._beside_rows = RowFollower(seen.table)
        self._beside: NDArray[np.int8] = np.zeros((0, 0), dtype=np.int8)
        self._blocked: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._open: NDArray[np.bool_] = self._feasible
        self._own_row: int | None = None
        self._fresh = True

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows passed every filter in both rounds, `(capacity,) bool`."""
        return self._open

    def refresh(self, pod: PodInfo) -> None:
        """Bring both rounds up to date with the node table and the nominations."""
        super().refresh(pod)
        if self.rejection is not None:
            self._open = self._feasible
            return
        before = self._blocked.copy()
        if self._one_at_a_time():
            self._ask_alone(pod)
        else:
            self._ask_together(pod)
        self._ask_own(pod)
        if not np.array_equal(before, self._blocked):
            self._spread = True
        self._open = self._feasible & ~self._blocked

    def rejected_by(self, rows: Rows) -> NDArray[np.intp]:
        """As in Filtering; filters of the round with nominated pods are numbered behind those of the plain one."""
        first = super().rejected_by(rows)
        blocked = self._blocked[rows]
        if blocked.any():
            failing = self._beside[:, rows[blocked]] != 0
            if not self._one_at_a_time():
                alike = np.array([_is_same_twice(plugin) for plugin in self._pre.filters], dtype=np.bool_)
                failing[alike] = self._codes[alike][:, rows[blocked]] != 0
                index = failing.argmax(axis=0)
                first[blocked] = np.where(alike[index], index, index + len(self._pre.filters))
            else:
                first[blocked] = failing.argmax(axis=0) + len(self._pre.filters)
        return first

    def filter_at(self, index: int) -> FilterPlugin:
        """The filter that `rejected_by` calls `index`, in either round."""
        return self._pre.filters[index % len(self._pre.filters)]

    def reasons_of(self, pod: PodInfo, index: int, rows: Rows) -> list[tuple[str, NDArray[np.bool_]]]:
        """The reasons of the filter `index` in its round."""
        if index < len(self._pre.filters):
            return super().reasons_of(pod, index, rows)
        plugin = self.filter_at(index)
        one_by_one = self._one_at_a_time() or plugin.reads is Reads.CLUSTER
        alone = np.full(len(rows), one_by_one, dtype=np.bool_)
        if self._own_row is not None:
            alone |= rows == self._own_row
        found: dict[str, NDArray[np.bool_]] = {}
        together = np.flatnonzero(~alone)
        if len(together):
            for reason in plugin.reasons(self._beside_state, pod, self._seen.table, rows[together]):
                found.setdefault(reason.text, np.zeros(len(rows), dtype=np.bool_))[together] |= reason.holds
        if alone.any():
            trial = self._trial(pod)
            for at in np.flatnonzero(alone).tolist():
                row = int(rows[at])
                trial.table.place(self._seen.others(row, pod), row)
                trial.codes(row)
                for text in trial.reasons(plugin, row):
                    found.setdefault(text, np.zeros(len(rows), dtype=np.bool_))[at] = True
                trial.table.restore(rows[at : at + 1])
        return list(found.items())

    def rejections(self) -> Rejections:
        """As in Filtering, with the nominations that were seen."""
        plain = super().rejections()
        return Rejections(plain.rows, plain.codes, plain.filters, plain.pre_filters, self._seen)

    def _codes_at(self, filters: NDArray[np.intp], rows: Rows) -> Codes:
        count = len(self._pre.filters)
        return np.where(
            filters < count, self._codes[filters % count, rows], self._beside[filters % count, rows]
        ).astype(np.int8)

    def _start_over(self) -> None:
        super()._start_over()
        capacity = self._nodes.capacity
        self._beside = np.zeros((len(self._pre.filters), capacity), dtype=np.int8)
        self._blocked = np.zeros(capacity, dtype=np.bool_)
        self._beside_state = {}
        self._own_row = None
        self._fresh = True

    def _one_at_a_time(self) -> bool:
        return any(not hasattr(plugin, "filter_beside") for _, plugin in self._by_reads[Reads.CLUSTER])

    def _ask_together(self, pod: PodInfo) -> None:
        """Ask about rows whose nominated pods or whose usage changed, all with their nominated pods added."""
        change = self._beside_rows.follow()
        beside = self._seen.beside()
        nominated = beside.rows
        if self._fresh or change.everything:
            self._forget(np.flatnonzero(self._blocked))
            rows = nominated
            self._beside_state = {}
            reading_usage = [plugin for _, plugin in self._by_reads[Reads.USAGE]]
            for pre_filter in self._pre.of(reading_usage):
                pre_filter.pre_filter(self._beside_state, pod, self._seen.table)
            self._fresh = False
        else:
            changed = change.usage
            if self._own_row is not None:
                changed = np.union1d(changed, [self._own_row])
            self._forget(changed)
            exists, pods = self._nodes.exists, self._seen.pods
            rows = np.array([row for row in changed.tolist() if row in pods and exists[row]], dtype=np.intp)
        self._own_row = None
        if len(rows):
            self._forget_verdicts()
            for index, plugin in self._by_reads[Reads.USAGE]:
                self._beside[index, rows] = plugin.filter(self._beside_state, pod, self._seen.table, rows)
        reading_all = self._by_reads[Reads.CLUSTER]
        if reading_all and len(nominated):
            rows = nominated
            for index, plugin in reading_all:
                # Not asserted: a protocol takes long to check.
                asked = cast("FilterBeside", plugin)
                self._beside[index, rows] = asked.filter_beside(self._state, pod, self._nodes, beside)
        if len(rows):
            self._blocked[rows] = self._beside[:, rows].any(axis=0)

    def _ask_alone(self, pod: PodInfo) -> None:
        """Ask about every row with nominated pods, one at a time with its own added."""
        self._own_row = None
        self._forget(np.flatnonzero(self._blocked))
        rows = self._seen.beside().rows
        if not len(rows):
            return
        trial = self._trial(pod)
        for row in rows.tolist():
            self._ask_row(trial, pod, row)

    def _ask_own(self, pod: PodInfo) -> None:
        """Ask again about the node `pod` itself is nominated to: there it must not be counted besides itself."""
        name = self._nominations.nominator.nominated_node(pod.uid)
        row = None if name is None else self._nodes.row(name)
        if row is None or row not in self._seen.pods or not self._nodes.exists[row]:
            return
        self._own_row = row
        if not self._one_at_a_time():
            self._ask_row(self._trial(pod), pod, row)

    def _ask_row(self, trial: Trial, pod: PodInfo, row: int) -> None:
        self._forget_verdicts()
        others = self._seen.others(row, pod)
        if not others:
            self._forget(np.array([row], dtype=np.intp))
            return
        trial.table.place(others, row)
        self._beside[:, row] = trial.codes(row)
        trial.table.restore(np.array([row], dtype=np.intp))
        self._blocked[row] = self._beside[:, row].any()

    def _forget(self, rows: Rows) -> None:
        if len(rows):
            self._forget_verdicts()
            self._beside[:, rows] = 0
            self._blocked[rows] = False

    def _trial(self, pod: PodInfo) -> Trial:
        return Trial(pod, self._pre.filters, self._pre.of(self._pre.filters), self._nominations.alone())


def _is_same_twice(plugin: FilterPlugin) -> bool:
    """Whether a filter says the same of a node whatever pods are on it: the plain round has its answer."""
    return plugin.reads in (Reads.NODE, Reads.NODES)
