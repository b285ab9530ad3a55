"""Filters run on one node at a time, on a shadow table whose pods come and go in between."""

from collections.abc import Iterable, Sequence

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.shadow_table import ShadowTable
from bayplan.framework.interface import CycleState, FilterPlugin, PreFilterPlugin
from bayplan.framework.status import Code, Reads, Status


class SingleNodeFilters:
    """Says whether a pod fits a node of `table` as it stands; preemption and nominated pods rely on it.

    It has a state of its own, so plugins that keep counts keep those of `table`. PreFilters of filters that read the
    cluster are run before every node, as kube-scheduler updates their state with AddPod and RemovePod.
    """

    def __init__(
        self,
        pod: PodInfo,
        filters: Sequence[FilterPlugin],
        pre_filters: Iterable[PreFilterPlugin],
        table: ShadowTable,
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
        """The code of each filter for one row."""
        self._run_pre_filters(self._every_time)
        rows = np.array([row], dtype=np.intp)
        return [self._code(plugin, rows) for plugin in self._filters]

    def first_failure(self, row: int, *, explain: bool = False) -> Status | None:
        """The code and name of the first filter that rejects a row, and why if `explain`; None if it fits."""
        self._run_pre_filters(self._every_time)
        rows = np.array([row], dtype=np.intp)
        for plugin in self._filters:
            if code := self._code(plugin, rows):
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
