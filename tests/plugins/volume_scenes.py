"""A small cluster with volumes, and short ways to make claims, volumes and classes."""

from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace
from tests.builders import make_node, make_pod, make_term
from tests.plugins.scenes import Scene

from bayplan.api import storage_objects as storage
from bayplan.api.meta_objects import ObjectMeta, OwnerReference
from bayplan.api.objects import LabelSelector, Node, NodeSelector, Pod, Volume
from bayplan.api.objects import PersistentVolumeClaimSource as ClaimSource
from bayplan.api.response import ApiCall, ApiResponse
from bayplan.cache.listers import Listers
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import VolumeBindingArgs
from bayplan.framework.status import Code, EffectError, Exchange
from bayplan.plugins.node_volume_limits.node_volume_limits import NodeVolumeLimits
from bayplan.plugins.volume_binding.volume_binding import VolumeBinding
from bayplan.plugins.volume_restrictions import VolumeRestrictions
from bayplan.plugins.volume_zone import VolumeZone

HOSTNAME = "kubernetes.io/hostname"
LOCAL = "local"
# Node affinities of every kind that volumes are told apart by.
TERMS: list[tuple[Any, ...]] = [
    (),
    (make_term("zone In a"),),
    (make_term("zone In b"),),
    (make_term(f"{HOSTNAME} In n1"),),
    (make_term(f"{HOSTNAME} In n3"),),
    (make_term("zone In a,b", f"{HOSTNAME} NotIn n2"),),
    (make_term("zone In b"), make_term(f"{HOSTNAME} In n1,n4")),
    (make_term("zone DoesNotExist"),),
    (make_term("zone Wrong a"),),
    (make_term(fields=["metadata.name In n1"]),),
    (make_term(fields=["metadata.name NotIn n1"]),),
    (make_term("zone In a", fields=["metadata.name NotIn n1"]),),
]


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

    def delete(self, kind: type, key: str) -> None:
        self.listers.of(kind).delete(key)

    def refusal(self, plugin: Any, pod: Pod) -> tuple[Code, str]:
        """What PreFilter says of the pod."""
        status = plugin.pre_filter({}, PodInfo(pod), self.cache.nodes).status
        return status.code, status.message

    def texts(self, plugin: Any, pod: Pod) -> dict[str, list[str]]:
        """The reasons of the nodes that the plugin rejects."""
        return {name: texts for name, (_, texts) in self.rejections(plugin, pod).items()}

    def writes(self, plugin: VolumeBinding, pod: Pod, node: str) -> list[ApiCall]:
        """The writes that would bind the pod's claims on a node."""
        info = PodInfo(pod)
        assert plugin.reserve({}, info, node).ok
        exchange = plugin.pre_bind({}, info, node)
        written, _ = ([], "") if exchange is None else writes_and_end(exchange)
        plugin.unreserve({}, info, node)
        return written

    def bound(self, pod: Pod, node: str = "n1") -> list[str]:
        """The volumes that the pod's claims would be bound to on a node, or the claims that would get new ones."""
        return [each.path.rsplit("/", 1)[-1] for each in self.writes(self.binding, pod, node)]


def writes_and_end(exchange: Exchange) -> tuple[list[ApiCall], str]:
    """What an exchange writes if all is taken, and what it comes to then: "waits", "done", or why it failed."""
    conversation, written = exchange.begin(), []
    try:
        step = next(conversation)
        while isinstance(step, ApiCall):
            written.append(step)
            step = conversation.send(ApiResponse(200, b"{}"))
    except StopIteration:
        return written, "done"
    except EffectError as error:
        return written, str(error)
    return written, "waits"


class ChangingScene(VolumeScene):
    """A scene whose objects come, change and go; each that is added has a version, and each pod a UID, of its own."""

    def __init__(self, *objects: Any) -> None:
        self.added = 0
        self.uids: dict[str, str] = {}
        super().__init__(*objects)

    def apply(self, changes: list[tuple[Any, ...]]) -> None:
        """Make changes that are given as the name of a method and its arguments."""
        for name, *arguments in changes:
            getattr(self, name)(*arguments)

    def add(self, *objects: Any) -> None:
        for each in objects:
            self.added += 1
            marks = {"resource_version": str(self.added)}
            if isinstance(each, Pod):
                self.remove_pod(each.metadata.name)
                marks["uid"] = self.uids[each.metadata.name] = f"{each.metadata.name}-{self.added}"
            super().add(replace(each, metadata=replace(each.metadata, **marks)))

    def remove_node(self, name: str) -> None:
        if self.cache.has_node(name):
            self.cache.remove_node(name)

    def remove_pod(self, name: str) -> None:
        if name in self.uids:
            self.cache.remove_pod(self.uids.pop(name))


def change(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """A change for `ChangingScene.apply`."""
    return st.tuples(st.just(name), *arguments)


def rounds(changes: st.SearchStrategy[tuple[Any, ...]], least: int = 1, most: int = 6) -> st.SearchStrategy[Any]:
    """Changes in rounds, after each of which the plugins are asked."""
    return st.lists(st.lists(changes, min_size=1, max_size=4), min_size=least, max_size=most)


def host(name: str = "n1", **labels: str) -> Node:
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
) -> storage.PersistentVolumeClaim:
    return storage.PersistentVolumeClaim(
        metadata=storage.StorageMeta(
            name=name,
            namespace="default",
            uid=f"uid-{name}",
            resource_version=version,
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
            annotations=storage.StorageAnnotations(bind_completed="yes" if bound else None, selected_node=selected),
            owner_references=[OwnerReference(uid=owner, controller=True)] if owner else None,
        ),
        spec=storage.PersistentVolumeClaimSpec(
            access_modes=list(modes),
            resources=storage.VolumeResources(None if size is None else {"storage": size}),
            volume_name=volume,
            storage_class_name=storage_class,
            selector=selector,
            volume_mode=volume_mode,
        ),
        status=storage.PersistentVolumeClaimStatus("Bound" if bound and phase == "Pending" else phase),
    )


def volume(
    name: str,
    *,
    on: str | None = None,
    terms: tuple[Any, ...] = (),
    storage_class: str = LOCAL,
    size: Any = "10Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    claim_ref: storage.ObjectReference | None = None,
    phase: str = "Available",
    version: str = "1",
    labels: dict[str, str] | None = None,
    csi: tuple[str, str] | None = None,
    **source: Any,
) -> storage.PersistentVolume:
    """A volume; `on` pins it to a node by hostname, `terms` to whatever they select."""
    required = [*terms, *([make_term(f"{HOSTNAME} In {on}")] if on else [])]
    return storage.PersistentVolume(
        metadata=storage.StorageMeta(name=name, uid=f"uid-{name}", resource_version=version, labels=labels),
        spec=storage.PersistentVolumeSpec(
            capacity={"storage": size},
            access_modes=list(modes),
            claim_ref=claim_ref,
            storage_class_name=storage_class,
            node_affinity=storage.VolumeNodeAffinity(NodeSelector(required)) if required else None,
            csi=storage.CSIVolumeSource(*csi) if csi else None,
            **source,
        ),
        status=storage.PersistentVolumeStatus(phase),
    )


def ref(name: str = "c", uid: str | None = None) -> storage.ObjectReference:
    """A reference to a claim of the namespace default."""
    return storage.ObjectReference("PersistentVolumeClaim", "default", name, f"uid-{name}" if uid is None else uid)


def delayed_class(
    name: str = LOCAL,
    provisioner: str = "kubernetes.io/no-provisioner",
    *,
    mode: str | None = "WaitForFirstConsumer",
    zone: str | None = None,
) -> storage.StorageClass:
    """A storage class; `zone` is the only one where it allows volumes to be made."""
    allowed = (
        [storage.TopologySelectorTerm([storage.TopologySelectorLabelRequirement("zone", [zone])])] if zone else None
    )
    return storage.StorageClass(ObjectMeta(name=name), provisioner, mode, allowed)


def csi_node(name: str, migrated: str | None = None, **limits: int | None) -> storage.CSINode:
    """A CSINode; drivers by name with `_` for dots, and how many volumes each can attach."""
    drivers = [
        storage.CSINodeDriver(each.replace("_", "."), storage.VolumeNodeResources(count))
        for each, count in limits.items()
    ]
    annotations = storage.StorageAnnotations(migrated_plugins=migrated)
    return storage.CSINode(storage.StorageMeta(name=name, annotations=annotations), storage.CSINodeSpec(drivers))


def csi_driver(name: str, *, storage_capacity: bool | None = True, prevents: bool | None = None) -> storage.CSIDriver:
    """A driver; `prevents` pods from running where it is missing."""
    return storage.CSIDriver(ObjectMeta(name=name), storage.CSIDriverSpec(storage_capacity, prevents))


def capacity(
    name: str, storage_class: str, amount: Any, selector: LabelSelector | None, largest: Any = None
) -> storage.CSIStorageCapacity:
    meta = ObjectMeta(name=name, namespace="kube-system")
    return storage.CSIStorageCapacity(meta, selector, storage_class, amount, largest)


def attachment(name: str, node: str, volume_name: str, attacher: str = "csi.example") -> storage.VolumeAttachment:
    source = storage.VolumeAttachmentSource(volume_name)
    return storage.VolumeAttachment(ObjectMeta(name=name), storage.VolumeAttachmentSpec(attacher, node, source))
