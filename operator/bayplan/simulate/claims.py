"""The claims that controllers make for pods: on volumes that live as long as they do, and on devices."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import cast

from msgspec import structs

from bayplan.api.claim_objects import (
    ClaimMeta,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.kinds import resource_of
from bayplan.api.meta_objects import OwnerReference, controller_of
from bayplan.api.objects import PodResourceClaimStatus
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.cache.listers import Listers, NamedObject
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.dynamic_resources.extended_claim import NOT_NAMED_YET, assumed_name
from bayplan.plugins.volumes.claims import claim_reference
from bayplan.simulate.documents import Decoder
from bayplan.simulate.looked_up import looked_up
from bayplan.simulate.refusals import AdmissionError
from bayplan.simulate.report import AllocatedDevice, ClaimReport

_CLAIM = Decoder(PersistentVolumeClaim)
_CLAIMS = (ResourceClaim, PersistentVolumeClaim)


def with_claims(listers: Listers, pods: Sequence[PodInfo]) -> list[PodInfo]:
    """Return the pods as they are once controllers have made what they claim; claims that are there stay."""
    _make_volume_claims(listers, pods)
    return [_with_device_claims(listers, info) if info.pod.spec.resource_claims else info for info in pods]


def on_nodes(pods: Iterable[PodInfo]) -> set[str]:
    """Return the UIDs of the pods that are on a node, whether they have ended or not."""
    return {pod.uid for pod in pods if pod.pod.spec.node_name}


def released(objects: Iterable[NamedObject], gone: Collection[str]) -> list[NamedObject]:
    """Return what plugins look up as it is once the pods of these UIDs have left their nodes.

    Claims that were made for them are gone. A claim on devices that nobody uses any more has given them back. Upstream:
    pkg/controller/resourceclaim/controller.go syncClaim, and the garbage collector.
    """
    if not gone:
        return list(objects)
    left = (each for each in objects if not (isinstance(each, _CLAIMS) and _is_of(each, gone)))
    return [_released(each, gone) if isinstance(each, ResourceClaim) else each for each in left]


def _is_of(claim: ResourceClaim | PersistentVolumeClaim, pods: Collection[str]) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.kind == "Pod" and owner.uid in pods


def _released(claim: ResourceClaim, gone: Collection[str]) -> ResourceClaim:
    users = claim.status.reserved_for or ()
    left = [each for each in users if each.uid not in gone]
    if len(left) == len(users):
        return claim
    status = structs.replace(claim.status, reserved_for=left) if left else ResourceClaimStatus()
    return structs.replace(claim, status=status)


def allocations(listers: Listers, pod: PodInfo) -> dict[str, ClaimReport]:
    """Return what the claims of a pod got, by the names of the claims; those without an allocation are left out.

    The one that stands for extended resources is called `<extended-resources>`.
    """
    claims, made = listers.of(ResourceClaim), pod.pod.status.resource_claim_statuses or ()
    named = [each.resource_claim_name for each in (*(pod.pod.spec.resource_claims or ()), *made)]
    found = {name: claims.get(f"{pod.namespace}/{name}") for name in named if name}
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
