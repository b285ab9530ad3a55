"""The claims of a pod, and the rules and messages about claims and volumes that the volume plugins share."""

from collections.abc import Iterator
from typing import NamedTuple

from bayplan.api.meta_objects import controller_of
from bayplan.api.objects import Pod, Volume
from bayplan.api.storage_objects import NO_ANNOTATIONS, PersistentVolume, PersistentVolumeClaim, StorageAnnotations
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import QueueingHintFn, hint

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class VolumeError(Exception):
    """A state of volumes that ends the scheduling attempt as an error; the text is shown to the user."""


class ClaimReference(NamedTuple):
    """The name of a pod's claim; `ephemeral` if the ephemeral volume controller makes it for the pod."""

    name: str
    ephemeral: bool


def claim_references(pod: Pod) -> Iterator[ClaimReference]:
    """Yield the claims of the pod's volumes in order (upstream: component-helpers storage/ephemeral)."""
    for volume in pod.spec.volumes or ():
        if (reference := claim_reference(pod, volume)) is not None:
            yield reference


def claim_reference(pod: Pod, volume: Volume) -> ClaimReference | None:
    """Return the claim that a volume of the pod stands for, if it is one of a claim."""
    if volume.persistent_volume_claim is not None:
        return ClaimReference(volume.persistent_volume_claim.claim_name, ephemeral=False)
    if volume.ephemeral is not None:
        return ClaimReference(f"{pod.metadata.name}-{volume.name}", ephemeral=True)
    return None


def named_claims(pod: Pod) -> list[str]:
    """Return the claims that persistentVolumeClaim volumes name; those of ephemeral volumes are not among them."""
    return [reference.name for reference in claim_references(pod) if not reference.ephemeral]


def has_claims(pod: PodInfo) -> bool:
    """Tell whether the pod has any claim; pods with and without claims never share an evaluation."""
    return pod.pod.spec.volumes is not None and next(claim_references(pod.pod), None) is not None


def claim_hint(*, ephemeral_too: bool) -> QueueingHintFn:
    """Make the hint for new or changed claims: a pod is queued again if the claim is one of its own.

    Upstream: isSchedulableAfterPersistentVolumeClaimChange of each volume plugin.
    """

    def is_own_claim(pod: PodInfo, old: object, new: PersistentVolumeClaim) -> bool:
        return new.metadata.namespace == pod.namespace and any(
            reference.name == new.metadata.name and (ephemeral_too or not reference.ephemeral)
            for reference in claim_references(pod.pod)
        )

    return hint(is_own_claim, new=PersistentVolumeClaim)


def ownership_problem(pod: PodInfo, claim: PersistentVolumeClaim) -> str:
    """Say why the claim of an ephemeral volume is not the pod's, or return "" (upstream: VolumeIsForPod)."""
    meta = claim.metadata
    owner = controller_of(meta)
    if meta.namespace == pod.namespace and owner is not None and owner.uid == pod.uid:
        return ""
    return f"PVC {meta.namespace}/{meta.name} was not created for pod {pod.key} (pod is not owner)"


def annotations(obj: PersistentVolume | PersistentVolumeClaim) -> StorageAnnotations:
    """Return the storage annotations of a claim or a volume."""
    return obj.metadata.annotations or NO_ANNOTATIONS


def claim_class(claim: PersistentVolumeClaim) -> str:
    """Return the claim's storage class, "" for none (upstream: GetPersistentVolumeClaimClass)."""
    class_name = annotations(claim).storage_class
    return (claim.spec.storage_class_name or "") if class_name is None else class_name


def volume_class(volume: PersistentVolume) -> str:
    """Return the volume's storage class, "" for none (upstream: GetPersistentVolumeClass)."""
    class_name = annotations(volume).storage_class
    return volume.spec.storage_class_name if class_name is None else class_name


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Tell whether the volume controller has finished binding the claim."""
    return bool(claim.spec.volume_name) and annotations(claim).bind_completed is not None


def is_volume_bound_to_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Tell whether the volume is bound to the claim or was prebound to it by name (upstream: IsVolumeBoundToClaim)."""
    reference, meta = volume.spec.claim_ref, claim.metadata
    if reference is None or reference.name != meta.name or reference.namespace != meta.namespace:
        return False
    return not reference.uid or reference.uid == meta.uid


def claim_not_found(name: str) -> str:
    """Say that a claim is missing in the words of the API server."""
    return f'persistentvolumeclaim "{name}" not found'
