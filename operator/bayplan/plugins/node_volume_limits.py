"""NodeVolumeLimits: no more volumes of a CSI driver on a node than the driver can attach there."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from bayplan.api.objects import Pod
from bayplan.api.storage_objects import (
    CSINode,
    PersistentVolumeClaim,
    VolumeAttachment,
)
from bayplan.cache.change_log import Rows
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import CycleState, PreFilterResult, Reads
from bayplan.framework.status import SKIP, SUCCESS, Code, Codes, Reason
from bayplan.plugins.node_volume_counts import AttachedVolumes, MissingClaimError
from bayplan.plugins.volume_claims import has_claims, names_claim
from bayplan.plugins.volume_migration import csi_volume_of_inline, is_migrated_inline
from bayplan.queue.cluster_event import (
    ASSIGNED_POD_DELETE,
    ActionType,
    EventRegistration,
    EventResource,
    QueueingHint,
    cluster_event,
)

_EXCEEDED = "node(s) exceed max volume count"
_NO_LIMITS: dict[str, int] = {}


class NodeVolumeLimits:
    """Rejects nodes on which a CSI driver of the pod's volumes has no attachment left.

    Nodes without a CSINode, or whose CSINode gives no count, have no limit. Upstream: plugins/nodevolumelimits/csi.go.
    """

    name: ClassVar[str] = "NodeVolumeLimits"
    # It reads claims and attachments too, but pods with volumes it counts share no evaluation.
    reads: ClassVar[Reads] = Reads.USAGE

    def __init__(self, nodes: NodeTable, listers: Listers) -> None:
        self._csi_nodes = listers.of(CSINode)
        self._attached = AttachedVolumes(nodes, listers)
        self._by_node: dict[str, dict[str, int]] = {}
        self._limits_at = -1

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return None if _has_counted_volumes(pod) else ()

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult(SUCCESS if _has_counted_volumes(pod) else SKIP)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        try:
            wanted = self._attached.of_new_pod(pod)
        except MissingClaimError:
            return np.full(len(rows), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, dtype=np.int8)
        codes = np.zeros(len(rows), dtype=np.int8)
        if not wanted:
            return codes
        drivers = {volume.driver for volume in wanted}
        for place, row in enumerate(rows.tolist()):
            limits = self._limits(nodes.names[row])
            limited = drivers & limits.keys()
            if not limited:
                continue
            # Most nodes are far from their limit, and counting what could be there at most shows it.
            most = len(wanted) + self._attached.most_on_row(nodes, row)
            if most <= min(limits[driver] for driver in limited):
                continue
            used = self._attached.on_row(nodes, row)
            new = {volume for volume in wanted if volume not in used}
            for driver in {volume.driver for volume in new} & limits.keys():
                count = sum(volume.driver == driver for volume in new)
                count += sum(volume.driver == driver for volume in used)
                count += sum(
                    volume.driver == driver for volume in self._attached.by_attachment(nodes.names[row]) - used
                )
                if count > limits[driver]:
                    codes[place] = Code.UNSCHEDULABLE
        return codes

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        text = _EXCEEDED
        try:
            self._attached.of_new_pod(pod)
        except MissingClaimError as missing:
            text = str(missing)
        return [Reason(text, np.ones(len(rows), dtype=np.bool_))]

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(cluster_event(EventResource.CSI_NODE, ActionType.ADD)),
            EventRegistration(cluster_event(EventResource.CSI_NODE, ActionType.UPDATE), _limit_was_raised),
            EventRegistration(ASSIGNED_POD_DELETE, _freed_volumes),
            EventRegistration(cluster_event(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), _is_its_claim),
            EventRegistration(
                cluster_event(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE), _may_need_the_attachment
            ),
        )

    def _limits(self, node_name: str) -> dict[str, int]:
        if self._limits_at != self._csi_nodes.version:
            self._limits_at = self._csi_nodes.version
            self._by_node = {key: _limits_of(each) for key, each in self._csi_nodes.objects.items()}
        return self._by_node.get(node_name, _NO_LIMITS)


def _limits_of(csi_node: CSINode) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers or ()
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _has_counted_volumes(pod: PodInfo) -> bool:
    return pod.pod.spec.volumes is not None and (has_claims(pod) or _has_migrated_inline(pod.pod))


def _has_migrated_inline(pod: Pod) -> bool:
    return any(is_migrated_inline(volume) for volume in pod.spec.volumes or ())


def _limit_was_raised(pod: PodInfo, old: object, new: object) -> QueueingHint:
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return QueueingHint.QUEUE
    before = _limits_of(old)
    raised = any(count > before.get(driver, 0) for driver, count in _limits_of(new).items())
    return QueueingHint.QUEUE if raised else QueueingHint.SKIP


def _freed_volumes(pod: PodInfo, old: object, new: object) -> QueueingHint:
    if not isinstance(old, PodInfo):
        return QueueingHint.QUEUE
    return QueueingHint.QUEUE if _has_counted_volumes(old) else QueueingHint.SKIP


def _is_its_claim(pod: PodInfo, old: object, new: object) -> QueueingHint:
    if isinstance(new, PersistentVolumeClaim) and not names_claim(pod, new, ephemeral_too=True):
        return QueueingHint.SKIP
    return QueueingHint.QUEUE


def _may_need_the_attachment(pod: PodInfo, old: object, new: object) -> QueueingHint:
    """Whether the pod has a claim, or a disk of the driver that let one go; ephemeral volumes do not count here."""
    attacher = old.spec.attacher if isinstance(old, VolumeAttachment) else None
    for volume in pod.pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            return QueueingHint.QUEUE
        translated = csi_volume_of_inline(volume)
        if is_migrated_inline(volume) and (translated is None or attacher in (None, translated.driver)):
            return QueueingHint.QUEUE
    return QueueingHint.SKIP
