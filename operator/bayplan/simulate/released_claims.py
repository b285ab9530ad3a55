"""What becomes of claims, on devices and on volumes, when their pods leave, and which claims changed."""

from collections.abc import Collection, Iterable

from msgspec import structs

from bayplan.api.claim_objects import ResourceClaim, ResourceClaimStatus
from bayplan.api.meta_objects import controller_of, key_of
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.cache.listers import Lister, Listers, NamedObject
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.dynamic_resources.claim_cache import ClaimCache
from bayplan.plugins.dynamic_resources.extended_claim import pod_of
from bayplan.plugins.volumes.claims import claim_references
from bayplan.simulate.looked_up import claim_names

Claim = ResourceClaim | PersistentVolumeClaim


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
    left = (each for each in objects if not (isinstance(each, Claim) and _is_of(each, gone)))
    return [_released(each, gone) if isinstance(each, ResourceClaim) else each for each in left]


def release(listers: Listers, pod: PodInfo) -> list[Claim]:
    """Have the claims of a pod that is gone be as `released` says, and return them as they were."""
    before = _claims_of(listers, pod)
    for claim in before:
        lister: Lister[Claim] = listers.of(type(claim))
        if _is_of(claim, (pod.uid,)):
            lister.delete(key_of(claim.metadata))
        elif isinstance(claim, ResourceClaim) and (left := _released(claim, (pod.uid,))) is not claim:
            lister.set(left)
    return before


def take_again(listers: Listers, pod: PodInfo, claims: Iterable[Claim], *, waits: bool) -> None:
    """Have the claims that `release` returned be a pod's again, with what they had and beside whoever uses them now.

    Of a pod that `waits` only those are there that it names, without devices; what else it claims is made when it is
    tried.
    """
    for before in claims:
        lister: Lister[Claim] = listers.of(type(before))
        now = lister.get(key_of(before.metadata))
        if waits:
            if now is None and isinstance(before, ResourceClaim) and not pod_of(before):
                lister.set(_released(before, (pod.uid,)))
        else:
            lister.set(_shared(before, now, pod.uid) if isinstance(before, ResourceClaim) else before)


def give_back(listers: Listers, pod: PodInfo) -> None:
    """Have the pod's claims on devices be as if it still waited; who asks where it would go relies on it.

    Devices that nobody else uses are free, and a claim for extended resources is gone.
    """
    claims = listers.of(ResourceClaim)
    for claim in _claims_of(listers, pod):
        if isinstance(claim, ResourceClaim):
            if pod_of(claim):
                claims.delete(key_of(claim.metadata))
            elif (left := _released(claim, (pod.uid,))) is not claim:
                claims.set(left)


class ClaimFollower:
    """Tells which claims on devices changed since the last look, as they were and as they are; `Effects` relies on it.

    A look takes as long as what changed.
    """

    def __init__(self, listers: Listers) -> None:
        self._claims = listers.of(ResourceClaim)
        self._follower = self._claims.follower()
        self._known: dict[str, ResourceClaim] = {}

    def follow(self) -> list[tuple[ResourceClaim | None, ResourceClaim | None]]:
        """Return those that changed since the last call."""
        changed: list[tuple[ResourceClaim | None, ResourceClaim | None]] = []
        for key in self._follower.follow(self._known):
            before, now = self._known.pop(key, None), self._claims.get(key)
            if now is not None:
                self._known[key] = now
            if now is not before:
                changed.append((before, now))
        return changed


def _shared(before: ResourceClaim, now: Claim | None, uid: str) -> ResourceClaim:
    """The claim as it is now, with the pod of this UID among its users, and with its devices if it has none."""
    status = now.status if isinstance(now, ResourceClaim) else ResourceClaimStatus()
    mine = [each for each in before.status.reserved_for or () if each.uid == uid]
    kept = before.status if status.allocation is None else status
    return structs.replace(before, status=structs.replace(kept, reserved_for=[*(status.reserved_for or ()), *mine]))


def _claims_of(listers: Listers, pod: PodInfo) -> list[Claim]:
    """What the pod claims of devices, and of volumes that live as long as it does."""
    claims, volume_claims = listers.of(ResourceClaim), listers.of(PersistentVolumeClaim)
    found: list[Claim | None] = [claims.get(f"{pod.namespace}/{name}") for name in claim_names(pod)]
    found.append(listers.shared(ClaimCache).special_claim(pod.uid))
    volumes = (each.name for each in claim_references(pod.pod) if each.ephemeral)
    found += (volume_claims.get(f"{pod.namespace}/{name}") for name in volumes)
    return [each for each in found if each is not None]


def _is_of(claim: Claim, pods: Collection[str]) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.kind == "Pod" and owner.uid in pods


def _released(claim: ResourceClaim, gone: Collection[str]) -> ResourceClaim:
    users = claim.status.reserved_for or ()
    left = [each for each in users if each.uid not in gone]
    if len(left) == len(users):
        return claim
    status = structs.replace(claim.status, reserved_for=left) if left else ResourceClaimStatus()
    return structs.replace(claim, status=status)
