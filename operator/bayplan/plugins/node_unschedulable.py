"""NodeUnschedulable: cordoned nodes take no new pods."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from bayplan.api.objects import Node, Taint
from bayplan.api.tolerations import tolerates
from bayplan.cache.change_log import Rows
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.causes import Cordoned, Detail, same_for_all
from bayplan.framework.cluster_event import NODE_ADD, NODE_TAINT, TARGET_POD_TOLERATION, EventRegistration, hint
from bayplan.framework.interface import CycleState
from bayplan.framework.status import Code, Codes, Reads, Reason, Traits

_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable:
    """Rejects nodes with `spec.unschedulable` unless the pod tolerates that.

    Upstream: plugins/nodeunschedulable/node_unschedulable.go.
    """

    name: ClassVar[str] = "NodeUnschedulable"
    traits: ClassVar[Traits] = Traits(reads=Reads.NODE)

    def __init__(self, index: NodeIndex) -> None:
        self._index = index

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return _tolerates_cordon(pod)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        cordoned = self._index.unschedulable()[rows]
        if cordoned.any() and _tolerates_cordon(pod):
            cordoned[:] = False
        return cordoned * np.int8(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        return [Reason("node(s) were unschedulable", np.ones(len(rows), dtype=np.bool_))]

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Detail]:
        return [same_for_all(np.ones(len(rows), dtype=np.bool_), Cordoned())]

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(NODE_ADD, hint(_becomes_schedulable, new=Node)),
            EventRegistration(NODE_TAINT, hint(_becomes_schedulable, new=Node)),
            EventRegistration(TARGET_POD_TOLERATION, hint(_tolerates_now, new=PodInfo)),
        )


def _tolerates_cordon(pod: PodInfo) -> bool:
    # Nearly all tolerations have other keys, and this runs for the shape of every pod.
    for toleration in pod.pod.spec.tolerations or ():
        if toleration.key in ("", _CORDONED.key) and tolerates((toleration,), _CORDONED):
            return True
    return False


def _becomes_schedulable(pod: PodInfo, old: Node | None, new: Node) -> bool:
    """Return whether the node was cordoned, or is new, and is not cordoned now."""
    return (old is None or old.spec.unschedulable) and not new.spec.unschedulable


def _tolerates_now(pod: PodInfo, old: object, new: PodInfo) -> bool:
    return _tolerates_cordon(new)
