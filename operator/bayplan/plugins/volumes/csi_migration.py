"""In-tree volumes as the CSI volumes that stand for them (upstream: csi-translation-lib, `translate.go`)."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from bayplan.api.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Volume
from bayplan.api.storage_objects import CSINode, PersistentVolume, VolumeNodeAffinity

_AWS = "kubernetes.io/aws-ebs"
_GCE = "kubernetes.io/gce-pd"
_AZURE_DISK = "kubernetes.io/azure-disk"
_CINDER = "kubernetes.io/cinder"
_PORTWORX = "kubernetes.io/portworx-volume"

_DRIVERS = {
    _AWS: "ebs.csi.aws.com",
    _GCE: "pd.csi.storage.gke.io",
    _AZURE_DISK: "disk.csi.azure.com",
    _CINDER: "cinder.csi.openstack.org",
    _PORTWORX: "pxd.portworx.com",
}
_UNCOUNTED = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})
"""Plugins that have a CSI successor too, but that kube-scheduler does not take as migrated."""

_TOPOLOGY_KEYS = {
    _AWS: "topology.ebs.csi.aws.com/zone",
    _GCE: "topology.gke.io/zone",
    _CINDER: "topology.cinder.csi.openstack.org/zone",
}

_ZONE = "topology.kubernetes.io/zone"
_BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
_REGION = "topology.kubernetes.io/region"
_BETA_REGION = "failure-domain.beta.kubernetes.io/region"
_ZONE_SEPARATOR = "__"

_UNSPECIFIED = "UNSPECIFIED"
_AWS_VOLUME = re.compile(r"vol-[^/]*")


class CSIVolume(NamedTuple):
    """A volume as a CSI driver counts it; a tuple, as sets of many are made and compared."""

    driver: str
    handle: str


def is_in_tree_provisioner(name: str) -> bool:
    """Whether a provisioner is an in-tree plugin that has a CSI successor."""
    return name in _DRIVERS or name in _UNCOUNTED


def driver_of(plugin: str) -> str | None:
    """The CSI driver that an in-tree plugin's volumes count against; None for plugins that are not migrated."""
    return _DRIVERS.get(plugin)


def in_tree_plugin(volume: PersistentVolume) -> str | None:
    """The in-tree plugin that the scheduler takes as migrated and that the volume belongs to."""
    spec = volume.spec
    if spec.aws_elastic_block_store is not None:
        return _AWS
    if spec.gce_persistent_disk is not None:
        return _GCE
    if spec.cinder is not None:
        return _CINDER
    if spec.azure_disk is not None:
        return _AZURE_DISK
    return _PORTWORX if spec.portworx_volume is not None else None


def is_migratable_inline(volume: Volume) -> bool:
    """Whether a volume written into a pod is of an in-tree plugin that has a CSI successor (upstream: CanSupport)."""
    return inline_driver(volume) is not None


def inline_driver(volume: Volume) -> str | None:
    """The CSI driver that succeeded the in-tree plugin of a volume written into a pod; None if there is none."""
    sources = (
        (volume.aws_elastic_block_store, _DRIVERS[_AWS]),
        (volume.gce_persistent_disk, _DRIVERS[_GCE]),
        (volume.cinder, _DRIVERS[_CINDER]),
        (volume.azure_disk, _DRIVERS[_AZURE_DISK]),
        (volume.azure_file, "file.csi.azure.com"),
        (volume.vsphere_volume, "csi.vsphere.vmware.com"),
        (volume.portworx_volume, _DRIVERS[_PORTWORX]),
    )
    return next((driver for source, driver in sources if source is not None), None)


def inline_problem(volume: Volume) -> str:
    """Why a volume written into a pod cannot be translated for its CSI driver, or ""."""
    if volume.aws_elastic_block_store is not None:
        return _aws_problem(_text(volume.aws_elastic_block_store, "volumeID"))
    if volume.azure_disk is not None:
        return _azure_problem(volume.azure_disk.get("kind"))
    return ""


def csi_volume(volume: PersistentVolume) -> CSIVolume | None:
    """An in-tree volume as its driver counts it; None if it has no successor or cannot be translated."""
    spec = volume.spec
    handle: str | None = None
    if spec.aws_elastic_block_store is not None:
        handle = _aws_handle(spec.aws_elastic_block_store.volume_id)
    elif spec.gce_persistent_disk is not None:
        handle = _gce_handle(volume, spec.gce_persistent_disk.pd_name)
    elif spec.cinder is not None:
        handle = spec.cinder.volume_id
    elif spec.azure_disk is not None:
        handle = None if _azure_problem(spec.azure_disk.kind) else spec.azure_disk.disk_uri
    elif spec.portworx_volume is not None:
        handle = spec.portworx_volume.volume_id
    plugin = in_tree_plugin(volume)
    return None if plugin is None or handle is None else CSIVolume(_DRIVERS[plugin], handle)


def csi_volume_of_inline(volume: Volume) -> CSIVolume | None:
    """A volume written into a pod as its driver counts it; None if no driver does or it cannot be translated."""
    if volume.aws_elastic_block_store is not None:
        handle = _aws_handle(_text(volume.aws_elastic_block_store, "volumeID"))
        return None if handle is None else CSIVolume(_DRIVERS[_AWS], handle)
    if volume.gce_persistent_disk is not None:
        disk = _text(volume.gce_persistent_disk, "pdName")
        return CSIVolume(_DRIVERS[_GCE], f"projects/{_UNSPECIFIED}/zones/{_UNSPECIFIED}/disks/{disk}")
    if volume.cinder is not None:
        return CSIVolume(_DRIVERS[_CINDER], _text(volume.cinder, "volumeID"))
    if volume.azure_disk is not None:
        is_managed = not _azure_problem(volume.azure_disk.get("kind"))
        return CSIVolume(_DRIVERS[_AZURE_DISK], _text(volume.azure_disk, "diskURI")) if is_managed else None
    if volume.portworx_volume is not None:
        return CSIVolume(_DRIVERS[_PORTWORX], _text(volume.portworx_volume, "volumeID"))
    return None


def translation_problem(volume: PersistentVolume) -> str:
    """Why the volume cannot be translated for its CSI driver, or ""; nodes that leave it to the driver need that."""
    spec = volume.spec
    if spec.aws_elastic_block_store is not None:
        return _aws_problem(spec.aws_elastic_block_store.volume_id)
    if spec.gce_persistent_disk is not None:
        zones = _gce_zones(volume)
        if len(zones) > 1 and (problem := _gce_problem(zones)):
            return f"failed to get region from zones: {problem}"
    elif spec.cinder is None and spec.azure_disk is not None:
        return _azure_problem(spec.azure_disk.kind)
    return ""


def is_migrated_on(plugin: str, csi_node: CSINode | None) -> bool:
    """Whether the kubelet of the node leaves an in-tree plugin's volumes to the CSI driver."""
    annotations = None if csi_node is None else csi_node.metadata.annotations
    migrated = None if annotations is None else annotations.migrated_plugins
    return migrated is not None and plugin in migrated.split(",")


def migrated_node_affinity(volume: PersistentVolume, plugin: str) -> VolumeNodeAffinity | None:
    """The node affinity of an in-tree volume in the words of its CSI driver's topology."""
    affinity, key = volume.spec.node_affinity, _TOPOLOGY_KEYS.get(plugin)
    if key is None:
        return affinity
    labels = volume.metadata.labels or {}
    is_beta = not _names_key(affinity, _ZONE) and (
        _names_key(affinity, _BETA_ZONE) or (_ZONE not in labels and _BETA_ZONE in labels)
    )
    zone = _BETA_ZONE if is_beta else _ZONE
    if _has_values(affinity, zone):
        affinity = _renamed(affinity, zone, key)
    elif zone in labels:
        affinity = _with_zones(affinity, key, labels[zone].split(_ZONE_SEPARATOR))
    return _renamed(affinity, _BETA_REGION, _REGION) if is_beta and _has_values(affinity, _BETA_REGION) else affinity


def _terms(affinity: VolumeNodeAffinity | None) -> list[NodeSelectorTerm]:
    return [] if affinity is None or affinity.required is None else affinity.required.node_selector_terms or []


def _names_key(affinity: VolumeNodeAffinity | None, key: str) -> bool:
    return any(each.key == key for term in _terms(affinity) for each in term.match_expressions or ())


def _has_values(affinity: VolumeNodeAffinity | None, key: str) -> bool:
    return any(each.key == key and each.values for term in _terms(affinity) for each in term.match_expressions or ())


def _renamed(affinity: VolumeNodeAffinity | None, old: str, new: str) -> VolumeNodeAffinity:
    return _affinity_of(
        replace(
            term,
            match_expressions=[
                replace(each, key=new) if each.key == old else each for each in term.match_expressions or ()
            ],
        )
        for term in _terms(affinity)
    )


def _with_zones(affinity: VolumeNodeAffinity | None, key: str, zones: list[str]) -> VolumeNodeAffinity | None:
    values = sorted({zone.strip() for zone in zones} - {""})
    if not values:
        return affinity
    topology = NodeSelectorRequirement(key=key, operator="In", values=values)
    return _affinity_of(
        replace(term, match_expressions=[*(term.match_expressions or ()), topology])
        for term in _terms(affinity) or [NodeSelectorTerm()]
    )


def _affinity_of(terms: Iterable[NodeSelectorTerm]) -> VolumeNodeAffinity:
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=list(terms)))


def _aws_handle(volume_id: str) -> str | None:
    """The disk's id, which may be given as aws://zone/vol-1; None if it makes no sense."""
    if not volume_id.startswith("aws://"):
        return volume_id
    try:
        name = urlsplit(volume_id).path.strip("/")
    except ValueError:
        return None
    return name if _AWS_VOLUME.fullmatch(name) else None


def _aws_problem(volume_id: str) -> str:
    if _aws_handle(volume_id) is not None:
        return ""
    return f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"


def _azure_problem(kind: object) -> str:
    """Only managed disks have a CSI driver; a kind is never missing where the API server filled in its default."""
    is_managed = kind is None or str(kind).lower() == "managed"
    return "" if is_managed else f"kind({kind}) is not supported in csi migration"


def _text(source: Mapping[str, object], key: str) -> str:
    return str(source.get(key) or "")


def _gce_handle(volume: PersistentVolume, disk: str) -> str | None:
    zones = _gce_zones(volume)
    if len(zones) == 1:
        return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{disk}"
    if _gce_problem(zones):
        return None
    region = "-".join(zones[0].split("-")[:2])
    return f"projects/{_UNSPECIFIED}/regions/{region}/disks/{disk}"


def _gce_zones(volume: PersistentVolume) -> list[str]:
    labels = volume.metadata.labels or {}
    return (labels.get(_BETA_ZONE) or labels.get(_ZONE) or "").split(_ZONE_SEPARATOR)


def _gce_problem(zones: list[str]) -> str:
    """Why the zones of a regional disk are in no region (upstream: gceGetRegionFromZones)."""
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            return f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
        regions.add("-".join(parts[:2]))
    if len(regions) == 1:
        return ""
    shown = " ".join(f"{region}:{{}}" for region in sorted(regions))
    return f"multiple or no regions gotten from zones, got: map[{shown}]"
