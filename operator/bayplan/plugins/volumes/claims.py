"""The claims a pod names, and what of claims and volumes the volume plugins agree about."""

from collections.abc import Iterator
from dataclasses import dataclass

from bayplan.api.objects import Pod
from bayplan.api.storage_objects import NO_ANNOTATIONS, PersistentVolume, PersistentVolumeClaim, StorageAnnotations
from bayplan.cache.pod_info import PodInfo

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class VolumeError(Exception):
    """A state of volumes that ends the scheduling attempt as an error; the text is the user's."""


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """A claim a pod names: its own choice, or what the ephemeral volume controller makes for it."""

    name: str
    ephemeral: bool


def claim_references(pod: Pod) -> Iterator[ClaimReference]:
    """The claims of the pod's volumes in their order (upstream: component-helpers storage/ephemeral)."""
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            yield ClaimReference(volume.persistent_volume_claim.claim_name, ephemeral=False)
        elif volume.ephemeral is not None:
            yield ClaimReference(f"{pod.metadata.name}-{volume.name}", ephemeral=True)


def named_claims(pod: Pod) -> list[str]:
    """The claims that persistentVolumeClaim volumes name; those of ephemeral volumes are not among them."""
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes or ()
        if volume.persistent_volume_claim is not None
    ]


def has_claims(pod: PodInfo) -> bool:
    """Whether the pod has any claim; such pods share no evaluation, as claims are rarely shared and often change."""
    return pod.pod.spec.volumes is not None and next(claim_references(pod.pod), None) is not None


def names_claim(pod: PodInfo, claim: PersistentVolumeClaim, *, ephemeral_too: bool) -> bool:
    """Whether the claim is one of the pod's."""
    meta = claim.metadata
    return meta.namespace == pod.namespace and any(
        reference.name == meta.name and (ephemeral_too or not reference.ephemeral)
        for reference in claim_references(pod.pod)
    )


def ownership_problem(pod: PodInfo, claim: PersistentVolumeClaim) -> str:
    """Why the claim of an ephemeral volume is not the pod's, or ""."""
    meta = claim.metadata
    owner = next((each for each in meta.owner_references or () if each.controller), None)
    if meta.namespace == pod.namespace and owner is not None and owner.uid == pod.uid:
        return ""
    return f"PVC {meta.namespace}/{meta.name} was not created for pod {pod.key} (pod is not owner)"


def annotations(obj: PersistentVolume | PersistentVolumeClaim) -> StorageAnnotations:
    """The storage annotations of a claim or a volume."""
    return obj.metadata.annotations or NO_ANNOTATIONS


def claim_class(claim: PersistentVolumeClaim) -> str:
    """The claim's storage class, "" for none (upstream: component-helpers storage/volume)."""
    class_name = annotations(claim).storage_class
    return (claim.spec.storage_class_name or "") if class_name is None else class_name


def volume_class(volume: PersistentVolume) -> str:
    """The volume's storage class, "" for none."""
    class_name = annotations(volume).storage_class
    return volume.spec.storage_class_name if class_name is None else class_name


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether claim and volume are bound to each other for good."""
    return bool(claim.spec.volume_name) and annotations(claim).bind_completed is not None


def claim_not_found(name: str) -> str:
    """What the API server's words for a missing claim are."""
    return f'persistentvolumeclaim "{name}" not found'
