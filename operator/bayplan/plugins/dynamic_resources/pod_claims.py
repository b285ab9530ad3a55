"""Which claims a pod has (upstream: dynamic-resource-allocation/resourceclaim, foreachPodResourceClaim)."""

from collections.abc import Callable, Iterator
from contextlib import suppress

from bayplan.api.claim_objects import ResourceClaim
from bayplan.api.device_objects import DeviceClass
from bayplan.api.meta_objects import controller_of, key_of
from bayplan.cache.pod_info import PodInfo
from bayplan.config.errors import quote


class ClaimError(Exception):
    """A claim of the pod is not there, or not for it; the text is the user's."""


def claims_of(pod: PodInfo, get: Callable[[str], ResourceClaim | None]) -> list[ResourceClaim]:
    """Return the pod's claims in the order of its entries, each once.

    kube-scheduler takes a claim that two entries name for two, and can never reserve it.

    Raises:
        ClaimError: the first that is missing, being deleted, or another pod's.
    """
    found: dict[str, ResourceClaim] = {}
    for name, is_made_for_it in _names(pod):
        key = f"{pod.namespace}/{name}"
        claim = get(key)
        if claim is None:
            raise ClaimError(f"could not find ResourceClaim {quote(key)}")
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f"resourceclaim {quote(name)} is being deleted")
        if is_made_for_it:
            owner = controller_of(claim.metadata)
            if owner is None or owner.uid != pod.uid:
                raise ClaimError(f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)")
        found[claim.metadata.uid] = claim
    return list(found.values())


def claims_that_are_there(pod: PodInfo, get: Callable[[str], ResourceClaim | None]) -> list[ResourceClaim]:
    """Return those of the pod's claims that there are, each once, whoever they are for; Unreserve relies on it."""
    found: dict[str, ResourceClaim] = {}
    with suppress(ClaimError):
        for name, _ in _names(pod):
            if (claim := get(f"{pod.namespace}/{name}")) is not None:
                found[claim.metadata.uid] = claim
    return list(found.values())


def check_classes(claim: ResourceClaim, get: Callable[[str], DeviceClass | None]) -> None:
    """Make sure that all classes are there which the claim asks for.

    Raises:
        ClaimError: one is not.
    """
    for request in claim.spec.devices.requests or ():
        if not request.alternatives:
            key = key_of(claim.metadata)
            raise ClaimError(f"resource claim {key}, request {request.name}: unknown request type")
        for name, asked in request.alternatives:
            if get(asked.device_class_name) is None:
                raise ClaimError(f"request {name}: device class {asked.device_class_name} does not exist")


def is_reserved_for(claim: ResourceClaim, pod: PodInfo) -> bool:
    """Return whether the pod may use the claim already."""
    return any(each.uid == pod.uid for each in claim.status.reserved_for or ())


def _names(pod: PodInfo) -> Iterator[tuple[str, bool]]:
    """Yield the name of each claim and whether it was made for the pod; entries for which none is needed are left out.

    Raises:
        ClaimError: a claim is not made yet, or an entry says nothing that is understood.
    """
    made = {each.name: each.resource_claim_name for each in pod.pod.status.resource_claim_statuses or ()}
    for entry in pod.pod.spec.resource_claims or ():
        if entry.resource_claim_name is not None:
            yield entry.resource_claim_name, False
        elif entry.resource_claim_template_name is None:
            raise ClaimError(
                f'pod "{pod.key}", spec.resourceClaim {quote(entry.name)}: none of the supported fields are set'
            )
        elif entry.name not in made:
            raise ClaimError(f'pod "{pod.key}": ResourceClaim not created yet')
        elif (name := made[entry.name]) is not None:
            yield name, True
