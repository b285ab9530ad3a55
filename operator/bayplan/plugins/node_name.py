"""NodeName: a pod that names its node runs there or nowhere."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import NODE_ADD, EventRegistration
from bayplan.framework.interface import CycleState
from bayplan.framework.status import Code, Codes, Reads, Reason, Traits


class NodeName:
    """Rejects all nodes but the one in `spec.nodeName` (upstream: plugins/nodename/node_name.go)."""

    name: ClassVar[str] = "NodeName"
    traits: ClassVar[Traits] = Traits(reads=Reads.NODE)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return pod.pod.spec.node_name

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        wanted = pod.pod.spec.node_name
        if not wanted:
            return np.zeros(len(rows), dtype=np.int8)
        row = nodes.row(wanted)
        elsewhere = np.ones(len(rows), dtype=np.bool_) if row is None else rows != row
        return elsewhere * np.int8(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        return [Reason("node(s) didn't match the requested node name", np.ones(len(rows), dtype=np.bool_))]

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (EventRegistration(NODE_ADD),)
