"""NodePorts: a host port is taken once per node."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.container_requests import ANY_IP, HostPort
from bayplan.cache.incremental_view import UsageView
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.causes import Detail, PortsTaken, first_found, listed
from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, NODE_ADD, EventRegistration, hint
from bayplan.framework.interface import CycleState, PreFilterResult
from bayplan.framework.status import SKIP, SUCCESS, Code, Codes, Reads, Reason, Traits


class HostPortsInUse(UsageView):
    """The host ports taken on each row; rows without any, which are most, are never looked at one by one."""

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes)
        self._taken: dict[int, frozenset[HostPort]] = {}
        self._any: NDArray[np.bool_] = np.zeros(nodes.capacity, dtype=np.bool_)

    def conflicts(self, wanted: tuple[HostPort, ...], nodes: NodeTable, rows: Rows) -> NDArray[np.bool_]:
        """Which of `rows` have a pod that takes one of the wanted ports, `(rows,) bool`.

        `nodes` may be another table than the one followed here, such as a scratch table; then its pods are looked at.
        """
        if nodes is not self._nodes:
            on_rows = (nodes.pods[row].values() for row in rows.tolist())
            found = (any(_is_conflict(wanted, pod.host_ports) for pod in pods) for pods in on_rows)
            return np.fromiter(found, dtype=np.bool_, count=len(rows))
        self.catch_up()
        result = self._any[rows]
        for at in np.flatnonzero(result).tolist():
            result[at] = _is_conflict(wanted, self._taken[int(rows[at])])
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


class NodePorts:
    """Rejects nodes where a wanted host port is taken (upstream: plugins/nodeports/node_ports.go)."""

    name: ClassVar[str] = "NodePorts"
    traits: ClassVar[Traits] = Traits(
        reads=Reads.USAGE,
        without_pre_filter='reading "PreFilterNodePorts" from cycleState: not found',
    )

    def __init__(self, nodes: NodeTable) -> None:
        self._in_use = HostPortsInUse(nodes)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return pod.host_ports

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult(SUCCESS if pod.host_ports else SKIP)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        return self._in_use.conflicts(pod.host_ports, nodes, rows) * np.int8(Code.UNSCHEDULABLE)

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        text = "node(s) didn't have free ports for the requested pod ports"
        return [Reason(text, np.ones(len(rows), dtype=np.bool_))]

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Detail]:
        def tell(places: NDArray[np.intp]) -> PortsTaken:
            taken = first_found(_takers(pod.host_ports, nodes, rows[places]))
            wanted = [f"{port.port}/{port.protocol}" for port in pod.host_ports]
            return PortsTaken(listed(wanted), taken)

        return [Detail(np.ones(len(rows), dtype=np.bool_), tell)]

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(ASSIGNED_POD_DELETE, hint(_frees_a_wanted_port, old=PodInfo)),
            EventRegistration(NODE_ADD),
        )


def _frees_a_wanted_port(pod: PodInfo, old: PodInfo, new: object) -> bool:
    """Return whether the deleted pod took a host port that `pod` wants."""
    return _is_conflict(pod.host_ports, old.host_ports)


def _takers(wanted: tuple[HostPort, ...], nodes: NodeTable, rows: Rows) -> Iterator[str]:
    for row in rows.tolist():
        for other in nodes.pods[row].values():
            if _is_conflict(wanted, other.host_ports):
                yield f"{other.key} on {nodes.names[row]}"


def _is_conflict(wanted: Iterable[HostPort], taken: Iterable[HostPort]) -> bool:
    """Whether some wanted port is taken on an address both sides mean."""
    addresses: dict[tuple[int, str], set[str]] = {}
    for port in taken:
        addresses.setdefault(port[:2], set()).add(port.ip)
    for port in wanted:
        there = addresses.get(port[:2])
        if there and (port.ip == ANY_IP or port.ip in there or ANY_IP in there):
            return True
    return False
