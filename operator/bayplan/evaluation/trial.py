"""Filters asked about one node at a time, on a shadow table whose pods come and go between the questions."""

from collections.abc import Iterable, Sequence

import numpy as np

from bayplan.cache.pod_info import PodInfo
from bayplan.cache.shadow_table import ShadowTable
from bayplan.framework.interface import CycleState, FilterPlugin, PreFilterPlugin, Reads
from bayplan.framework.status import Code, Status


class Trial:
    """Whether a pod fits a node of `table` as it stands; preemption and nominated pods rely on it.

    It has a state of its own, so plugins that keep counts keep those of `table`. PreFilters of filters that read the
    cluster are asked before every question, as kube-scheduler updates their state with AddPod and RemovePod.
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
        reads_cluster = {plugin.name for plugin in filters if plugin.reads is Reads.CLUSTER}
        self._once = [plugin for plugin in pre_filters if plugin.name not in reads_cluster]
        self._every_time = [plugin for plugin in pre_filters if plugin.name in reads_cluster]
        self._verdicts: dict[str, Status] = {}
        self._ask(self._once)

    def codes(self, row: int) -> list[int]:
        """The code of each filter for one row."""
        self._ask(self._every_time)
        rows = np.array([row], dtype=np.intp)
        return [self._code(plugin, rows) for plugin in self._filters]

    def first_failure(self, row: int, *, explain: bool = False) -> Status | None:
        """The code and name of the first filter that rejects a row, and why if asked for; None if it fits."""
        self._ask(self._every_time)
        rows = np.array([row], dtype=np.intp)
        for plugin in self._filters:
            if code := self._code(plugin, rows):
                return Status(Code(code), tuple(self.reasons(plugin, row)) if explain else (), plugin.name)
        return None

    def reasons(self, plugin: FilterPlugin, row: int) -> list[str]:
        """Why a filter rejects a row, as of the last question."""
        verdict = self._verdicts.get(plugin.name)
        if verdict is not None and not verdict.ok:
            return list(verdict.reasons)
        rows = np.array([row], dtype=np.intp)
        found = plugin.reasons(self._state, self._pod, self.table, rows)
        return [reason.text for reason in found if reason.holds[0]]

    def _code(self, plugin: FilterPlugin, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> int:
        verdict = self._verdicts.get(plugin.name)
        if verdict is not None and verdict.code is not Code.SUCCESS:
            return Code.SUCCESS if verdict.ok else verdict.code
        return int(plugin.filter(self._state, self._pod, self.table, rows)[0])

    def _ask(self, plugins: Iterable[PreFilterPlugin]) -> None:
        for plugin in plugins:
            self._verdicts[plugin.name] = plugin.pre_filter(self._state, self._pod, self.table).status


def failure_beside(trial: Trial, nominated: Sequence[PodInfo], row: int, *, explain: bool = False) -> Status | None:
    """None if the pod fits a row both with the nominated pods added and without, else what it failed of first.

    Upstream: framework/runtime/framework.go RunFilterPluginsWithNominatedPods.
    """
    if nominated:
        added = [pod for pod in nominated if pod.uid not in trial.table.pods[row]]
        trial.table.place(added, row)
        try:
            failure = trial.first_failure(row, explain=explain)
        finally:
            for pod in added:
                trial.table.remove_pod(pod, row)
        if failure is not None:
            return failure
    return trial.first_failure(row, explain=explain)
