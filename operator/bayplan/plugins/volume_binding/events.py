"""The cluster events that may help a pod that VolumeBinding rejected (upstream: volume_binding.go)."""

from collections.abc import Sequence

from bayplan.api.storage_objects import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
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
from bayplan.plugins.volumes.claims import claim_hint


def volume_binding_events() -> Sequence[EventRegistration]:
    """Return the events and hints of VolumeBinding (upstream: EventsToRegister)."""
    added_or_updated = ActionType.ADD | ActionType.UPDATE
    class_event = cluster_event(EventResource.STORAGE_CLASS, added_or_updated)
    claim_event = cluster_event(EventResource.PERSISTENT_VOLUME_CLAIM, added_or_updated)
    csi_node_event = cluster_event(EventResource.CSI_NODE, added_or_updated)
    driver_event = cluster_event(EventResource.CSI_DRIVER, ActionType.UPDATE)
    capacity_event = cluster_event(EventResource.CSI_STORAGE_CAPACITY, added_or_updated)
    return (
        EventRegistration(class_event, _is_schedulable_after_storage_class_change),
        EventRegistration(claim_event, claim_hint(ephemeral_too=True)),
        EventRegistration(cluster_event(EventResource.PERSISTENT_VOLUME, added_or_updated)),
        EventRegistration(NODE_ADD),
        EventRegistration(NODE_LABEL),
        EventRegistration(NODE_TAINT),
        EventRegistration(csi_node_event, _is_schedulable_after_csi_node_change),
        EventRegistration(driver_event, _is_schedulable_after_csi_driver_change),
        EventRegistration(capacity_event, _is_schedulable_after_csi_storage_capacity_change),
    )


def _is_schedulable_after_storage_class_change(pod: PodInfo, old: object, new: object) -> QueueingHint:
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return QueueingHint.QUEUE
    return QueueingHint.queue_if((old.allowed_topologies or []) != (new.allowed_topologies or []))


def _is_schedulable_after_csi_node_change(pod: PodInfo, old: object, new: object) -> QueueingHint:
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return QueueingHint.QUEUE
    return QueueingHint.queue_if(_migrated_plugins(old) != _migrated_plugins(new))


def _migrated_plugins(csi_node: CSINode) -> str:
    annotations = csi_node.metadata.annotations
    return "" if annotations is None else annotations.migrated_plugins or ""


def _is_schedulable_after_csi_driver_change(pod: PodInfo, old: object, new: object) -> QueueingHint:
    """Queue the pod if its own volume's driver no longer wants the capacity to be checked."""
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return QueueingHint.QUEUE
    is_inline = any(
        volume.csi is not None and volume.csi.get("driver") == new.metadata.name
        for volume in pod.pod.spec.volumes or ()
    )
    return QueueingHint.queue_if(is_inline and bool(old.spec.storage_capacity) and not new.spec.storage_capacity)


def _is_schedulable_after_csi_storage_capacity_change(pod: PodInfo, old: object, new: object) -> QueueingHint:
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return QueueingHint.QUEUE
    before, now = volume_limit(old), volume_limit(new)
    return QueueingHint.queue_if(now is not None and (before is None or now > before))
