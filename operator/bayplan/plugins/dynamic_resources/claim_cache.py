"""Claims, and which devices they have, as decisions under way will leave them (upstream: dra_manager.go)."""

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Final

from bayplan.api.claim_objects import AllocationResult, ResourceClaim
from bayplan.api.device_objects import DeviceClass, DeviceTaintRule, ResourceSlice
from bayplan.api.meta_objects import is_later_version, key_of
from bayplan.cache.group_members import PodGroupKey
from bayplan.cache.inverted_index import InvertedIndex
from bayplan.cache.listers import Listers
from bayplan.devices.allocated_state import AllocatedState, PoolId
from bayplan.devices.allocator import Allocator
from bayplan.devices.packing import WHOLE, left_in_part
from bayplan.devices.pools import Pool
from bayplan.plugins.dynamic_resources.extended_claim import pod_of

_MOST_BINDS: Final = 20_000
"""So many of the last binds are remembered; whether the pod of an older one runs is read from the API server."""
Device = tuple[str, str, str]
"""A device's driver, its pool and its name."""


@dataclass(slots=True)
class Pending:
    """An allocation that was decided and is not seen yet, and who waits for it: pods of one `group`, try by try."""

    allocation: AllocationResult
    group: PodGroupKey | None
    holders: set[object] = field(default_factory=set)


@dataclass(frozen=True, slots=True, eq=False)
class TakingBack:
    """A write under way that takes the devices of a claim as it is, or the right of the pod `pod_uid` to use it."""

    claim: ResourceClaim
    pod_uid: str | None = None

    def concerns(self, claim: ResourceClaim, pod_uid: str) -> bool:
        """Return whether the pod's bind with the claim, as it is known now, has to wait for it.

        Devices are taken of the one version that the write names.
        """
        meta, known = claim.metadata, self.claim.metadata
        if self.pod_uid is not None:
            return (meta.uid, pod_uid) == (known.uid, self.pod_uid)
        return (meta.uid, meta.resource_version) == (known.uid, known.resource_version)


class ClaimCache:
    """Shows each claim as we wrote it until the watch shows that or a later version; all profiles share it.

    The devices of what is written or pending are never seen as free in between. What it keeps besides claims that are
    there is bounded by the writes under way.
    """

    def __init__(self, listers: Listers) -> None:
        self._lister = listers.of(ResourceClaim)
        self._slices = listers.of(ResourceSlice)
        self._rules = listers.of(DeviceTaintRule)
        self.classes = listers.of(DeviceClass)
        self._follower = self._lister.follower()
        self._written: dict[str, ResourceClaim] = {}
        self._uids: dict[str, str] = {}
        """Of the claims that are there, by their keys."""
        self._since: dict[str, str] = {}
        """The version in which a claim with devices was first seen with some, by its UID."""
        self._special: InvertedIndex[str, str] = InvertedIndex()
        """The keys of claims that stand for extended resources, by the UIDs of their pods."""
        self.state = AllocatedState()
        self.pending: dict[str, Pending] = {}
        """What is decided and not written, by the UID of the claim."""
        self.giving_back: list[TakingBack] = []
        """Each write under way that takes something from a claim."""
        self.binding: OrderedDict[str, None] = OrderedDict()
        """The UIDs of pods whose claims are written and whose binds may be under way, the longest ago first."""
        self._allocator: Allocator | None = None
        self._made_of = (-1, -1, -1)

    def get(self, key: str) -> ResourceClaim | None:
        """Return the claim as it was written, or as the API server has it."""
        claim = self._lister.get(key)
        written = self._written.get(key)
        return claim if written is None or _shows(claim, written) else written

    def take_written(self, claim: ResourceClaim) -> None:
        """Let a claim count as the API server answered that it is, unless something later is known of it."""
        key = key_of(claim.metadata)
        known = self.get(key)
        if known is None or not _shows(known, claim):
            self._written[key] = claim
        self._observe(key)

    def assume(self, claim: ResourceClaim) -> None:
        """Let a claim be as it is given, for good, where nothing is written."""
        self._lister.set(claim)
        self.follow()

    def forget(self, claim: ResourceClaim) -> None:
        """Let a claim be gone for good, where nothing is written."""
        self._lister.delete(key_of(claim.metadata))
        self.follow()

    def special_claim(self, pod_uid: str) -> ResourceClaim | None:
        """Return the claim that stands for extended resources of a pod, as the API server has it."""
        self.follow()
        return next(map(self.get, self._special.get(pod_uid)), None)

    def has_shown(self, claim: ResourceClaim) -> bool:
        """Return whether the watch has come to this version of the claim, and so to all that was written before."""
        return _shows(self._lister.get(key_of(claim.metadata)), claim)

    def has(self, claim: ResourceClaim) -> bool:
        """Return whether the watch has shown that the claim is there."""
        known = self._lister.get(key_of(claim.metadata))
        return known is not None and known.metadata.uid == claim.metadata.uid

    def reserve(
        self, claim: ResourceClaim, allocation: AllocationResult, holder: object, group: PodGroupKey | None
    ) -> None:
        """Let the devices count as the claim's until it is seen with some, or no `holder` waits for that any more."""
        uid = claim.metadata.uid
        pending = self.pending.get(uid)
        if pending is None:
            pending = self.pending[uid] = Pending(allocation, group)
            self.state.mark_in_flight(uid, allocation)
        pending.holders.add(holder)

    def release(self, uid: str, holder: object) -> None:
        """End that for one of those who wait for it."""
        pending = self.pending.get(uid)
        if pending is None:
            return
        pending.holders.discard(holder)
        if not pending.holders:
            self._forget_pending(uid)

    def begin_bind(self, pod_uid: str) -> None:
        """Remember that the pod is being bound: whoever shares its claims must leave them."""
        self.binding[pod_uid] = None
        if len(self.binding) > _MOST_BINDS:
            self.binding.popitem(last=False)

    def allocator(self) -> Allocator:
        """Return what finds devices by all that is known at this moment."""
        self.follow()
        made_of = (self._slices.version, self.classes.version, self._rules.version)
        if self._allocator is None or made_of != self._made_of:
            self._made_of = made_of
            self._allocator = Allocator(
                self._slices.objects.values(),
                self.classes.objects,
                self._rules.objects.values(),
                self.state,
                previous=self._allocator,
            )
        return self._allocator

    def follow(self) -> None:
        """Take in what the watch has shown since the last call."""
        for key in self._follower.follow(self._uids):
            self._observe(key)

    def rival(self, claim: ResourceClaim, *, is_ours: bool) -> ResourceClaim | None:
        """Return a claim of another scheduler that took what this one lacks, and may have been first; None if none.

        It is a device, a share of one or of the counters of its pool: too much of it is taken with what was before.

        `claim` is as the watch has shown it. Every scheduler that looks sees at least the claims that were written
        before its own, so of two that look one gives way at least. Ours was first if the other had none before a later
        version, unless that says that it was allocated earlier: it was seen late. Of one that another wrote nobody
        knows.
        """
        mine = devices_of(claim)
        pools = self.allocator().index

        def is_too_much(state: AllocatedState) -> bool:
            return any(pools.is_overdrawn((driver, pool), name, state) for driver, pool, name in mine)

        if not is_too_much(self.state):
            return None
        ours, near = self._since_version(claim), {device[:2] for device in mine}
        state = AllocatedState()
        state.observe(claim.metadata.uid, claim.status.allocation)
        for other in sorted(self._lister.objects.values(), key=_time):
            if other.metadata.uid == claim.metadata.uid or near.isdisjoint(each[:2] for each in devices_of(other)):
                continue
            is_before = not is_ours or is_later_version(ours, self._since_version(other))
            if is_before or _time(other) < _time(claim):
                state.observe(other.metadata.uid, other.status.allocation)
                if is_too_much(state):
                    return other
        return None

    def _since_version(self, claim: ResourceClaim) -> str:
        return self._since.get(claim.metadata.uid, claim.metadata.resource_version)

    def _observe(self, key: str) -> None:
        claim, written = self._lister.get(key), self._written.get(key)
        if written is not None:
            if _shows(claim, written):
                del self._written[key]
            else:
                claim = written
        before = self._uids.pop(key, None)
        pod = "" if claim is None else pod_of(claim)
        self._special.set(key, (pod,) if pod else ())
        if claim is not None:
            self._uids[key] = claim.metadata.uid
            self.state.observe(claim.metadata.uid, claim.status.allocation)
            if claim.status.allocation is None:
                self._since.pop(claim.metadata.uid, None)
            else:
                self._since.setdefault(claim.metadata.uid, claim.metadata.resource_version)
            # These devices are what counts, whoever gave them: of other ones the write will be refused.
            if claim.status.allocation is not None and claim.metadata.uid in self.pending:
                self._forget_pending(claim.metadata.uid)
        if before is not None and before != self._uids.get(key):
            self.state.observe(before, None)
            self._since.pop(before, None)

    def _forget_pending(self, uid: str) -> None:
        del self.pending[uid]
        self.state.clear_in_flight(uid)


def devices_of(claim: ResourceClaim) -> set[Device]:
    """Return the devices that a claim has for itself, or a share of."""
    results = () if claim.status.allocation is None else claim.status.allocation.devices.results or ()
    return {(each.driver, each.pool, each.device) for each in results if not each.admin_access}


def _shows(claim: ResourceClaim | None, written: ResourceClaim) -> bool:
    """Return whether a lister's claim is from after what was written, or gone, or another of that name."""
    if claim is None or claim.metadata.uid != written.metadata.uid:
        return True
    return not is_later_version(written.metadata.resource_version, claim.metadata.resource_version)


def _time(claim: ResourceClaim) -> str:
    return (claim.status.allocation and claim.status.allocation.allocation_timestamp) or ""


class StrandedDevices:
    """Adds up by driver what is left of devices that are taken in part; metrics and simulations tell of it.

    A counter set counts as one device. Pools of which nothing changed are not looked at again; what is kept is bounded
    by the pools there are.
    """

    def __init__(self, listers: Listers) -> None:
        self._cache = listers.shared(ClaimCache)
        self._known: dict[PoolId, tuple[int, Pool, int]] = {}

    def by_driver(self) -> dict[str, float]:
        """Return it in devices; a driver of which nothing is taken in part has 0."""
        index, state = self._cache.allocator().index, self._cache.state
        known, left = self._known, Counter[str]()
        self._known = {}
        for pool in index.whole_pools():
            version, before = state.version(pool.id), known.get(pool.id)
            if before is None or before[:2] != (version, pool):
                before = version, pool, left_in_part(pool, state)
            self._known[pool.id] = before
            left[pool.id[0]] += before[2]
        return {driver: amount / WHOLE for driver, amount in sorted(left.items())}
