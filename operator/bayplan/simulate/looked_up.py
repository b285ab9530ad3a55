"""What the API server would have made of what plugins look up, and of pod groups, from a file."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar, cast

from msgspec import structs

from bayplan.api.claim_objects import (
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.kinds import CRD_POD_GROUPS, POD_GROUPS, Resource
from bayplan.api.meta_objects import Quantity
from bayplan.api.quantity import QuantityError, milli
from bayplan.api.storage_objects import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.api.workload_objects import Namespace, Service
from bayplan.api.workload_objects import PodGroup as PodGroupObject
from bayplan.cache.group_members import GroupSource
from bayplan.cache.listers import NamedObject
from bayplan.groups.pod_group import PodGroup, read_pod_group
from bayplan.simulate.admission import AZURE_KIND
from bayplan.simulate.documents import ClusterFileError, Decoder, RawObject, field_error, title
from bayplan.simulate.refusals import AdmissionError, stored

Asked = TypeVar("Asked", bound=ExactDeviceRequest)


def looked_up(obj: NamedObject, resource: Resource) -> NamedObject:
    """An object that plugins look up, of the type of `resource`, as a scheduler would see it.

    Raises:
        AdmissionError: no valid name, or an amount of storage that is none.
    """
    is_label = resource.type in (Namespace, Service)
    meta = stored(obj.metadata, f"{resource.plural}/", namespaced=resource.namespaced, is_label=is_label)
    if meta is not obj.metadata:
        obj = structs.replace(cast("Any", obj), metadata=meta)
    fill = _DEFAULTS.get(resource.type)
    return obj if fill is None else fill(obj)


def _namespace(namespace: Namespace) -> Namespace:
    meta = namespace.metadata
    labels = {**(meta.labels or {}), "kubernetes.io/metadata.name": meta.name}
    return structs.replace(namespace, metadata=structs.replace(meta, labels=labels))


def _volume(volume: PersistentVolume) -> PersistentVolume:
    spec = volume.spec
    _check_storage(spec.capacity, "spec.capacity")
    if spec.volume_mode is None:
        volume = structs.replace(volume, spec=structs.replace(spec, volume_mode="Filesystem"))
    if (disk := spec.azure_disk) is not None and disk.kind is None:
        shared = structs.replace(volume.spec, azure_disk=structs.replace(disk, kind=AZURE_KIND))
        volume = structs.replace(volume, spec=shared)
    if not volume.status.phase and spec.claim_ref is None:
        # The API server says Pending, and the volume controller corrects it at once. No scheduler looks at the phase
        # of a volume that is for a claim (upstream: volume/persistentvolume/pv_controller.go syncVolume).
        volume = structs.replace(volume, status=structs.replace(volume.status, phase="Available"))
    return volume


def _claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    spec = claim.spec
    _check_storage(spec.resources.requests, "spec.resources.requests")
    if spec.volume_mode is not None:
        return claim
    return structs.replace(claim, spec=structs.replace(spec, volume_mode="Filesystem"))


def _storage_class(storage_class: StorageClass) -> StorageClass:
    if storage_class.volume_binding_mode is not None:
        return storage_class
    return structs.replace(storage_class, volume_binding_mode="Immediate")


def _capacity(capacity: CSIStorageCapacity) -> CSIStorageCapacity:
    _check_quantity(capacity.capacity, "capacity")
    _check_quantity(capacity.maximum_volume_size, "maximumVolumeSize")
    return capacity


def _device_claim(claim: ResourceClaim) -> ResourceClaim:
    return structs.replace(claim, spec=_completed(claim.spec))


def _claim_template(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    return structs.replace(template, spec=structs.replace(template.spec, spec=_completed(template.spec.spec)))


def _completed(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """What a claim asks for with the API server's defaults (upstream: apis/resource/v1/defaults.go)."""
    asked = [
        structs.replace(
            each,
            exactly=None if each.exactly is None else _counted(each.exactly),
            first_available=each.first_available and [*map(_counted, each.first_available)],
        )
        for each in spec.devices.requests or ()
    ]
    return ResourceClaimSpec(structs.replace(spec.devices, requests=asked))


def _counted(asked: Asked) -> Asked:
    mode = asked.allocation_mode or "ExactCount"
    tolerations = [
        each if each.operator else structs.replace(each, operator="Equal") for each in asked.tolerations or ()
    ]
    count = asked.count or int(mode == "ExactCount")
    return structs.replace(asked, allocation_mode=mode, count=count, tolerations=tolerations or None)


def _check_storage(amounts: Mapping[str, Quantity] | None, path: str) -> None:
    _check_quantity((amounts or {}).get("storage"), f"{path}[storage]")


def _check_quantity(quantity: Quantity, path: str) -> None:
    try:
        milli(quantity)
    except QuantityError as error:
        raise AdmissionError(f"{path}: {error}") from None


_DEFAULTS: Final[Mapping[type, Callable[[Any], Any]]] = {
    Namespace: _namespace,
    PersistentVolume: _volume,
    PersistentVolumeClaim: _claim,
    StorageClass: _storage_class,
    CSIStorageCapacity: _capacity,
    ResourceClaim: _device_claim,
    ResourceClaimTemplate: _claim_template,
}


SOURCES: Final[Mapping[tuple[str, str], GroupSource]] = {
    (each.api_version, each.kind): GroupSource(each.api_version) for each in (POD_GROUPS, CRD_POD_GROUPS)
}
"""Whose kind a group is of, by apiVersion and kind."""

_decode: Final = Decoder(PodGroupObject)


def pod_groups(objects: Iterable[RawObject], priority_of: Callable[[str], int]) -> list[PodGroup]:
    """Return the groups that these objects of `SOURCES` describe; `priority_of` knows the priorities of classes.

    Raises:
        ClusterFileError: one cannot be read, or the API server would refuse it.
    """
    groups = []
    for raw in objects:
        try:
            groups.append(_stored(_decode(raw.value), SOURCES[raw.api_version, raw.kind], priority_of))
        except (*DECODE_ERRORS, AdmissionError) as error:
            text = field_error(error)
            raise ClusterFileError(f"{title(raw, text)}: {text}") from None
    return groups


def _stored(obj: PodGroupObject, source: GroupSource, priority_of: Callable[[str], int]) -> PodGroup:
    """The group; one of Kubernetes' own kind has the priority of its class, a CRD's object is stored as it is.

    Upstream: plugin/pkg/admission/priority admitPodGroup.
    """
    obj = structs.replace(obj, metadata=stored(obj.metadata, "podgroups/"))
    if source is GroupSource.NATIVE:
        spec = obj.spec
        policy = spec.scheduling_policy
        if policy is None or (policy.basic is None) == (policy.gang is None):
            raise AdmissionError("spec.schedulingPolicy: must have exactly one of basic and gang")
        if policy.gang is not None and policy.gang.min_count < 1:
            raise AdmissionError("spec.schedulingPolicy.gang.minCount: must be at least 1")
        priority = priority_of(spec.priority_class_name)
        if spec.priority not in (None, priority) and not obj.metadata.resource_version:
            raise AdmissionError(f"spec.priority: Forbidden: {spec.priority}; the PriorityClass gives {priority}")
        if spec.priority is None:
            obj = structs.replace(obj, spec=structs.replace(spec, priority=priority))
    elif (least := obj.spec.min_member) is not None and least < 1 and not obj.metadata.resource_version:
        # The minimum in the published CRD; one that was stored may be older than it.
        raise AdmissionError("spec.minMember: must be at least 1")
    return read_pod_group(obj, source)
