"""Which cluster events may help a pod that VolumeBinding rejected (upstream: volume_binding.go EventsToRegister)."""

from collections.abc import Sequence

from bayplan.api.storage_objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    NODE_ADD,
    NODE_LABEL,
    NODE_TAINT,
    ActionType,
    EventRegistration,
    EventResource,
    QueueingHint,
    cluster_event,
)
from bayplan.plugins.volume_binding.capacity import volume_limit
from bayplan.plugins.volumes.claims import names_claim


def volume_binding_events() -> Sequence[EventRegistration]:
    """The registrations of VolumeBinding."""
    added_or_updated = ActionType.ADD | ActionType.UPDATE
    return (
        EventRegistration(cluster_event(EventResource.STORAGE_CLASS, added_or_updated), _allows_other_topologies),
        EventRegistration(cluster_event(EventResource.PERSISTENT_VOLUME_CLAIM, added_or_updated), _is_its_claim),
        EventRegistration(cluster_event(EventResource.PERSISTENT_VOLUME, added_or_updated)),
        EventRegistration(NODE_ADD),
        EventRegistration(NODE_LABEL),
        EventRegistration(NODE_TAINT),
        EventRegistration(cluster_event(EventResource.CSI_NODE, added_or_updated), _migrates_other_plugins),
        EventRegistration(cluster_event(EventResource.CSI_DRIVER, ActionType.UPDATE), _stopped_counting_capacity),
        EventRegistration(cluster_event(EventResource.CSI_STORAGE_CAPACITY, added_or_updated), _has_more_space),
    )


def _hint(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def _allows_other_topologies(pod: PodInfo, old: object, new: object) -> QueueingHint:
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return QueueingHint.QUEUE
    return _hint((old.allowed_topologies or []) != (new.allowed_topologies or []))


def _is_its_claim(pod: PodInfo, old: object, new: object) -> QueueingHint:
    return _hint(not isinstance(new, PersistentVolumeClaim) or names_claim(pod, new, ephemeral_too=True))


def _migrates_other_plugins(pod: PodInfo, old: object, new: object) -> QueueingHint:
    return _hint(not isinstance(old, CSINode) or not isinstance(new, CSINode) or _migrated(old) != _migrated(new))


def _migrated(csi_node: CSINode) -> str:
    annotations = csi_node.metadata.annotations
    return "" if annotations is None else annotations.migrated_plugins or ""


def _stopped_counting_capacity(pod: PodInfo, old: object, new: object) -> QueueingHint:
    """Whether the driver of a volume written into the pod no longer wants its capacity looked at."""
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return QueueingHint.QUEUE
    inline = any(
        volume.csi is not None and volume.csi.get("driver") == new.metadata.name
        for volume in pod.pod.spec.volumes or ()
    )
    return _hint(inline and bool(old.spec.storage_capacity) and not new.spec.storage_capacity)


def _has_more_space(pod: PodInfo, old: object, new: object) -> QueueingHint:
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return QueueingHint.QUEUE
    before, now = volume_limit(old), volume_limit(new)
    return _hint(now is not None and (before is None or now > before))
