"""Volumes, claims and what storage drivers say of nodes, cut to the fields the volume plugins read.

Of the annotations only those that volume binding reads are decoded; the others, which may be long or secret, are
dropped as everywhere.
"""

from typing import Any

import msgspec

from bayplan.api.meta_objects import Annotations, Described, LabelSelector, ObjectMeta, Quantity, Struct
from bayplan.api.objects import NodeSelector


class StorageAnnotations(Annotations, frozen=True):
    """The annotations by which the scheduler, the volume controllers and the kubelet speak about volumes.

    None means that the annotation is absent, which differs from an empty one.
    """

    selected_node: str | None = msgspec.field(default=None, name="volume.kubernetes.io/selected-node")
    bind_completed: str | None = msgspec.field(default=None, name="pv.kubernetes.io/bind-completed")
    bound_by_controller: str | None = msgspec.field(default=None, name="pv.kubernetes.io/bound-by-controller")
    storage_class: str | None = msgspec.field(default=None, name="volume.beta.kubernetes.io/storage-class")
    migrated_plugins: str | None = msgspec.field(default=None, name="storage.alpha.kubernetes.io/migrated-plugins")


NO_ANNOTATIONS = StorageAnnotations()


class StorageMeta(ObjectMeta, frozen=True):
    """The metadata of a volume, a claim or a CSINode, with its storage annotations."""

    annotations: StorageAnnotations | None = None


class ObjectReference(Struct, frozen=True):
    """The claim a volume is meant for."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSIVolumeSource(Struct, frozen=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Struct, frozen=True):
    """Which nodes can reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Struct, frozen=True):
    """What a volume is, for whom, and where it can be reached."""

    capacity: dict[str, Quantity] | None = None
    access_modes: list[str] | None = None
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIVolumeSource | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None


class PersistentVolumeStatus(Struct, frozen=True):
    """Where a volume is in its life."""

    phase: str = ""


class PersistentVolume(Struct, frozen=True):
    """A v1 PersistentVolume."""

    metadata: StorageMeta = StorageMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class VolumeResources(Struct, frozen=True):
    """How much storage a claim asks for."""

    requests: dict[str, Quantity] | None = None


class PersistentVolumeClaimSpec(Struct, frozen=True):
    """What a claim asks of a volume; `volume_name` once it has one."""

    access_modes: list[str] | None = None
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Struct, frozen=True):
    """Where a claim is in its life; Lost when its volume is gone."""

    phase: str = ""


class PersistentVolumeClaim(Struct, frozen=True):
    """A v1 PersistentVolumeClaim."""

    metadata: StorageMeta = StorageMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologySelectorLabelRequirement(Struct, frozen=True):
    """A label and the values of which a node must have one."""

    key: str = ""
    values: list[str] | None = None


class TopologySelectorTerm(Struct, frozen=True):
    """Requirements that must all hold; an empty term matches nothing."""

    match_label_expressions: list[TopologySelectorLabelRequirement] | None = None


class StorageClass(Described, frozen=True):
    """A storage.k8s.io/v1 StorageClass."""

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None


class VolumeNodeResources(Struct, frozen=True):
    """How many volumes of a driver a node can have."""

    count: int | None = None


class CSINodeDriver(Struct, frozen=True):
    """A driver installed on a node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Struct, frozen=True):
    """The drivers installed on a node."""

    drivers: list[CSINodeDriver] | None = None


class CSINode(Struct, frozen=True):
    """A storage.k8s.io/v1 CSINode, named like its node."""

    metadata: StorageMeta = StorageMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Struct, frozen=True):
    """Whether a driver publishes capacities, and whether its volumes keep pods from nodes where it is missing."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Described, frozen=True):
    """A storage.k8s.io/v1 CSIDriver."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Described, frozen=True):
    """A storage.k8s.io/v1 CSIStorageCapacity: what is free for a class in a part of the cluster."""

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity = None
    maximum_volume_size: Quantity = None


class VolumeAttachmentSource(Struct, frozen=True):
    """The volume that is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Struct, frozen=True):
    """Which volume a driver attaches to which node."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(Described, frozen=True):
    """A storage.k8s.io/v1 VolumeAttachment."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
