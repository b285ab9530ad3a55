"""In-tree volumes in the words of the CSI drivers that succeeded them (upstream: csi-translation-lib translate.go)."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from bayplan.api.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Volume
from bayplan.api.storage_objects import CSINode, PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity

_AWS = "kubernetes.io/aws-ebs"
_GCE = "kubernetes.io/gce-pd"
_AZURE_DISK = "kubernetes.io/azure-disk"
_CINDER = "kubernetes.io/cinder"
_PORTWORX = "kubernetes.io/portworx-volume"
_AZURE_FILE = "kubernetes.io/azure-file"
_VSPHERE = "kubernetes.io/vsphere-volume"

DRIVERS = {
    _AWS: "ebs.csi.aws.com",
    _GCE: "pd.csi.storage.gke.io",
    _AZURE_DISK: "disk.csi.azure.com",
    _CINDER: "cinder.csi.openstack.org",
    _PORTWORX: "pxd.portworx.com",
}
"""The drivers that volumes of in-tree plugins count against."""
UNCOUNTED_DRIVERS = {_AZURE_FILE: "file.csi.azure.com", _VSPHERE: "csi.vsphere.vmware.com"}
"""Successors of plugins that kube-scheduler does not take as migrated."""

ZONE_LABELS = {
    _AWS: "topology.ebs.csi.aws.com/zone",
    _GCE: "topology.gke.io/zone",
    _CINDER: "topology.cinder.csi.openstack.org/zone",
}
"""The labels by which drivers say in which zone a node is."""

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
ZONE_SEPARATOR = "__"
"""Joins the zones of a regional volume in one label (upstream: volume helpers LabelZonesToSet)."""

_UNSPECIFIED = "UNSPECIFIED"
_AWS_VOLUME = re.compile(r"vol-[^/]*")


class CSIVolume(NamedTuple):
    """A volume as a CSI driver counts it; a tuple, because sets of many are made and compared."""

    driver: str
    handle: str


class Translation(NamedTuple):
    """An in-tree volume in the words of its CSI driver; `csi` is None if nobody counts it or `problem` forbids it."""

    plugin: str
    driver: str
    csi: CSIVolume | None
    problem: str = ""


def driver_of(provisioner: str) -> str | None:
    """Return the CSI driver that volumes count against: a provisioner itself, or what succeeded an in-tree plugin.

    Return None for in-tree plugins that kube-scheduler does not take as migrated.
    """
    return None if provisioner in UNCOUNTED_DRIVERS else DRIVERS.get(provisioner, provisioner)


def translate_volume(volume: PersistentVolume) -> Translation | None:
    """Translate an in-tree volume for its CSI driver (upstream: TranslateInTreePVToCSI).

    Return None for volumes of other kinds, and of plugins that kube-scheduler does not take as migrated.
    """
    return _translate_disk(volume.spec, volume.metadata.labels or {})


def translate_inline_volume(volume: Volume) -> Translation | None:
    """Translate a pod's own in-tree volume for its CSI driver (upstream: TranslateInTreeInlineVolumeToCSI).

    Return None for volumes of other kinds. Volumes of Azure files and of vSphere have a driver that counts nothing.
    """
    if volume.azure_file is not None:
        return Translation(_AZURE_FILE, UNCOUNTED_DRIVERS[_AZURE_FILE], None)
    if volume.vsphere_volume is not None:
        return Translation(_VSPHERE, UNCOUNTED_DRIVERS[_VSPHERE], None)
    return _translate_disk(volume, {})


def text_of(source: Mapping[str, object], key: str) -> str:
    """Return a field of a volume's source as text, "" if it is missing."""
    return str(source.get(key) or "")


def is_migrated_on(plugin: str, csi_node: CSINode | None) -> bool:
    """Tell whether the kubelet of the node leaves an in-tree plugin's volumes to the CSI driver."""
    annotations = None if csi_node is None else csi_node.metadata.annotations
    migrated = None if annotations is None else annotations.migrated_plugins
    return migrated is not None and plugin in migrated.split(",")


def migrated_node_affinity(volume: PersistentVolume, plugin: str) -> VolumeNodeAffinity | None:
    """Return the node affinity of an in-tree volume in the topology labels of its CSI driver.

    Upstream: translateTopologyFromInTreeToCSI.
    """
    affinity, key = volume.spec.node_affinity, ZONE_LABELS.get(plugin)
    if key is None:
        return affinity
    labels = volume.metadata.labels or {}
    is_beta = not _values_of(affinity, ZONE) and (
        bool(_values_of(affinity, BETA_ZONE)) or (ZONE not in labels and BETA_ZONE in labels)
    )
    zone = BETA_ZONE if is_beta else ZONE
    if any(_values_of(affinity, zone)):
        affinity = _renamed(affinity, zone, key)
    elif zone in labels:
        affinity = _with_zones(affinity, key, labels[zone].split(ZONE_SEPARATOR))
    has_beta_region = is_beta and any(_values_of(affinity, BETA_REGION))
    return _renamed(affinity, BETA_REGION, REGION) if has_beta_region else affinity


def _terms(affinity: VolumeNodeAffinity | None) -> list[NodeSelectorTerm]:
    return [] if affinity is None or affinity.required is None else affinity.required.node_selector_terms or []


def _values_of(affinity: VolumeNodeAffinity | None, key: str) -> list[list[str]]:
    """Return the values of each requirement about a label."""
    return [each.values or [] for term in _terms(affinity) for each in term.match_expressions or () if each.key == key]


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


def _translate_disk(source: Volume | PersistentVolumeSpec, labels: Mapping[str, str]) -> Translation | None:
    if source.aws_elastic_block_store is not None:
        return _translate_aws(text_of(source.aws_elastic_block_store, "volumeID"))
    if source.gce_persistent_disk is not None:
        return _translate_gce(text_of(source.gce_persistent_disk, "pdName"), labels)
    if source.cinder is not None:
        return _translate(_CINDER, text_of(source.cinder, "volumeID"))
    if source.azure_disk is not None:
        return _translate_azure(text_of(source.azure_disk, "diskURI"), source.azure_disk.get("kind"))
    if source.portworx_volume is not None:
        return _translate(_PORTWORX, text_of(source.portworx_volume, "volumeID"))
    return None


def _translate(plugin: str, handle: str, problem: str = "") -> Translation:
    driver = DRIVERS[plugin]
    return Translation(plugin, driver, None if problem else CSIVolume(driver, handle), problem)


def _translate_aws(volume_id: str) -> Translation:
    """Take the disk's id, which may be given as aws://zone/vol-1 (upstream: KubernetesVolumeIDToEBSVolumeID)."""
    name = volume_id
    if volume_id.startswith("aws://"):
        try:
            name = urlsplit(volume_id).path.strip("/")
        except ValueError:
            name = ""
        if not _AWS_VOLUME.fullmatch(name):
            text = f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
            return _translate(_AWS, name, text)
    return _translate(_AWS, name)


def _translate_azure(uri: str, kind: object) -> Translation:
    """Refuse disks that are not managed; a kind is never missing where the API server filled in its default."""
    is_managed = kind is None or str(kind).lower() == "managed"
    return _translate(_AZURE_DISK, uri, "" if is_managed else f"kind({kind}) is not supported in csi migration")


def _translate_gce(disk: str, labels: Mapping[str, str]) -> Translation:
    """Name the disk within its zone, or within its region if its labels give several zones."""
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or "").split(ZONE_SEPARATOR)
    if len(zones) == 1:
        return _translate(_GCE, f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{disk}")
    if problem := _region_problem(zones):
        return _translate(_GCE, disk, f"failed to get region from zones: {problem}")
    region = "-".join(zones[0].split("-")[:2])
    return _translate(_GCE, f"projects/{_UNSPECIFIED}/regions/{region}/disks/{disk}")


def _region_problem(zones: list[str]) -> str:
    """Say why the zones of a regional disk are in no region, or return "" (upstream: gceGetRegionFromZones)."""
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
