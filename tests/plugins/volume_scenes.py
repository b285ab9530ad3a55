"""A small cluster with volumes, and short ways to make claims, volumes and classes."""

from typing import Any

from tests.builders import make_node, make_pod, make_term
from tests.plugins.scenes import Scene

from bayplan.api.meta_objects import OwnerReference
from bayplan.api.objects import LabelSelector, Node, NodeSelector, ObjectMeta, Pod, Volume
from bayplan.api.objects import PersistentVolumeClaimSource as ClaimSource
from bayplan.api.storage_objects import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    CSIVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageAnnotations,
    StorageClass,
    StorageMeta,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeNodeResources,
    VolumeResources,
)
from bayplan.cache.listers import Listers
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import VolumeBindingArgs
from bayplan.framework.status import Code
from bayplan.plugins.node_volume_limits.node_volume_limits import NodeVolumeLimits
from bayplan.plugins.volume_binding.volume_binding import VolumeBinding
from bayplan.plugins.volume_restrictions import VolumeRestrictions
from bayplan.plugins.volume_zone import VolumeZone

HOSTNAME = "kubernetes.io/hostname"
LOCAL = "local"


class VolumeScene(Scene):
    """Nodes, pods and storage objects, and the four volume plugins over them."""

    def __init__(self, *objects: Any) -> None:
        self.listers = Listers()
        super().__init__()
        nodes, index, listers = self.cache.nodes, self.index, self.listers
        self.binding = VolumeBinding(VolumeBindingArgs(), nodes, index, listers)
        self.zone = VolumeZone(index, listers)
        self.limits = NodeVolumeLimits(nodes, listers)
        self.restrictions = VolumeRestrictions(nodes, listers)
        self.add(*objects)

    def add(self, *objects: Any) -> None:
        for each in objects:
            if isinstance(each, Node | Pod):
                super().add(each)
            else:
                self.listers.of(type(each)).set(each)

    def refusal(self, plugin: Any, pod: Pod) -> tuple[Code, str]:
        """What PreFilter says of the pod."""
        status = plugin.pre_filter({}, PodInfo(pod), self.cache.nodes).status
        return status.code, status.message

    def texts(self, plugin: Any, pod: Pod) -> dict[str, list[str]]:
        """The reasons of the nodes that the plugin rejects."""
        return {name: texts for name, (_, texts) in self.rejections(plugin, pod).items()}


def host(name: str, **labels: str) -> Node:
    return make_node(name, uid=name, labels={HOSTNAME: name, **labels})


def pod_with(*claims: str, name: str = "p", ephemeral: tuple[str, ...] = (), **rest: Any) -> Pod:
    """A pod with claims, in the namespace default; ephemeral volumes by their names."""
    volumes = [Volume(name=f"v{i}", persistent_volume_claim=ClaimSource(claim)) for i, claim in enumerate(claims)]
    volumes += [Volume(name=each, ephemeral={}) for each in ephemeral]
    return make_pod(name, uid=name, volumes=[*volumes, *rest.pop("volumes", ())], **rest)


def claim(
    name: str = "c",
    *,
    storage_class: str | None = LOCAL,
    volume: str = "",
    bound: bool = False,
    size: Any = "1Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    phase: str = "Pending",
    selected: str | None = None,
    version: str = "1",
    owner: str | None = None,
    selector: LabelSelector | None = None,
    volume_mode: str | None = None,
    deleting: bool = False,
) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=StorageMeta(
            name=name,
            namespace="default",
            uid=f"uid-{name}",
            resource_version=version,
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
            annotations=StorageAnnotations(bind_completed="yes" if bound else None, selected_node=selected),
            owner_references=[OwnerReference(uid=owner, controller=True)] if owner else None,
        ),
        spec=PersistentVolumeClaimSpec(
            access_modes=list(modes),
            resources=VolumeResources(None if size is None else {"storage": size}),
            volume_name=volume,
            storage_class_name=storage_class,
            selector=selector,
            volume_mode=volume_mode,
        ),
        status=PersistentVolumeClaimStatus("Bound" if bound and phase == "Pending" else phase),
    )


def volume(
    name: str,
    *,
    on: str | None = None,
    terms: tuple[Any, ...] = (),
    storage_class: str = LOCAL,
    size: Any = "10Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    claim_ref: ObjectReference | None = None,
    phase: str = "Available",
    version: str = "1",
    labels: dict[str, str] | None = None,
    csi: tuple[str, str] | None = None,
    **source: Any,
) -> PersistentVolume:
    """A volume; `on` pins it to a node by hostname, `terms` to whatever they select."""
    required = [*terms, *([make_term(f"{HOSTNAME} In {on}")] if on else [])]
    return PersistentVolume(
        metadata=StorageMeta(name=name, uid=f"uid-{name}", resource_version=version, labels=labels),
        spec=PersistentVolumeSpec(
            capacity={"storage": size},
            access_modes=list(modes),
            claim_ref=claim_ref,
            storage_class_name=storage_class,
            node_affinity=VolumeNodeAffinity(NodeSelector(required)) if required else None,
            csi=CSIVolumeSource(*csi) if csi else None,
            **source,
        ),
        status=PersistentVolumeStatus(phase),
    )


def ref(name: str = "c", uid: str | None = None) -> ObjectReference:
    """A reference to a claim of the namespace default."""
    return ObjectReference("PersistentVolumeClaim", "default", name, f"uid-{name}" if uid is None else uid)


def delayed_class(
    name: str = LOCAL, provisioner: str = "kubernetes.io/no-provisioner", *, mode: str | None = "WaitForFirstConsumer"
) -> StorageClass:
    return StorageClass(metadata=ObjectMeta(name=name), provisioner=provisioner, volume_binding_mode=mode)


def topology(key: str, *values: str) -> TopologySelectorTerm:
    return TopologySelectorTerm([TopologySelectorLabelRequirement(key, list(values))])


def csi_node(name: str, migrated: str | None = None, **limits: int | None) -> CSINode:
    """A CSINode; drivers by name with `_` for dots, and how many volumes each can attach."""
    drivers = [CSINodeDriver(each.replace("_", "."), VolumeNodeResources(count)) for each, count in limits.items()]
    annotations = StorageAnnotations(migrated_plugins=migrated)
    return CSINode(StorageMeta(name=name, annotations=annotations), CSINodeSpec(drivers))


def csi_driver(name: str, *, storage_capacity: bool | None = True) -> CSIDriver:
    return CSIDriver(ObjectMeta(name=name), CSIDriverSpec(storage_capacity))


def capacity(
    name: str, storage_class: str, amount: Any, selector: LabelSelector | None, largest: Any = None
) -> CSIStorageCapacity:
    meta = ObjectMeta(name=name, namespace="kube-system")
    return CSIStorageCapacity(meta, selector, storage_class, amount, largest)


def attachment(name: str, node: str, volume_name: str, attacher: str = "csi.example") -> VolumeAttachment:
    source = VolumeAttachmentSource(volume_name)
    return VolumeAttachment(ObjectMeta(name=name), VolumeAttachmentSpec(attacher, node, source))
