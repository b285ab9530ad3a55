"""Nodes, pods, and the kinds that plugins look up besides: what files call them, and where the API has objects."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from bayplan.api import device_objects as devices
from bayplan.api import storage_objects as storage
from bayplan.api import workload_objects as workload
from bayplan.api.claim_objects import ResourceClaim, ResourceClaimTemplate
from bayplan.api.objects import Node, Pod
from bayplan.api.workload_objects import PodGroup


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind as the API server and files name it; `group` is empty for the core API.

    `granted_by` names the part of manifests/ whose role allows to list and watch it. Of a `rare` kind few clusters have
    any, and nobody need wait for the right to see it.
    """

    type: type[Any]
    group: str
    plural: str
    namespaced: bool = False
    granted_by: str = "base"
    version: str = "v1"
    rare: bool = False

    @property
    def kind(self) -> str:
        """The kind's name, such as `StorageClass`."""
        return self.type.__name__

    @property
    def api_version(self) -> str:
        """What `apiVersion` says, such as `storage.k8s.io/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """Where all objects of the kind are listed and watched, whatever their namespace."""
        return f"/{'apis' if self.group else 'api'}/{self.api_version}/{self.plural}"


_SPREADING: Final = "components/default-spreading"
NODES: Final = Resource(Node, "", "nodes")
PODS: Final = Resource(Pod, "", "pods", namespaced=True)
POD_GROUPS: Final = Resource(PodGroup, "scheduling.k8s.io", "podgroups", namespaced=True, version="v1beta1", rare=True)
CRD_POD_GROUPS: Final = Resource(
    PodGroup, "scheduling.x-k8s.io", "podgroups", namespaced=True, version="v1alpha1", rare=True
)
"""Kubernetes' own groups of pods, and those of scheduler-plugins; few clusters serve either."""
RESOURCES: Final[tuple[Resource, ...]] = (
    Resource(workload.Namespace, "", "namespaces"),
    Resource(workload.Service, "", "services", namespaced=True, granted_by=_SPREADING),
    Resource(workload.ReplicationController, "", "replicationcontrollers", namespaced=True, granted_by=_SPREADING),
    Resource(workload.ReplicaSet, "apps", "replicasets", namespaced=True, granted_by=_SPREADING),
    Resource(workload.StatefulSet, "apps", "statefulsets", namespaced=True, granted_by=_SPREADING),
    Resource(workload.PodDisruptionBudget, "policy", "poddisruptionbudgets", namespaced=True),
    Resource(storage.PersistentVolume, "", "persistentvolumes"),
    Resource(storage.PersistentVolumeClaim, "", "persistentvolumeclaims", namespaced=True),
    Resource(storage.StorageClass, "storage.k8s.io", "storageclasses"),
    Resource(storage.CSINode, "storage.k8s.io", "csinodes"),
    Resource(storage.CSIDriver, "storage.k8s.io", "csidrivers"),
    Resource(storage.CSIStorageCapacity, "storage.k8s.io", "csistoragecapacities", namespaced=True),
    Resource(storage.VolumeAttachment, "storage.k8s.io", "volumeattachments"),
    Resource(devices.DeviceClass, "resource.k8s.io", "deviceclasses", rare=True),
    Resource(devices.ResourceSlice, "resource.k8s.io", "resourceslices", rare=True),
    Resource(ResourceClaim, "resource.k8s.io", "resourceclaims", namespaced=True, rare=True),
    Resource(devices.DeviceTaintRule, "resource.k8s.io", "devicetaintrules", rare=True),
)
"""Every kind that has a lister for plugins; the controller watches them, simulations read them from files."""

CLAIM_TEMPLATES: Final = Resource(
    ResourceClaimTemplate, "resource.k8s.io", "resourceclaimtemplates", namespaced=True, rare=True
)
"""Simulations alone read these: in a cluster a controller makes claims of them."""

_PLAIN_SEGMENT: Final = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9_.~-]*")
_BY_TYPE: Final[Mapping[type, Resource]] = {resource.type: resource for resource in RESOURCES}


def resource_of(kind: type) -> Resource:
    """Return the resource of a kind that a plugin looks up.

    Raises:
        LookupError: the kind is not in the table, so it can neither be watched nor be read from files.
    """
    try:
        return _BY_TYPE[kind]
    except KeyError:
        raise LookupError(f"kind {kind.__name__} is not known to bayplan.api.kinds") from None


def path_segment(name: str) -> str:
    """Return `name` quoted as exactly one path segment of a URL.

    Names of nodes come from users by way of spec.nodeName and can hold anything.

    Raises:
        ValueError: for "", "." and ".." (which URL normalisation would swallow) and for text that is not
        Unicode.
    """
    if _PLAIN_SEGMENT.fullmatch(name):
        return name
    if name in {"", ".", ".."}:
        raise ValueError(f"{name!r} cannot be the name of an object")
    return quote(name, safe="")
