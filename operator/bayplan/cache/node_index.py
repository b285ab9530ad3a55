"""Node objects as columns a filter can look up for many rows at once: labels, taints, cordons."""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayplan.api.objects import Taint
from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import NodeView
from bayplan.cache.node_table import NodeTable
from bayplan.cache.recently_used import RecentlyUsed

V = TypeVar("V", bound=Hashable)

_SLACK = 64


class InternedColumn(Generic[V]):
    """One value per row, each distinct value stored once; plugins ask once per value instead of once per node.

    `ids` are `(capacity,) int32` places in `values`; place 0 is the value of rows without a node. A value keeps its
    place for as long as the column lives, and values no row has any more stay until the owner builds a new column.
    """

    __slots__ = ("_id_of", "ids", "values")

    def __init__(self, capacity: int, absent: V) -> None:
        self.ids: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.values: list[V] = [absent]
        self._id_of: dict[V, int] = {absent: 0}

    def set(self, row: int, value: V) -> None:
        """Give `row` its value."""
        known = self._id_of.get(value)
        if known is None:
            known = self._id_of[value] = len(self.values)
            self.values.append(value)
        self.ids[row] = known

    def id_of(self, value: V) -> int | None:
        """The place of `value`, or None when no row ever had it."""
        return self._id_of.get(value)

    @property
    def crowded(self) -> bool:
        """Whether most values are left over from rows that have others now."""
        return len(self.values) > 2 * len(self.ids) + _SLACK

    def each(self, rows: Rows, answer: Callable[[V], Any], dtype: type[np.generic]) -> NDArray[Any]:
        """`answer(value)` for each row, called once per distinct value among `rows`, `(rows,) dtype`."""
        ids = self.ids[rows]
        if len(ids) == 1:
            return np.array([answer(self.values[ids[0]])], dtype=dtype)
        answers = np.zeros(len(self.values), dtype=dtype)
        for place in np.flatnonzero(np.bincount(ids, minlength=1)).tolist():
            answers[place] = answer(self.values[place])
        result: NDArray[Any] = answers[ids]
        return result


_KEPT_LABEL_KEYS = 256
"""How many label keys have a column; more than clusters use. Keys that no node has need none."""

LabelColumn = InternedColumn[str | None]
"""A label's value per row; place 0 is None, for nodes without the label and rows without a node."""

TaintColumn = InternedColumn[tuple[Taint, ...]]
"""A node's taints per row; place 0 is no taints."""


class NodeIndex(NodeView):
    """What plugins look up of node objects, read from the table once and again only where an object changed.

    Shared by all plugins of all profiles. Each part catches up with the table when it is asked, so an answer is
    never older than the table; what it returns is valid until the table changes next.
    """

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes)
        self.labels = LabelColumns(nodes)
        self._start_over()

    def taints(self) -> TaintColumn:
        """Each row's taints, in the node's order."""
        self.catch_up()
        return self._taints

    def unschedulable(self) -> NDArray[np.bool_]:
        """Which rows are cordoned, `(capacity,) bool`."""
        self.catch_up()
        return self._unschedulable

    def _start_over(self) -> None:
        self._taints: TaintColumn = InternedColumn(self._nodes.capacity, ())
        self._unschedulable: NDArray[np.bool_] = np.zeros(self._nodes.capacity, dtype=np.bool_)

    def _read(self, changes: Rows) -> None:
        if self._taints.crowded:
            self._read_all()
            return
        for row in changes.tolist():
            node = self._nodes.nodes[row]
            self._taints.set(row, () if node is None else tuple(node.spec.taints or ()))
            self._unschedulable[row] = node is not None and node.spec.unschedulable


class LabelColumns(NodeView):
    """A column per label key that somebody asked for, the most recently used ones.

    Made-up topology keys of pods cost next to nothing, as the keys of existing nodes are known.
    """

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes)
        self.keys: Counter[str] = Counter()
        """On how many existing nodes each label key is, but for those on none; call `catch_up` before looking."""
        self.keys_version = 0
        """Grows when other keys are on existing nodes."""
        self._keys_of_row: dict[int, frozenset[str]] = {}
        self._columns: RecentlyUsed[str, LabelColumn] = RecentlyUsed(_KEPT_LABEL_KEYS)
        self._absent: LabelColumn = InternedColumn(nodes.capacity, None)

    def column(self, key: str) -> LabelColumn:
        """The values of the label `key`; place 0 of the column is None."""
        self.catch_up()
        column = self._columns.get(key)
        if column is None:
            if key not in self.keys:
                # Pods may make up thousands of keys.
                return self._absent
            column = self._columns.put(key, self._build(key))
        return column

    def _start_over(self) -> None:
        self._columns.clear()
        self._absent = InternedColumn(self._nodes.capacity, None)

    def _read(self, changes: Rows) -> None:
        for row in changes.tolist():
            node = self._nodes.nodes[row]
            labels = {} if node is None else node.metadata.labels or {}
            self._set_keys(row, frozenset(labels))
            for key, column in self._columns.items():
                column.set(row, labels.get(key))
        for key in [key for key, column in self._columns.items() if column.crowded]:
            self._columns.drop(key)

    def _set_keys(self, row: int, now: frozenset[str]) -> None:
        before = self._keys_of_row.get(row, frozenset())
        if now == before:
            return
        self._keys_of_row[row] = now
        for key in now - before:
            self.keys_version += key not in self.keys
            self.keys[key] += 1
        for key in before - now:
            self.keys[key] -= 1
            if not self.keys[key]:
                del self.keys[key]
                self.keys_version += 1

    def _build(self, key: str) -> LabelColumn:
        column: LabelColumn = InternedColumn(self._nodes.capacity, None)
        for row in self._nodes.rows().tolist():
            node = self._nodes.nodes[row]
            if node is not None and node.metadata.labels and key in node.metadata.labels:
                column.set(row, node.metadata.labels[key])
        return column
