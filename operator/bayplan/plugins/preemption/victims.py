"""Who may be a victim and in what order victims are spared, kept current by node; and what was found on one node."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import UsageView
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.candidate import Candidate, start_time


def importance(pod: PodInfo) -> tuple[int, float]:
    """Sort the most important pod first: by priority, then by who has run longest (upstream: MoreImportantVictim)."""
    return -pod.priority, start_time(pod)


@dataclass(frozen=True, slots=True)
class VictimRule:
    """Which pods of lower priority may be evicted: those that have run long enough.

    `minimum_runtime` is in seconds, 0 spares nobody; `now` gives seconds since the epoch.
    """

    minimum_runtime: int
    now: Callable[[], float]

    def evictable_from(self, victim: PodInfo) -> float:
        """Return when the pod has run long enough, in seconds since the epoch; inf for one that has not started."""
        started = start_time(victim)
        return started if started == inf else started + self.minimum_runtime


@dataclass(slots=True)
class VictimSelection:
    """The victims on a row, most important first, and how many violate a budget; or why evictions do not help.

    It has neither victims nor reasons on a node that rejected the pod and then takes it with nobody evicted.
    `candidate` is the last one made of the selection.
    """

    row: int
    victims: list[PodInfo] = field(default_factory=list)
    violations: int = 0
    reasons: Sequence[str] | None = None
    candidate: Candidate | None = None


class LowerPriorityPods(UsageView):
    """The possible victims of a pod of `priority` on every row, most important first, and the sums of their requests.

    `counts` is how many, `requested` what they take of each resource that the table counts; both `(capacity,) int64`.
    Rows are read again only when their pods changed, or when a pod that had not run long enough has by now:
    `evictable_from` is when the first one will have, in seconds since the epoch, or inf.
    """

    def __init__(self, nodes: NodeTable, priority: int, rule: VictimRule) -> None:
        super().__init__(nodes)
        self._priority = priority
        self._rule = rule
        self.evictable_from = inf
        self._start_over()

    def follow(self) -> None:
        """Bring everything up to date with the node table and the clock."""
        self.catch_up()
        other_columns = self.requested.keys() != self._nodes.requested.keys()
        if other_columns or (self._rule.minimum_runtime and self._rule.now() >= self.evictable_from):
            self._read_all()

    def _start_over(self) -> None:
        capacity = self._nodes.capacity
        self.evictable_from = inf
        self.victims: list[tuple[PodInfo, ...]] = [()] * capacity
        self.counts: Column = np.zeros(capacity, dtype=np.int64)
        self.requested: dict[str, Column] = {name: np.zeros(capacity, dtype=np.int64) for name in self._nodes.requested}

    def _read(self, changes: Rows) -> None:
        for row in changes.tolist():
            self._read_row(row)

    def _read_row(self, row: int) -> None:
        priority, rule = self._priority, self._rule
        lower = [pod for pod in self._nodes.pods[row].values() if pod.priority < priority]
        if rule.minimum_runtime:
            now = rule.now()
            later = [at for at in map(rule.evictable_from, lower) if at > now]
            self.evictable_from = min([self.evictable_from, *later])
            lower = [pod for pod in lower if rule.evictable_from(pod) <= now]
        lower.sort(key=importance)
        self.victims[row] = tuple(lower)
        self.counts[row] = len(lower)
        for taken in self.requested.values():
            taken[row] = 0
        if row in self._nodes.clamped_rows:
            # Columns of such rows are no sums, so differences mean nothing; they are tried pod by pod.
            return
        for pod in lower:
            for name, amount in pod.placed.amounts.items():
                if name in self.requested:
                    self.requested[name][row] += amount
