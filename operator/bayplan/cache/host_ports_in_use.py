"""Which host ports the pods on each node take."""

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.host_ports import HostPort, is_conflict
from bayplan.cache.incremental_view import UsageView
from bayplan.cache.node_table import NodeTable


class HostPortsInUse(UsageView):
    """The host ports taken per row, for NodePorts; rows without any, which are most, are never looked at one by one."""

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes)
        self._taken: dict[int, frozenset[HostPort]] = {}
        self._any: NDArray[np.bool_] = np.zeros(nodes.capacity, dtype=np.bool_)

    def conflicts(self, wanted: tuple[HostPort, ...], nodes: NodeTable, rows: Rows) -> NDArray[np.bool_]:
        """Which of `rows` have a pod that takes one of the wanted ports, `(rows,) bool`.

        `nodes` may be another table than the one followed here, such as a shadow of it; then its pods are looked at.
        """
        if nodes is not self._nodes:
            on_rows = (nodes.pods[row].values() for row in rows.tolist())
            found = (any(is_conflict(wanted, pod.host_ports) for pod in pods) for pods in on_rows)
            return np.fromiter(found, dtype=np.bool_, count=len(rows))
        self.catch_up()
        result = self._any[rows]
        for at in np.flatnonzero(result).tolist():
            result[at] = is_conflict(wanted, self._taken[int(rows[at])])
        return result

    def _start_over(self) -> None:
        self._taken.clear()
        self._any = np.zeros(self._nodes.capacity, dtype=np.bool_)

    def _read(self, changes: Rows) -> None:
        for row in changes.tolist():
            taken = frozenset(port for pod in self._nodes.pods[row].values() for port in pod.host_ports)
            self._any[row] = bool(taken)
            if taken:
                self._taken[row] = taken
            else:
                self._taken.pop(row, None)
