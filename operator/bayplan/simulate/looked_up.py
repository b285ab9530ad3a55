"""What the API server and controllers make of what plugins look up, of claims and of pod groups, from a file."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

from msgspec import structs

from bayplan.api.claim_objects import (
    ClaimMeta,
    DeviceRequestAllocationResult,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.kinds import CRD_POD_GROUPS, POD_GROUPS, Resource, resource_of
from bayplan.api.meta_objects import OwnerReference, Quantity
from bayplan.api.objects import PodResourceClaimStatus
from bayplan.api.quantity import QuantityError, milli
from bayplan.api.storage_objects import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.api.workload_objects import Namespace, Service
from bayplan.api.workload_objects import PodGroup as PodGroupObject
from bayplan.cache.group_members import GroupSource
from bayplan.cache.listers import Listers, NamedObject
from bayplan.cache.pod_info import PodInfo
from bayplan.groups.pod_groups import PodGroup, read_pod_group
from bayplan.plugins.dynamic_resources.extended_claim import NOT_NAMED_YET, assumed_name
from bayplan.plugins.volumes.claims import claim_reference
from bayplan.simulate.admission import with_azure_kind
from bayplan.simulate.decode_errors import field_error
from bayplan.simulate.documents import ClusterFileError, Decoder, RawObject, title
from bayplan.simulate.refusals import AdmissionError, stored
from bayplan.simulate.report import AllocatedDevice, ClaimReport

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
    volume = structs.replace(volume, spec=with_azure_kind(volume.spec))
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


_CLAIM = Decoder(PersistentVolumeClaim)


def with_claims(listers: Listers, pods: Sequence[PodInfo]) -> list[PodInfo]:
    """Return the pods as they are once controllers have made what they claim; claims that are there stay."""
    _make_volume_claims(listers, pods)
    return [_with_device_claims(listers, info) if info.pod.spec.resource_claims else info for info in pods]


def claim_names(pod: PodInfo) -> Iterable[str]:
    """Return the names of the pod's claims on devices, each once, as far as they are known."""
    entries = (*(pod.pod.spec.resource_claims or ()), *(pod.pod.status.resource_claim_statuses or ()))
    return dict.fromkeys(each.resource_claim_name for each in entries if each.resource_claim_name)


def allocations(listers: Listers, pod: PodInfo) -> dict[str, ClaimReport]:
    """Return what the claims of a pod got, by the names of the claims; those without an allocation are left out.

    The one that stands for extended resources is called `<extended-resources>`.
    """
    claims = listers.of(ResourceClaim)
    found = {name: claims.get(f"{pod.namespace}/{name}") for name in claim_names(pod)}
    found[NOT_NAMED_YET] = claims.get(f"{pod.namespace}/{assumed_name(pod)}")
    return {
        name: ClaimReport(
            [_reported(each) for each in got.devices.results or ()], list(got.devices.config or ()), got.node_selector
        )
        for name, claim in found.items()
        if claim is not None and (got := claim.status.allocation) is not None
    }


def _reported(result: DeviceRequestAllocationResult) -> AllocatedDevice:
    told = AllocatedDevice(**structs.asdict(result))
    return structs.replace(told, share_id=None, shared=result.share_id is not None)


def _make_volume_claims(listers: Listers, pods: Iterable[PodInfo]) -> None:
    """Make the claims of the templates in the volumes of pods, as the API server stores them.

    None is made of a template that the API server would refuse, nor of one that a snapshot left out. Upstream:
    pkg/controller/volume/ephemeral/controller.go handleVolume.
    """
    claims, resource = listers.of(PersistentVolumeClaim), resource_of(PersistentVolumeClaim)
    for info in pods:
        for volume in info.pod.spec.volumes or ():
            reference, template = claim_reference(info.pod, volume), (volume.ephemeral or {}).get("volumeClaimTemplate")
            if reference is None or template is None or claims.get(f"{info.namespace}/{reference.name}") is not None:
                continue
            with suppress(AdmissionError, *DECODE_ERRORS):
                claim = _CLAIM(template)
                owner = OwnerReference("v1", "Pod", info.name, info.uid, controller=True)
                meta = structs.replace(
                    claim.metadata, name=reference.name, namespace=info.namespace, owner_references=[owner]
                )
                claims.set(cast("PersistentVolumeClaim", looked_up(structs.replace(claim, metadata=meta), resource)))


def _with_device_claims(listers: Listers, info: PodInfo) -> PodInfo:
    """Make the claims on devices that have a template, and say their names on the pod.

    A pod whose template is missing waits for it. Upstream: pkg/controller/resourceclaim/controller.go handleClaim.
    """
    claims, templates = listers.of(ResourceClaim), listers.of(ResourceClaimTemplate)
    statuses = list(info.pod.status.resource_claim_statuses or ())
    known = {each.name for each in statuses}
    for entry in info.pod.spec.resource_claims or ():
        template = templates.get(f"{info.namespace}/{entry.resource_claim_template_name}")
        if entry.name in known or template is None:
            continue
        # A cluster's ends in five random letters.
        name = f"{info.name}-{entry.name}"
        owner = OwnerReference("v1", "Pod", info.name, info.uid, controller=True)
        meta = ClaimMeta(
            name=name, namespace=info.namespace, uid=f"file:resourceclaims/{info.uid}/{name}", owner_references=[owner]
        )
        claims.set(ResourceClaim(meta, template.spec.spec))
        statuses.append(PodResourceClaimStatus(entry.name, name))
    if len(statuses) == len(known):
        return info
    status = structs.replace(info.pod.status, resource_claim_statuses=statuses)
    claimed = PodInfo(structs.replace(info.pod, status=status))
    claimed.take_over(info)
    return claimed
