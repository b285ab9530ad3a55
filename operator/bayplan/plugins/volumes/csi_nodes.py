"""CSINodes as columns over the nodes: drivers, how much they can attach, and which in-tree plugins they replace."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bayplan.api.storage_objects import CSINode
from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import NodeView
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.plugins.volumes.csi_migration import is_migrated_on

NO_LIMIT: Final = 2**62
"""Stands for "no limit" in a column of limits; larger than any count."""

_KEPT_COLUMNS = 64

_Read = Callable[[str, CSINode | None], int]
"""`(name, csi_node)`: what a CSINode, or its absence, says of the driver or in-tree plugin `name`."""


class CSINodeColumns(NodeView):
    """Keeps columns over the rows of a node table; each is made when first asked for.

    A column is brought up to date only where a CSINode or a node changed. At most `_KEPT_COLUMNS` are kept.
    """

    def __init__(self, nodes: NodeTable, listers: Listers) -> None:
        super().__init__(nodes)
        self._csi_nodes = listers.of(CSINode)
        self._changes = self._csi_nodes.follower()
        self._columns: RecentlyUsed[tuple[_Read, str], NDArray[Any]] = RecentlyUsed(_KEPT_COLUMNS)

    def limits(self, driver: str) -> Column:
        """Return how many volumes of a driver each node can attach, or NO_LIMIT, `(capacity,) int64`."""
        return self._column(_limit_of, driver, np.int64)

    def installed(self, driver: str) -> NDArray[np.bool_]:
        """Tell on which nodes a driver is installed, `(capacity,) bool`."""
        return self._column(_is_installed, driver, np.bool_)

    def existing(self) -> NDArray[np.bool_]:
        """Tell which nodes have a CSINode, `(capacity,) bool`."""
        return self._column(_exists, "", np.bool_)

    def migrated(self, plugin: str) -> NDArray[np.bool_]:
        """Tell on which nodes the kubelet leaves an in-tree plugin's volumes to the CSI driver, `(capacity,) bool`."""
        return self._column(is_migrated_on, plugin, np.bool_)

    def _column(self, read: _Read, name: str, dtype: type[np.generic]) -> NDArray[Any]:
        self._catch_up()
        column = self._columns.get((read, name))
        if column is None:
            unsaid = np.full(self._nodes.capacity, read(name, None), dtype=dtype)
            column = self._columns.put((read, name), unsaid)
            for node_name, csi_node in self._csi_nodes.objects.items():
                row = self._nodes.row(node_name)
                if row is not None:
                    column[row] = read(name, csi_node)
        return column

    def _catch_up(self) -> None:
        self.catch_up()
        rows = (self._nodes.row(name) for name in self._changes.follow(self._nodes.names))
        self._read(np.array([row for row in rows if row is not None], dtype=np.intp))

    def _read_all(self) -> None:
        self._columns.clear()

    def _read(self, changes: Rows) -> None:
        for row in changes.tolist():
            csi_node = self._csi_nodes.get(self._nodes.names[row])
            for (read, name), column in self._columns.items():
                column[row] = read(name, csi_node)


def limits_of(csi_node: CSINode) -> dict[str, int]:
    """Return how many volumes each driver can attach to a node; drivers that do not say are left out."""
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers or ()
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _is_installed(driver: str, csi_node: CSINode | None) -> bool:
    return csi_node is not None and any(each.name == driver for each in csi_node.spec.drivers or ())


def _exists(_: str, csi_node: CSINode | None) -> bool:
    return csi_node is not None


def _limit_of(driver: str, csi_node: CSINode | None) -> int:
    limit = NO_LIMIT if csi_node is None else limits_of(csi_node).get(driver, NO_LIMIT)
    return max(-NO_LIMIT, min(limit, NO_LIMIT))
