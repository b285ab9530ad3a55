"""NodePorts: a host port is taken once per node."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.host_ports import is_conflict
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_TAINT,
    EventRegistration,
    QueueingHint,
)
from bayplan.framework.interface import CycleState, PreFilterResult
from bayplan.framework.status import SKIP, SUCCESS, Code, Codes, Reason
from bayplan.framework.traits import Reads, Traits


class NodePorts:
    """Rejects nodes where a wanted host port is taken (upstream: plugins/nodeports/node_ports.go)."""

    name: ClassVar[str] = "NodePorts"
    traits: ClassVar[Traits] = Traits(reads=Reads.USAGE)

    def __init__(self, index: NodeIndex) -> None:
        self._index = index

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return pod.host_ports

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult(SUCCESS if pod.host_ports else SKIP)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        return self._index.host_ports.conflicts(pod.host_ports, nodes, rows) * np.int8(Code.UNSCHEDULABLE)

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        text = "node(s) didn't have free ports for the requested pod ports"
        return [Reason(text, np.ones(len(rows), dtype=np.bool_))]

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(ASSIGNED_POD_DELETE, _frees_a_wanted_port),
            EventRegistration(NODE_ADD),
            EventRegistration(NODE_TAINT),
        )


def _frees_a_wanted_port(pod: PodInfo, old: object, new: object) -> QueueingHint:
    """Return whether the deleted pod took a host port that `pod` wants."""
    if isinstance(old, PodInfo) and not is_conflict(pod.host_ports, old.host_ports):
        return QueueingHint.SKIP
    return QueueingHint.QUEUE
