"""The columnar node table that a scheduling cycle reads: one row a node, one numpy column a quantity."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.api.objects import Node
from bayplan.api.quantity import TOO_MUCH
from bayplan.cache.change_log import ChangeLog, PodLog
from bayplan.cache.node_tree import NodeTree
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import PODS, node_allocatable

Column = NDArray[np.int64]
"""One amount per row, `(capacity,) int64`: milli-CPU, bytes or counts."""

_FIRST_CAPACITY = 64
# Above this many times one amount a sum could leave int64; such rows are summed exactly and clamped instead.
_HUGE = 2**48


class NodeTable:
    """Nodes and what their pods take, as columns that change in place.

    Filters and scores read the columns for many rows at once; the cache is the only writer. A row is a node's for as
    long as the node exists, so the table is as large as there ever were nodes at once, whatever pods say. `exists` is
    False on free rows. The cache keeps pods that name no node there is.

    `allocatable` has a column for each resource that some node has, and `requested` one for each of these but "pods".
    What pods ask for and no node has is not counted, because anybody can make up names, until a node has it.
    `staying` has of the same resources, and of "pods", what pods take that could run on no other node.

    `objects_changed` and `usage_changed` log the rows whose node object or whose pods changed, `pods_changed` the pods.
    `layout` grows when the columns were reallocated: whoever keeps arrays of `capacity` must then start over.
    """

    def __init__(self) -> None:
        self.capacity = _FIRST_CAPACITY
        self.layout = 0
        self.names: list[str] = [""] * self.capacity
        self.nodes: list[Node | None] = [None] * self.capacity
        self.pods: list[dict[str, PodInfo]] = [{} for _ in range(self.capacity)]
        self.exists: NDArray[np.bool_] = np.zeros(self.capacity, dtype=np.bool_)
        self.allocatable: dict[str, Column] = {}
        self.requested: dict[str, Column] = {}
        self.staying: dict[str, Column] = {PODS: self._column()}
        self.non_zero_cpu: Column = self._column()
        self.non_zero_memory: Column = self._column()
        self.pod_count: Column = self._column()
        self.allowed_pods: Column = self._column()
        self.objects_changed = ChangeLog()
        self.usage_changed = ChangeLog()
        self.pods_changed = PodLog()
        self.tree = NodeTree()
        """In which order a limited search visits nodes."""
        self.node_count = 0
        self._rows: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._rows_at = (-1, -1)
        self._held_by_all: dict[str, bool] = {}
        self._holders: Counter[str] = Counter()
        self._row_of: dict[str, int] = {}
        self._free = list(range(self.capacity - 1, -1, -1))
        self.clamped_rows: set[int] = set()
        """The rows where some pod asks for so much that amounts are clamped and so are no plain sums."""

    def __len__(self) -> int:
        return self.node_count

    def row(self, name: str) -> int | None:
        """The row of the node called `name`; None if there is none."""
        return self._row_of.get(name)

    def node(self, name: str) -> Node | None:
        """The node called `name` as it was last set; None if there is none."""
        row = self.row(name)
        return None if row is None else self.nodes[row]

    def rows(self) -> NDArray[np.intp]:
        """The rows of existing nodes, in the order kept by the table, `(nodes,) intp`; not to be written to.

        The very same array until a node comes or goes.
        """
        known_at = (self.layout, self.objects_changed.position)
        if self._rows_at != known_at:
            self._rows_at = known_at
            self._rows = np.flatnonzero(self.exists)
            self._rows.flags.writeable = False
        return self._rows

    def in_use(self) -> NDArray[np.bool_]:
        """Whether a pod runs on each row that could run elsewhere, `(capacity,) bool`.

        Every number of nodes in use relies on it: pods of DaemonSets and static pods leave a node unused.
        """
        used: NDArray[np.bool_] = self.exists & (self.pod_count > self.staying[PODS])
        return used

    def set_node(self, node: Node) -> int:
        """Write a new or changed node object into its row and return the row.

        Raises:
            QuantityError: an allocatable amount is not a quantity; nothing was changed.
        """
        allocatable = node_allocatable(node)
        row = self._claim(node.metadata.name)
        self._set_allocatable(row, allocatable)
        if not self.exists[row]:
            self.exists[row] = True
            self.node_count += 1
        self.nodes[row] = node
        self.tree.set(node)
        self._log_object(row)
        return row

    def drop_node(self, name: str) -> dict[str, PodInfo]:
        """Forget a node and give its row back; return the pods that were on it by UID, which count no more."""
        row = self._row_of.pop(name)
        pods, self.pods[row] = self.pods[row], {}
        for pod in pods.values():
            self.pods_changed.append((row, pod, None))
        self._count_all(row)
        self._set_allocatable(row, {})
        self.exists[row] = False
        self.node_count -= 1
        self.nodes[row] = None
        self.names[row] = ""
        self.tree.remove(name)
        self._free.append(row)
        self._log_object(row)
        return pods

    def add_pod(self, pod: PodInfo, row: int) -> None:
        """Count `pod` on the node of `row`.

        Raises:
            QuantityError: its requests cannot be read; nothing was changed.
        """
        _ = pod.placed
        self.pods[row][pod.uid] = pod
        self.pods_changed.append((row, None, pod))
        self._count(pod, row, 1)

    def add_pods(self, pods: Mapping[str, PodInfo], row: int) -> None:
        """Count pods by UID, whose requests can be read, on a row without any: as `add_pod`, but summed once."""
        self.pods[row].update(pods)
        for pod in pods.values():
            self.pods_changed.append((row, None, pod))
        self._count_all(row)
        self.usage_changed.append(row)

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        """Take back what `add_pod` counted for this very `pod`."""
        del self.pods[row][pod.uid]
        self.pods_changed.append((row, pod, None))
        self._count(pod, row, -1)

    def replace_pod(self, before: PodInfo, pod: PodInfo, row: int, *, counted_alike: bool) -> None:
        """Put a new version of a pod in its place, which takes the same.

        `counted_alike` promises that nobody who counts pods can tell the two apart, so that none need look.
        """
        self.pods[row][pod.uid] = pod
        if not counted_alike:
            self.pods_changed.append((row, before, pod))

    def copy(self) -> "NodeTable":
        """Return a table with the same nodes and pods in the same rows; neither hears of what the other changes.

        Takes some milliseconds for 5,000 nodes. Its logs begin anew, so that whoever reads them reads everything.
        """
        made = NodeTable()
        made.capacity, made.layout, made.node_count = self.capacity, self.layout + 1, self.node_count
        made.names, made.nodes, made._free = self.names[:], self.nodes[:], self._free[:]
        made.pods = [on_row.copy() for on_row in self.pods]
        made.exists = self.exists.copy()
        for name in ("non_zero_cpu", "non_zero_memory", "pod_count", "allowed_pods"):
            setattr(made, name, getattr(self, name).copy())
        made.allocatable = {name: column.copy() for name, column in self.allocatable.items()}
        made.requested = {name: column.copy() for name, column in self.requested.items()}
        made.staying = {name: column.copy() for name, column in self.staying.items()}
        made.tree = self.tree.copy()
        made._holders, made._row_of = self._holders.copy(), self._row_of.copy()
        made.clamped_rows = self.clamped_rows.copy()
        return made

    def offered(self, name: str) -> Column:
        """What each row has of a resource: of pods the number that it takes, 0 of what no node has."""
        column = self.allowed_pods if name == PODS else self.allocatable.get(name)
        return np.zeros_like(self.pod_count) if column is None else column

    def taken(self, name: str) -> Column:
        """What is taken on each row of a resource: of pods their number, 0 of what no node has."""
        column = self.pod_count if name == PODS else self.requested.get(name)
        return np.zeros_like(self.pod_count) if column is None else column

    def all_have(self, name: str) -> bool:
        """Whether every existing node has some of a resource; then nobody needs to guard divisions by it."""
        known = self._held_by_all.get(name)
        if known is None:
            column = self.allocatable.get(name)
            known = column is not None and bool((column[self.exists] > 0).all())
            self._held_by_all[name] = known
        return known

    def _count(self, pod: PodInfo, row: int, sign: int) -> None:
        requests = pod.placed
        self.pod_count[row] += sign
        if row in self.clamped_rows or any(amount > _HUGE for amount in requests.amounts.values()):
            self._recount(row)
        else:
            requested = self.requested
            for name, amount in requests.amounts.items():
                column = requested.get(name)
                if column is not None:
                    column[row] += sign * amount
            if pod.stays:
                self._count_staying(requests.amounts, row, sign)
            self.non_zero_cpu[row] += sign * requests.non_zero_cpu
            self.non_zero_memory[row] += sign * requests.non_zero_memory
        self.usage_changed.append(row)

    def _count_staying(self, amounts: Mapping[str, int], row: int, sign: int) -> None:
        for name, amount in (*amounts.items(), (PODS, 1)):
            column = self.staying.get(name)
            if column is not None:
                column[row] += sign * amount

    def _count_all(self, row: int) -> None:
        self.pod_count[row] = len(self.pods[row])
        self._recount(row)

    def _recount(self, row: int) -> None:
        """Sum a row from its pods with Python's integers and clamp, so that absurd requests cannot wrap int64."""
        pods = list(self.pods[row].values())
        self._recount_resources(row, self.requested)
        if PODS in self.staying:
            self.staying[PODS][row] = sum(pod.stays for pod in pods)
        self.non_zero_cpu[row] = min(sum(pod.placed.non_zero_cpu for pod in pods), TOO_MUCH)
        self.non_zero_memory[row] = min(sum(pod.placed.non_zero_memory for pod in pods), TOO_MUCH)
        if any(amount > _HUGE for pod in pods for amount in pod.placed.amounts.values()):
            self.clamped_rows.add(row)
        else:
            self.clamped_rows.discard(row)

    def _recount_resources(self, row: int, names: Iterable[str]) -> None:
        totals, staying = dict.fromkeys(names, 0), dict.fromkeys(self.staying.keys() & names, 0)
        for pod in self.pods[row].values():
            amounts = pod.placed.amounts
            # Whichever are fewer: nodes and pods may each have thousands of resources.
            for name in amounts.keys() & totals.keys():
                totals[name] += amounts[name]
                if pod.stays and name in staying:
                    staying[name] += amounts[name]
        for columns, sums in ((self.requested, totals), (self.staying, staying)):
            for name, total in sums.items():
                columns[name][row] = min(total, TOO_MUCH)

    def _set_allocatable(self, row: int, amounts: dict[str, int]) -> None:
        """Write what the node of a row has; what no node had gets a column, what none has any more loses it."""
        self.allowed_pods[row] = amounts.get(PODS, 0)
        self._add_columns([name for name, amount in amounts.items() if amount and name not in self.allocatable])
        for name, column in [*self.allocatable.items()]:
            amount = amounts.get(name, 0)
            self._holders[name] += (amount > 0) - (column.item(row) > 0)
            column[row] = amount
            if not self._holders[name]:
                for columns in (self._holders, self.allocatable, self.requested):
                    columns.pop(name, None)
                if name != PODS:
                    self.staying.pop(name, None)

    def _add_columns(self, names: Sequence[str]) -> None:
        self.allocatable.update({name: self._column() for name in names})
        requested = [name for name in names if name != PODS]
        self.requested.update({name: self._column() for name in requested})
        self.staying.update({name: self._column() for name in requested})
        for row, pods in enumerate(self.pods if requested else ()):
            if pods:
                self._recount_resources(row, requested)

    def _log_object(self, row: int) -> None:
        self._held_by_all.clear()
        self.objects_changed.append(row)
        self.usage_changed.append(row)

    def _column(self) -> Column:
        return np.zeros(self.capacity, dtype=np.int64)

    def _claim(self, name: str) -> int:
        row = self._row_of.get(name)
        if row is None:
            if not self._free:
                self._grow()
            row = self._free.pop()
            self._row_of[name] = row
            self.names[row] = name
        return row

    def _grow(self) -> None:
        old, self.capacity = self.capacity, self.capacity * 2
        added = self.capacity - old
        for columns in (self.allocatable, self.requested, self.staying):
            for name, column in columns.items():
                columns[name] = np.concatenate([column, np.zeros(added, dtype=np.int64)])
        for attribute in ("non_zero_cpu", "non_zero_memory", "pod_count", "allowed_pods"):
            column = getattr(self, attribute)
            setattr(self, attribute, np.concatenate([column, np.zeros(added, dtype=np.int64)]))
        self.exists = np.concatenate([self.exists, np.zeros(added, dtype=np.bool_)])
        self.names.extend([""] * added)
        self.nodes.extend([None] * added)
        self.pods.extend({} for _ in range(added))
        self._free = list(range(self.capacity - 1, old - 1, -1))
        self.layout += 1
