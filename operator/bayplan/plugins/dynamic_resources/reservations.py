"""What pods have taken on their nodes until it is written: it counts as taken, is written, and is made sure of."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec.structs import replace

from bayplan.api.claim_objects import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from bayplan.api.meta_objects import format_time, key_of
from bayplan.api.response import ApiCall, ApiResponse
from bayplan.cache.group_members import group_key
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.plugin_calls import PluginCalls
from bayplan.framework.status import Afterwards, Conversation, EffectError, Exchange, Notice, wait_until
from bayplan.plugins.dynamic_resources.binding_conditions import wait_for_devices, waits_for_devices
from bayplan.plugins.dynamic_resources.claim_cache import ClaimCache, TakingBack
from bayplan.plugins.dynamic_resources.claim_writes import (
    UnansweredError,
    bind_claim,
    check,
    create,
    deallocate,
    delete,
    others_may_run,
    tell_pod,
    unreserve,
)
from bayplan.plugins.dynamic_resources.extended_claim import SpecialClaim, assumed
from bayplan.plugins.dynamic_resources.pod_claims import claims_that_are_there, is_reserved_for

_SHOWN_SECONDS: Final = 10.0
"""How long the watch may take to show what was written."""
_LATEST_SECONDS: Final = 60.0
"""How long a request whose answer was lost may take to be carried out (upstream: --request-timeout)."""
_Steps = Generator[ApiCall | Notice | float, ApiResponse | None, None]
_Claiming = Generator[ApiCall | Notice | float, ApiResponse | None, ResourceClaim]
_GivingBack = Generator[ApiCall | Notice | float, ApiResponse | None, ResourceClaim | None]


@dataclass(slots=True, eq=False)
class _Reserved:
    """The claims of a pod, and what is allocated to some of them, by UID."""

    claims: Sequence[ResourceClaim]
    allocations: Mapping[str, AllocationResult]
    special: SpecialClaim | None
    """What stands for the pod's extended resources, besides the claims."""
    is_under_way: bool = False
    """Whether requests are made for it: what was sent may yet arrive."""
    made: ResourceClaim | None = None
    """What was made of `special`."""


class Reservations:
    """Keeps what Reserve took for each pod until it is written or given back; DynamicResources relies on it.

    Devices stay taken while a request that allocates them may yet arrive. `clock` gives seconds since the epoch;
    devices may take `binding_seconds` to be ready. `calls` receives what claims are made, and how such waits end.
    """

    def __init__(
        self,
        cache: ClaimCache,
        afterwards: Afterwards,
        clock: Callable[[], float],
        binding_seconds: float,
        calls: PluginCalls,
    ) -> None:
        self._cache = cache
        self._afterwards = afterwards
        self._clock = clock
        self._calls = calls
        self._wait_for_devices = partial(
            wait_for_devices, get=cache.get, clock=clock, seconds=binding_seconds, calls=calls
        )
        self._reserved: dict[str, _Reserved] = {}

    def reserve(
        self,
        claims: Sequence[ResourceClaim],
        allocations: Mapping[str, AllocationResult],
        pod: PodInfo,
        special: SpecialClaim | None = None,
    ) -> None:
        """Have the devices count as taken, and remember what is to be written for the pod; `special` is made anew."""
        reserved = self._reserved[pod.uid] = _Reserved(claims, allocations, special)
        for claim in claims if special is None else [*claims, special.claim]:
            if allocation := allocations.get(claim.metadata.uid):
                self._cache.reserve(claim, allocation, reserved, group_key(pod.pod))

    def unreserve(self, pod: PodInfo) -> None:
        """Give back what the pod took, and its right to use its claims; what was allocated in writing stays."""
        reserved = self._reserved.pop(pod.uid, None)
        self._cache.binding.pop(pod.uid, None)
        if reserved is not None:
            if not reserved.is_under_way:
                self._end(reserved, pod)
        elif (special := self._cache.special_claim(pod.uid)) is not None:
            self.delete(special, pod)
        for claim in claims_that_are_there(pod, self._cache.get):
            if claim.status.allocation is not None and is_reserved_for(claim, pod):
                others = [each for each in claim.status.reserved_for or () if each.uid != pod.uid]
                free = replace(claim, status=replace(claim.status, reserved_for=others))
                self._later("unreserve", TakingBack(claim, pod.uid), partial(unreserve, claim, pod), free)

    def deallocate(self, claim: ResourceClaim) -> None:
        """Have a claim give its devices back."""
        free = replace(claim, status=replace(claim.status, allocation=None, reserved_for=None, devices=None))
        self._later("deallocate", TakingBack(claim), partial(deallocate, claim), free)

    def delete(self, claim: ResourceClaim, pod: PodInfo) -> None:
        """Have the claim that stands for the pod's extended resources go, and its devices be free."""
        about = f"delete claim {key_of(claim.metadata)}"
        begin, assume = partial(delete, claim, pod), partial(self._cache.forget, claim)
        self._afterwards(Exchange(begin, assume, about))

    def exchange(self, pod: PodInfo, node_name: str) -> Exchange | None:
        """Return what is to be done before the pod is bound."""
        reserved = self._reserved.get(pod.uid)
        if reserved is None:
            return None
        begin, assume = partial(self._bind, reserved, pod, node_name), partial(self._assume_bound, reserved, pod)
        allocated = [*reserved.allocations.values(), *(claim.status.allocation for claim in reserved.claims)]
        waits = any(each is not None and waits_for_devices(each) for each in allocated)
        return Exchange(begin, assume, f"claims of pod {pod.key}", waits)

    def _bind(self, reserved: _Reserved, pod: PodInfo, node_name: str) -> Conversation:
        reserved.is_under_way = True
        written: list[ResourceClaim] = []
        found: list[ResourceClaim] = []
        try:
            yield from self._until_none_is_given_back(reserved.claims, pod)
            for known in reserved.claims:
                allocation = self._allocation(reserved, known)
                now = self._cache.get(key_of(known.metadata)) or known
                # Even where the pod may use the claim already, it must have the devices that were found for it.
                claim = yield from bind_claim(now, known, allocation, pod)
                self._cache.take_written(claim)
                (found if allocation is None else written).append(claim)
            if reserved.special is not None:
                written.append((yield from self._bind_special(reserved, reserved.special, pod)))
            yield from self._make_sure(written, found, pod)
            yield from self._wait_for_devices([*found, *written], node_name)
            yield from self._until_none_is_given_back(reserved.claims, pod)
            self._make_sure_of_use([*found, *written], pod)
        finally:
            reserved.is_under_way = False
            is_given_back = self._reserved.get(pod.uid) is not reserved
            if is_given_back:
                self._end(reserved, pod)
        if not is_given_back:
            del self._reserved[pod.uid]
            self._cache.begin_bind(pod.uid)

    def _bind_special(self, reserved: _Reserved, special: SpecialClaim, pod: PodInfo) -> _Claiming:
        """Make the claim that stands for the pod's extended resources, and bind it as others.

        Its devices count as taken under the UID it had before until it has them by what was written.
        """
        try:
            reserved.made = made = yield from create(special.claim)
        except EffectError:
            self._calls.claim_made("failure")
            raise
        self._calls.claim_made("success")
        yield from wait_until(lambda: self._cache.has(made), _SHOWN_SECONDS, "claim is not shown")
        claim = yield from bind_claim(made, made, self._allocation(reserved, special.claim), pod)
        self._cache.take_written(claim)
        self._cache.release(special.claim.metadata.uid, reserved)
        yield from tell_pod(claim, pod, special.mappings)
        return claim

    def _make_sure(self, written: Sequence[ResourceClaim], found: Sequence[ResourceClaim], pod: PodInfo) -> _Steps:
        """Give way to another scheduler that gave away a device of ours: the API server refuses neither claim.

        Claims that were `found` with devices may be another's, who did not live to look: the last write of a scheduler
        that was killed can come after those of its successor. Whoever else has such a device may run with it. A claim
        that another pod with a node uses keeps its devices.

        Raises:
            EffectError: one did, or the watch does not show what was written, so that nobody can tell.
        """
        yield from wait_until(lambda: all(map(self._cache.has_shown, written)), _SHOWN_SECONDS, "claims are not shown")
        for claim, is_ours in [*((each, True) for each in written), *((each, False) for each in found)]:
            rival = self._cache.rival(claim, is_ours=is_ours)
            if rival is None:
                continue
            now = self._cache.get(key_of(claim.metadata)) or claim
            if (yield from others_may_run(now, pod, self._cache.binding)):
                continue
            name, other = claim.metadata.name, key_of(rival.metadata)
            text = f"a device of claim {name} was allocated to claim {other} by another scheduler"
            yield Notice("Warning", "DeviceTakenTwice", "Scheduling", text)
            yield from self._give_back(TakingBack(now), partial(deallocate, now))
            raise EffectError(text)

    def _until_none_is_given_back(self, claims: Sequence[ResourceClaim], pod: PodInfo) -> _Steps:
        def is_none() -> bool:
            now = [self._cache.get(key_of(claim.metadata)) or claim for claim in claims]
            return not any(each.concerns(claim, pod.uid) for claim in now for each in self._cache.giving_back)

        if self._cache.giving_back:
            yield from wait_until(is_none, _SHOWN_SECONDS, "claims are being given back")

    def _make_sure_of_use(self, claims: Sequence[ResourceClaim], pod: PodInfo) -> None:
        """Make sure that the claims are as they were when the pod got them: what followed may have taken long.

        Raises:
            EffectError: one is not.
        """
        for claim in claims:
            key = key_of(claim.metadata)
            if not is_reserved_for(check(self._cache.get(key), claim, None), pod):
                raise EffectError(f"claim {key} is not reserved for the pod any more")

    def _allocation(self, reserved: _Reserved, claim: ResourceClaim) -> AllocationResult | None:
        allocation = reserved.allocations.get(claim.metadata.uid)
        return allocation and replace(allocation, allocation_timestamp=format_time(self._clock()))

    def _end(self, reserved: _Reserved, pod: PodInfo) -> None:
        """Have the devices be free, and the claim go that was made: no try after this one knows of it."""
        for uid in reserved.allocations:
            self._cache.release(uid, reserved)
        if reserved.made is not None:
            self.delete(reserved.made, pod)

    def _assume_bound(self, reserved: _Reserved, pod: PodInfo) -> None:
        """Have the claims be as they would be written, where nothing is."""
        claims = [self._cache.get(key_of(known.metadata)) for known in reserved.claims]
        if reserved.special is not None:
            claims.append(assumed(reserved.special.claim, pod))
        for claim in claims:
            if claim is None or is_reserved_for(claim, pod):
                continue
            reference = ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
            allocation = claim.status.allocation or self._allocation(reserved, claim)
            reserved_for = [*(claim.status.reserved_for or ()), reference]
            self._cache.assume(
                replace(claim, status=replace(claim.status, allocation=allocation, reserved_for=reserved_for))
            )
        self._reserved.pop(pod.uid, None)
        self._end(reserved, pod)

    def _later(
        self, doing: str, taking: TakingBack, writing: Callable[[], _GivingBack], becomes: ResourceClaim
    ) -> None:
        begin, assume = partial(self._give_back, taking, writing), partial(self._cache.assume, becomes)
        self._afterwards(Exchange(begin, assume, f"{doing} claim {key_of(becomes.metadata)}"))

    def _give_back(self, taking: TakingBack, writing: Callable[[], _GivingBack]) -> Conversation:
        """Take something from a claim; no bind relies on what it had until that is over.

        Where nobody answers, it is over once it cannot be carried out any more, whether anybody waits for that or not.
        """
        self._cache.giving_back.append(taking)
        try:
            now = yield from writing()
            if now is not None:
                self._cache.take_written(now)
        except UnansweredError:
            self._cache.giving_back.append(taking)
            about = f"claim {key_of(taking.claim.metadata)} without an answer"
            self._afterwards(Exchange(partial(self._outlast, taking), lambda: None, about))
            raise
        finally:
            self._cache.giving_back.remove(taking)

    def _outlast(self, taking: TakingBack) -> Conversation:
        yield _LATEST_SECONDS
        self._cache.giving_back.remove(taking)
