"""What CSINodes say of nodes, as columns: how much a driver can attach, and which in-tree plugins it replaces."""

from collections.abc import Iterator
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayplan.api.storage_objects import CSINode
from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import NodeView
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import Column, NodeTable
from bayplan.plugins.volumes.csi_migration import is_migrated_on

NO_LIMIT: Final = 2**62
"""In a column of limits: nothing limits the driver on that node; more than anything counts."""

_KEPT_COLUMNS = 64

C = TypeVar("C")


class CSINodeColumns(NodeView):
    """Columns over the rows of a node table, made when first asked for and again only where a CSINode changed."""

    def __init__(self, nodes: NodeTable, listers: Listers) -> None:
        super().__init__(nodes)
        self._csi_nodes = listers.of(CSINode)
        self._csi_nodes_at = 0
        self._limits: dict[str, Column] = {}
        self._migrated: dict[str, NDArray[np.bool_]] = {}

    def limits(self, driver: str) -> Column:
        """How many volumes of a driver each node can attach, or NO_LIMIT, `(capacity,) int64`."""
        self._catch_up()
        column = self._limits.get(driver)
        if column is None:
            column = np.full(self._nodes.capacity, NO_LIMIT, dtype=np.int64)
            for row, csi_node in self._by_row():
                column[row] = _limit_of(csi_node, driver)
            _keep(self._limits, driver, column)
        return column

    def migrated(self, plugin: str) -> NDArray[np.bool_]:
        """On which nodes the kubelet leaves an in-tree plugin's volumes to the CSI driver, `(capacity,) bool`."""
        self._catch_up()
        column = self._migrated.get(plugin)
        if column is None:
            column = np.zeros(self._nodes.capacity, dtype=np.bool_)
            for row, csi_node in self._by_row():
                column[row] = is_migrated_on(plugin, csi_node)
            _keep(self._migrated, plugin, column)
        return column

    def _by_row(self) -> Iterator[tuple[int, CSINode]]:
        for name, csi_node in self._csi_nodes.objects.items():
            row = self._nodes.row(name)
            if row is not None:
                yield row, csi_node

    def _catch_up(self) -> None:
        self.catch_up()
        at, self._csi_nodes_at = self._csi_nodes_at, self._csi_nodes.version
        if at == self._csi_nodes_at:
            return
        names = self._csi_nodes.changes.since(at)
        if names is None:
            self._read_all()
        else:
            rows = (self._nodes.row(name) for name in names)
            self._read(np.array([row for row in rows if row is not None], dtype=np.intp))

    def _read_all(self) -> None:
        self._limits.clear()
        self._migrated.clear()

    def _read(self, changes: Rows) -> None:
        for row in changes.tolist():
            csi_node = self._csi_nodes.get(self._nodes.names[row])
            for driver, limits in self._limits.items():
                limits[row] = NO_LIMIT if csi_node is None else _limit_of(csi_node, driver)
            for plugin, migrated in self._migrated.items():
                migrated[row] = is_migrated_on(plugin, csi_node)


def limits_of(csi_node: CSINode) -> dict[str, int]:
    """How many volumes each driver can attach to a node; drivers that do not say are left out."""
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers or ()
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _limit_of(csi_node: CSINode, driver: str) -> int:
    return max(-NO_LIMIT, min(limits_of(csi_node).get(driver, NO_LIMIT), NO_LIMIT))


def _keep(columns: dict[str, C], key: str, column: C) -> None:
    if len(columns) >= _KEPT_COLUMNS:
        columns.clear()
    columns[key] = column
