"""The node table as it will be once nominated pods have arrived: their room is taken for everybody they outrank."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Final

import numpy as np

from bayplan.api.quantity import QuantityError
from bayplan.cache.change_log import KeyFollower, Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.scratch_table import KEPT_SCRATCH_POD_BYTES, ScratchTable
from bayplan.framework.nominator import Nominator

KEPT_TABLE_BYTES: Final = 32 * 2**20
"""What tables of nominated pods may take together beyond the first few: some twenty on 5,000 nodes with 20,000 pods."""
_FEW_TABLES: Final = 4
_NO_PODS_BYTES: Final = getsizeof({}) + 8
_POD_BYTES: Final = getsizeof({"": None}) - getsizeof({})
"""What a pod takes on its row; with more of them there each takes less."""


@dataclass(frozen=True, slots=True, eq=False)
class NominatedPods:
    """Pods to be counted with those on each row, and in no other row's answer: `added[i]` on `rows[i]`."""

    rows: Rows
    added: Sequence[Sequence[PodInfo]]


class NominatedTable:
    """Nodes with the pods nominated to them added, as far as these have `priority` or more; follows both sources.

    Shared by all pods that see the same nominations; filters and preemption rely on it.
    """

    def __init__(self, nodes: NodeTable, nominator: Nominator, priority: int) -> None:
        self.table = ScratchTable(nodes)
        self.pods: dict[int, list[PodInfo]] = {}
        """The added pods by row, in order of nomination; rows without any are left out."""
        self._nominator = nominator
        self._priority = priority
        self._changes = KeyFollower(nominator.changes, nominator.nodes())
        self._added: dict[int, tuple[PodInfo, ...]] = {}
        self._nominated_pods: NominatedPods | None = None
        self._nodes_at = -1
        self.is_used = False
        """Whether it was brought up to date since unused tables were let go of."""

    def follow(self) -> None:
        """Bring the table up to date with nodes, pods and nominations."""
        self.is_used = True
        changed = self._changes.follow(self.table.names[row] for row in self.pods)
        rows = self.table.follow()
        if rows is None:
            self.pods.clear()
            self._added.clear()
            self._nominated_pods = None
            changed = self._nominator.nodes()
        else:
            for row in rows.tolist():
                self._nominate(row)
        found = (self.table.row(name) for name in changed)
        stale = np.array([row for row in found if row is not None], dtype=np.intp)
        self.table.restore(stale)
        for row in stale.tolist():
            self._nominate(row)

    def nominated_pods(self) -> NominatedPods:
        """The rows of existing nodes with nominated pods, ascending; the very same object until anything is another."""
        nodes_at = self.table.objects_changed.position
        if self._nominated_pods is None or self._nodes_at != nodes_at:
            self._nodes_at = nodes_at
            exists = self.table.exists
            rows = sorted(row for row in self.pods if exists[row])
            self._nominated_pods = NominatedPods(np.array(rows, dtype=np.intp), [self._added[row] for row in rows])
        return self._nominated_pods

    @property
    def nbytes(self) -> int:
        """What the copy of the node table takes at most, in bytes, besides its log; pods are shared with it."""
        table = self.table
        columns = (*table.requested.values(), table.non_zero_cpu, table.non_zero_memory, table.pod_count)
        pods = table.capacity * _NO_PODS_BYTES + int(table.pod_count.sum()) * _POD_BYTES
        return sum([column.nbytes for column in columns]) + pods

    def row_of(self, pod: PodInfo) -> int | None:
        """The row that `pod` itself is added to, if it is."""
        name = self._nominator.nominated_node(pod.uid)
        row = None if name is None else self.table.row(name)
        return row if row is not None and any(each.uid == pod.uid for each in self.pods.get(row, ())) else None

    def added_to(self, row: int) -> tuple[PodInfo, ...]:
        """The pods that the row has here and not in the node table."""
        return self._added.get(row, ())

    def others(self, row: int, pod: PodInfo) -> list[PodInfo]:
        """The pods nominated to a row other than `pod` itself."""
        return [each for each in self.pods.get(row, ()) if each.uid != pod.uid]

    def _nominate(self, row: int) -> None:
        """Add the pods nominated to a row that is as in the node table."""
        pods = [
            pod
            for pod in self._nominator.counted_pods_for_node(self.table.names[row])
            if pod.priority >= self._priority and _is_countable(pod)
        ]
        # Those who have arrived meanwhile are counted already.
        added = tuple(pod for pod in pods if pod.uid not in self.table.pods[row])
        if self._added.get(row, ()) != added or (row in self.pods) != bool(pods):
            self._nominated_pods = None
        if pods:
            self.pods[row], self._added[row] = pods, added
            self.table.place(pods, row)
        else:
            self.pods.pop(row, None)
            self._added.pop(row, None)


@dataclass(eq=False)
class Nominations:
    """The nominated tables of one node table, by the lowest priority they count.

    Those used last are kept: a few, and as many more as fit into `limit` bytes; while nobody is nominated the last one.
    Their logs together have the bound of the logs of a few.

    `on_gone` is called with each table that is not used any more: whoever holds it must let go, as it is a copy of all
    that pods take.
    """

    nodes: NodeTable
    nominator: Nominator
    on_gone: Callable[[NominatedTable], None]
    limit: int = KEPT_TABLE_BYTES
    _tables: dict[int, NominatedTable] = field(default_factory=dict, init=False)
    _without: ScratchTable | None = field(default=None, init=False)
    _without_is_used: bool = field(default=False, init=False)

    def respected_by(self, pod: PodInfo) -> NominatedTable | None:
        """The table that counts the nominations `pod` must respect, up to date; None if there are none but its own.

        Upstream: framework/runtime/framework.go addGENominatedPods, pods of equal or higher priority.
        """
        if not self.nominator.nodes():
            # The next nomination is mostly of a pod of the same priority.
            self._keep(1)
            return None
        priority = self.nominator.lowest_priority_from(pod.priority, besides=pod.uid)
        if priority is None:
            return None
        table = self._tables.pop(priority, None)
        is_new = table is None
        if table is None:
            table = NominatedTable(self.nodes, self.nominator, priority)
        # The most recently used one is the last.
        self._tables[priority] = table
        table.follow()
        if len(self._tables) > _FEW_TABLES:
            # They are copies of one table, so each takes about as much.
            self._keep(max(_FEW_TABLES, self.limit // table.nbytes))
            if is_new:
                self._share_log_bytes()
        return table

    def without_nominated(self) -> ScratchTable:
        """A table without nominated pods, up to date, to add those of one node at a time; restore it after use."""
        if self._without is None:
            self._without = ScratchTable(self.nodes)
        self._without_is_used = True
        self._without.follow()
        return self._without

    def release_unused(self) -> None:
        """Let go of the tables that no pod asked for since the last call: they may hold pods that are gone."""
        for priority, table in [*self._tables.items()]:
            if not table.is_used:
                self.on_gone(self._tables.pop(priority))
            table.is_used = False
        if not self._without_is_used:
            self._without = None
        self._without_is_used = False

    def _share_log_bytes(self) -> None:
        each = _FEW_TABLES * KEPT_SCRATCH_POD_BYTES // max(len(self._tables), _FEW_TABLES)
        for table in self._tables.values():
            table.table.pods_changed.set_kept(each)

    def _keep(self, count: int) -> None:
        for priority in list(self._tables)[: max(len(self._tables) - count, 0)]:
            self.on_gone(self._tables.pop(priority))


def _is_countable(pod: PodInfo) -> bool:
    """Whether the requests can be read: anybody can nominate a pod of their own by its status."""
    try:
        _ = pod.placed
    except QuantityError:
        return False
    return True
