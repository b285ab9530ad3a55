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
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    ActionType,
    EventRegistration,
    EventResource,
    QueueingHint,
    cluster_event,
)
from bayplan.framework.interface import NOT_CONCERNED, CycleState, PreFilterResult
from bayplan.framework.status import SUCCESS, Code, Codes, Reason
from bayplan.framework.traits import Reads, Traits
from bayplan.plugins.node_volume_limits.volume_counts import AttachedVolumes
from bayplan.plugins.volumes.claims import has_claims, names_claim
from bayplan.plugins.volumes.csi_migration import inline_driver, inline_problem, is_migratable_inline
from bayplan.plugins.volumes.csi_nodes import NO_LIMIT, CSINodeColumns, limits_of
from bayplan.plugins.volumes.resolver import MissingClaimError, VolumeResolver

_EXCEEDED = "node(s) exceed max volume count"


class NodeVolumeLimits:
    """Rejects nodes on which a CSI driver of the pod's volumes has no attachment left.

    Nodes without a CSINode, or whose CSINode gives no count, have no limit. Upstream: plugins/nodevolumelimits/csi.go.
    """

    name: ClassVar[str] = "NodeVolumeLimits"
    # Which volumes a pod's claims stand for is found out in every cycle, so that pods share what other plugins say.
    traits: ClassVar[Traits] = Traits(reads=Reads.CLUSTER)

    def __init__(self, nodes: NodeTable, listers: Listers) -> None:
        self._csi_nodes = CSINodeColumns(nodes, listers)
        self._resolver = VolumeResolver(listers)
        self._attached = AttachedVolumes(nodes, listers, self._resolver)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return _has_counted_volumes(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult(SUCCESS) if _has_counted_volumes(pod) else NOT_CONCERNED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        try:
            wanted = self._resolver.of_new_pod(pod)
        except MissingClaimError:
            return np.full(len(rows), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, dtype=np.int8)
        exceeded = np.zeros(len(rows), dtype=np.bool_)
        for driver in {volume.driver for volume in wanted}:
            limits = self._csi_nodes.limits(driver)[rows]
            limited = np.flatnonzero(limits != NO_LIMIT)
            if len(limited):
                volumes = {volume for volume in wanted if volume.driver == driver}
                count, new = self._attached.with_new(volumes, driver, nodes, rows[limited])
                exceeded[limited] |= (new > 0) & (count > limits[limited])
        return exceeded * np.int8(Code.UNSCHEDULABLE)

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        text = _EXCEEDED
        try:
            self._resolver.of_new_pod(pod)
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


def _has_counted_volumes(pod: PodInfo) -> bool:
    return pod.pod.spec.volumes is not None and (has_claims(pod) or _has_migratable_inline(pod.pod))


def _has_migratable_inline(pod: Pod) -> bool:
    return any(is_migratable_inline(volume) for volume in pod.spec.volumes or ())


def _limit_was_raised(pod: PodInfo, old: object, new: object) -> QueueingHint:
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return QueueingHint.QUEUE
    before = limits_of(old)
    raised = any(count > before.get(driver, 0) for driver, count in limits_of(new).items())
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
        if inline_problem(volume) or (is_migratable_inline(volume) and attacher in (None, inline_driver(volume))):
            return QueueingHint.QUEUE
    return QueueingHint.SKIP
