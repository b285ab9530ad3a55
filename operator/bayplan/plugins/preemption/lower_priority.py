"""The possible victims on each node and what they take: the room that preemption could make."""

from math import inf

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.row_follower import RowFollower
from bayplan.plugins.preemption.victims import VictimRule, importance


class LowerPriorityPods:
    """The possible victims of a pod of `priority` on every row, most important first, and the sums of their requests.

    `counts` is how many, `requested` what they take by resource; both `(capacity,) int64`. Rows are read again
    only when their pods changed, or when a pod that had not run long enough has by now: `evictable_from` is when the
    first one will have, in seconds since the epoch, or inf.
    """

    def __init__(self, nodes: NodeTable, priority: int, rule: VictimRule) -> None:
        self._nodes = nodes
        self._priority = priority
        self._rule = rule
        self._follower = RowFollower(nodes)
        self.evictable_from = inf
        self._start_over()

    def follow(self) -> None:
        """Bring everything up to date with the node table."""
        change = self._follower.follow()
        if change.everything or (self._rule.minimum_runtime and self._rule.now() >= self.evictable_from):
            self._start_over()
            rows = np.arange(self._nodes.capacity, dtype=np.intp)
        else:
            rows = change.usage
        for row in rows.tolist():
            self._read(row)

    def freed(self, name: str, rows: Rows) -> Column:
        """How much of a resource evicting all of them frees on `rows`."""
        column = self.requested.get(name)
        return np.zeros(len(rows), dtype=np.int64) if column is None else column[rows]

    def _start_over(self) -> None:
        capacity = self._nodes.capacity
        self.evictable_from = inf
        self.victims: list[tuple[PodInfo, ...]] = [()] * capacity
        self.counts: Column = np.zeros(capacity, dtype=np.int64)
        self.requested: dict[str, Column] = {}

    def _read(self, row: int) -> None:
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
        if row in self._nodes.clamped_rows():
            # Columns of such rows are no sums, so differences mean nothing; they are tried pod by pod.
            return
        for pod in lower:
            for name, amount in pod.placed.amounts.items():
                column = self.requested.get(name)
                if column is None:
                    column = self.requested[name] = np.zeros(self._nodes.capacity, dtype=np.int64)
                column[row] += amount
