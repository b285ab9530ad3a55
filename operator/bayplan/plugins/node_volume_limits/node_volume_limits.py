"""NodeVolumeLimits: place no more volumes of a CSI driver on a node than the driver can attach there."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from bayplan.api.storage_objects import CSINode, VolumeAttachment
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
from bayplan.plugins.node_volume_limits.attachable_volumes import AttachableVolumes, MissingClaimError
from bayplan.plugins.node_volume_limits.volume_counts import VolumeCounts
from bayplan.plugins.volumes.claims import claim_hint, has_claims
from bayplan.plugins.volumes.csi_migration import translate_inline_volume
from bayplan.plugins.volumes.csi_nodes import NO_LIMIT, CSINodeColumns, limits_of

_EXCEEDED = "node(s) exceed max volume count"


class NodeVolumeLimits:
    """Rejects nodes on which a CSI driver of the pod's volumes can attach no further volume.

    Nodes without a CSINode, or whose CSINode gives no count, have no limit. Upstream:
    pkg/scheduler/framework/plugins/nodevolumelimits/csi.go.
    """

    name: ClassVar[str] = "NodeVolumeLimits"
    # Which volumes a pod's claims stand for is found out in every cycle, so that pods share what other plugins say.
    traits: ClassVar[Traits] = Traits(reads=Reads.CLUSTER)

    def __init__(self, nodes: NodeTable, listers: Listers) -> None:
        self._csi_nodes = CSINodeColumns(nodes, listers)
        self._attachable = AttachableVolumes(listers)
        self._counts = VolumeCounts(nodes, listers, self._attachable)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return _has_attachable_volumes(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult(SUCCESS) if _has_attachable_volumes(pod) else NOT_CONCERNED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        try:
            wanted = self._attachable.of_new_pod(pod)
        except MissingClaimError:
            return np.full(len(rows), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, dtype=np.int8)
        exceeded = np.zeros(len(rows), dtype=np.bool_)
        for driver in {volume.driver for volume in wanted}:
            limits = self._csi_nodes.limits(driver)[rows]
            limited = np.flatnonzero(limits != NO_LIMIT)
            if len(limited):
                volumes = {volume for volume in wanted if volume.driver == driver}
                count, new = self._counts.with_new(volumes, driver, nodes, rows[limited])
                exceeded[limited] |= (new > 0) & (count > limits[limited])
        return exceeded * np.int8(Code.UNSCHEDULABLE)

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        text = _EXCEEDED
        try:
            self._attachable.of_new_pod(pod)
        except MissingClaimError as missing:
            text = str(missing)
        return [Reason(text, np.ones(len(rows), dtype=np.bool_))]

    def events_to_register(self) -> Sequence[EventRegistration]:
        csi_node_updated = cluster_event(EventResource.CSI_NODE, ActionType.UPDATE)
        claim_added = cluster_event(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
        attachment_deleted = cluster_event(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE)
        return (
            EventRegistration(cluster_event(EventResource.CSI_NODE, ActionType.ADD)),
            EventRegistration(csi_node_updated, _is_schedulable_after_csi_node_updated),
            EventRegistration(ASSIGNED_POD_DELETE, _is_schedulable_after_pod_deleted),
            EventRegistration(claim_added, claim_hint(ephemeral_too=True)),
            EventRegistration(attachment_deleted, _is_schedulable_after_attachment_deleted),
        )


def _has_attachable_volumes(pod: PodInfo) -> bool:
    volumes = pod.pod.spec.volumes
    return volumes is not None and (has_claims(pod) or any(map(translate_inline_volume, volumes)))


def _is_schedulable_after_csi_node_updated(pod: PodInfo, old: object, new: object) -> QueueingHint:
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return QueueingHint.QUEUE
    before = limits_of(old)
    return QueueingHint.queue_if(any(count > before.get(driver, 0) for driver, count in limits_of(new).items()))


def _is_schedulable_after_pod_deleted(pod: PodInfo, old: object, new: object) -> QueueingHint:
    return QueueingHint.queue_if(not isinstance(old, PodInfo) or _has_attachable_volumes(old))


def _is_schedulable_after_attachment_deleted(pod: PodInfo, old: object, new: object) -> QueueingHint:
    """Queue the pod if it names a claim or has a disk of the detached volume's driver; ephemeral ones do not count."""
    attacher = old.spec.attacher if isinstance(old, VolumeAttachment) else None
    for volume in pod.pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            return QueueingHint.QUEUE
        translation = translate_inline_volume(volume)
        if translation is not None and (translation.problem or attacher in (None, translation.driver)):
            return QueueingHint.QUEUE
    return QueueingHint.SKIP
