"""The nodes of a table in the order of their names, as people count: n2 before n10."""

import numpy as np
from numpy.typing import NDArray

from bayplan.api.natural_order import natural_key
from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.framework.causes import LISTED, Listed


class NodeOrder:
    """Knows the place of each row, sorted once until a node changes, so that groups are listed without sorting."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._rows: Rows | None = None
        self._places: NDArray[np.intp] = np.zeros(0, dtype=np.intp)

    def listed(self, rows: Rows) -> Listed:
        """The first names among existing `rows`, and how many more there are."""
        count = min(len(rows), LISTED)
        places = self._current()[rows]
        first = rows[np.argpartition(places, count - 1)[:count]] if 0 < count < len(rows) else rows
        ordered = first[np.argsort(self._places[first])]
        return Listed(tuple(self._nodes.names[row] for row in ordered.tolist()), len(rows) - count)

    def first(self, rows: Rows) -> int:
        """The row whose name comes first, of at least one."""
        return int(rows[int(self._current()[rows].argmin())])

    def _current(self) -> NDArray[np.intp]:
        rows = self._nodes.rows()
        if self._rows is not rows:
            names = self._nodes.names
            self._places = np.zeros(self._nodes.capacity, dtype=np.intp)
            self._places[sorted(rows.tolist(), key=lambda row: natural_key(names[row]))] = np.arange(len(rows))
            self._rows = rows
        return self._places
