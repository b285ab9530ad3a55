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
from bayplan.plugins.dynamic_resources.binding_conditions import (
    DeviceFailedError,
    DeviceOverdueError,
    are_ready,
    is_overdue,
    waits_for_devices,
)
from bayplan.plugins.dynamic_resources.claim_cache import ClaimCache
from bayplan.plugins.dynamic_resources.claim_writes import (
    bind_claim,
    create,
    deallocate,
    delete,
    tell_pod,
    unreserve,
)
from bayplan.plugins.dynamic_resources.extended_claim import SpecialClaim, assumed
from bayplan.plugins.dynamic_resources.pod_claims import is_reserved_for

_SHOWN_SECONDS: Final = 10.0
"""How long the watch may take to show what was written."""
_Steps = Generator[ApiCall | Notice | float, ApiResponse | None, None]
_Claiming = Generator[ApiCall | Notice | float, ApiResponse | None, ResourceClaim]


@dataclass(slots=True, eq=False)
class _Reserved:
    """The claims of a pod, and what is allocated to some of them, by UID."""

    claims: Sequence[ResourceClaim]
    allocations: Mapping[str, AllocationResult]
    special: SpecialClaim | None = None
    """What stands for the pod's extended resources: the last of the claims."""
    is_under_way: bool = False
    """Whether requests are made for it: what was sent may yet arrive."""
    has_ended: bool = False
    """Whether it was given back."""

    @property
    def is_made(self) -> bool:
        """Whether the API server has made the special claim."""
        return self.special is not None and self.claims[-1] is not self.special.claim


class Reservations:
    """Keeps what Reserve took for each pod until the pod is bound or gives it back; DynamicResources relies on it.

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
        self._binding_seconds = binding_seconds
        self._calls = calls
        self._reserved: dict[str, _Reserved] = {}

    def reserve(
        self,
        claims: Sequence[ResourceClaim],
        allocations: Mapping[str, AllocationResult],
        pod: PodInfo,
        special: SpecialClaim | None = None,
    ) -> None:
        """Have the devices count as taken, and remember what is to be written for the pod; `special` is made anew."""
        claims = claims if special is None else [*claims, special.claim]
        for claim in claims:
            if allocation := allocations.get(claim.metadata.uid):
                self._cache.reserve(claim, allocation, pod.uid, group_key(pod.pod))
        self._reserved[pod.uid] = _Reserved(claims, allocations, special)

    def unreserve(self, pod: PodInfo) -> None:
        """Give back what the pod took, and its right to use its claims; what was allocated in writing stays."""
        reserved = self._reserved.pop(pod.uid, None)
        if reserved is None:
            return
        reserved.has_ended = True
        if not reserved.is_under_way:
            self._release(reserved, pod)
        for known in reserved.claims:
            claim = self._cache.get(key_of(known.metadata))
            if reserved.is_made and known is reserved.claims[-1]:
                self.delete(claim or known, pod)
            elif claim is not None and claim.status.allocation is not None and is_reserved_for(claim, pod):
                others = [each for each in claim.status.reserved_for or () if each.uid != pod.uid]
                free = replace(claim, status=replace(claim.status, reserved_for=others))
                self._later("unreserve", claim, partial(unreserve, claim, pod), free)

    def deallocate(self, claim: ResourceClaim) -> None:
        """Have a claim give its devices back."""
        free = replace(claim, status=replace(claim.status, allocation=None, reserved_for=None, devices=None))
        self._later("deallocate", claim, partial(self._deallocate, claim), free)

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
        allocated = (
            reserved.allocations.get(claim.metadata.uid) or claim.status.allocation for claim in reserved.claims
        )
        waits = any(each is not None and waits_for_devices(each) for each in allocated)
        return Exchange(begin, assume, f"claims of pod {pod.key}", waits)

    def _bind(self, reserved: _Reserved, pod: PodInfo, node_name: str) -> Conversation:
        reserved.is_under_way = True
        written: list[ResourceClaim] = []
        found: list[ResourceClaim] = []
        try:
            for known in reserved.claims if reserved.special is None else reserved.claims[:-1]:
                claim = self._cache.get(key_of(known.metadata)) or known
                allocation = self._allocation(reserved, claim)
                # Even where the pod may use the claim already, it must have the devices that were found for it.
                if allocation is not None or not is_reserved_for(claim, pod):
                    claim = yield from bind_claim(claim, allocation, pod)
                    self._take_written(claim, pod)
                if allocation is not None:
                    written.append(claim)
                elif all(each.uid == pod.uid for each in claim.status.reserved_for or ()):
                    found.append(claim)
            if reserved.special is not None:
                written.append((yield from self._bind_special(reserved, reserved.special, pod)))
            yield from self._make_sure(written, found)
            yield from self._wait_for_devices(reserved, node_name)
        finally:
            reserved.is_under_way = False
            if reserved.has_ended:
                self._release(reserved, pod)

    def _bind_special(self, reserved: _Reserved, special: SpecialClaim, pod: PodInfo) -> _Claiming:
        """Make the claim that stands for the pod's extended resources, and bind it as others.

        Its devices count as taken under the UID it had before until it has them by what was written.
        """
        try:
            made = yield from create(special.claim)
        except EffectError:
            self._calls.claim_made("failure")
            raise
        self._calls.claim_made("success")
        reserved.claims = [*reserved.claims[:-1], made]
        yield from wait_until(lambda: self._cache.has(made), _SHOWN_SECONDS, "claim is not shown")
        claim = yield from bind_claim(made, self._allocation(reserved, special.claim), pod)
        self._cache.take_written(claim)
        self._cache.release(special.claim.metadata.uid, pod.uid, is_written=True)
        yield from tell_pod(claim, pod, special.mappings)
        return claim

    def _make_sure(self, written: Sequence[ResourceClaim], found: Sequence[ResourceClaim]) -> _Steps:
        """Give way to another scheduler that gave away a device of ours: the API server refuses neither claim.

        Claims that were `found` with devices may be another's, who did not live to look: the last write of a scheduler
        that was killed can come after those of its successor. Whoever else has such a device may run with it.

        Raises:
            EffectError: one did, or the watch does not show what was written, so that nobody can tell.
        """
        yield from wait_until(lambda: all(map(self._cache.has_shown, written)), _SHOWN_SECONDS, "claims are not shown")
        for claim, is_ours in [*((each, True) for each in written), *((each, False) for each in found)]:
            rival = self._cache.rival(claim, is_ours=is_ours)
            if rival is None:
                continue
            name, other = claim.metadata.name, key_of(rival.metadata)
            text = f"a device of claim {name} was allocated to claim {other} by another scheduler"
            yield Notice("Warning", "DeviceTakenTwice", "Scheduling", text)
            yield from self._deallocate(self._cache.get(key_of(claim.metadata)) or claim)
            raise EffectError(text)

    def _wait_for_devices(self, reserved: _Reserved, node_name: str) -> _Steps:
        """Wait until the devices of all claims are ready.

        Raises:
            EffectError: one fails, or takes too long.
        """
        keys = [key_of(claim.metadata) for claim in reserved.claims]
        allocations = [claim.status.allocation for key in keys if (claim := self._cache.get(key)) is not None]
        if not any(each is not None and waits_for_devices(each) for each in allocations):
            return
        text = f"waiting for binding conditions for device on node {node_name}"
        yield Notice("Normal", "BindingConditionsPending", "Scheduling", text)
        started, status = self._clock(), "error"
        try:
            yield from wait_until(
                lambda: all(map(self._is_ready, keys)),
                self._binding_seconds,
                "device binding timeout",
                DeviceOverdueError,
            )
            status = "success"
        except DeviceFailedError:
            status = "failure"
            raise
        except DeviceOverdueError:
            status = "timeout"
            raise
        finally:
            results = [each for allocation in allocations if allocation for each in allocation.devices.results or ()]
            conditional = [each.driver for each in results if each.binding_conditions]
            seconds = self._clock() - started
            self._calls.devices_awaited(status, seconds, [each.driver for each in results], conditional)

    def _is_ready(self, key: str) -> bool:
        claim = self._cache.get(key)
        if claim is None:
            raise EffectError(f'could not find ResourceClaim "{key}"')
        is_ready = are_ready(claim)
        if not is_ready and is_overdue(claim, self._binding_seconds, self._clock()):
            raise DeviceOverdueError(f"device binding timeout: claim={claim.metadata.name}")
        return is_ready

    def _deallocate(self, claim: ResourceClaim) -> _Steps:
        self._cache.take_written((yield from deallocate(claim)))

    def _allocation(self, reserved: _Reserved, claim: ResourceClaim) -> AllocationResult | None:
        allocation = reserved.allocations.get(claim.metadata.uid)
        return allocation and replace(allocation, allocation_timestamp=format_time(self._clock()))

    def _take_written(self, claim: ResourceClaim, pod: PodInfo) -> None:
        """Have the claim count as it was written, and then no longer as about to be: its devices stay taken."""
        self._cache.take_written(claim)
        self._cache.release(claim.metadata.uid, pod.uid, is_written=True)

    def _release(self, reserved: _Reserved, pod: PodInfo) -> None:
        for uid in reserved.allocations:
            self._cache.release(uid, pod.uid)

    def _assume_bound(self, reserved: _Reserved, pod: PodInfo) -> None:
        """Have the claims be as they would be written, where nothing is."""
        for known in reserved.claims:
            is_special = reserved.special is not None and known is reserved.special.claim
            claim = assumed(known, pod) if is_special else self._cache.get(key_of(known.metadata))
            if claim is None or is_reserved_for(claim, pod):
                continue
            reference = ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
            allocation = claim.status.allocation or self._allocation(reserved, known)
            reserved_for = [*(claim.status.reserved_for or ()), reference]
            self._cache.assume(
                replace(claim, status=replace(claim.status, allocation=allocation, reserved_for=reserved_for))
            )
            self._cache.release(known.metadata.uid, pod.uid, is_written=True)

    def _later(
        self, doing: str, claim: ResourceClaim, begin: Callable[[], Conversation], becomes: ResourceClaim
    ) -> None:
        about = f"{doing} claim {key_of(claim.metadata)}"
        self._afterwards(Exchange(begin, partial(self._cache.assume, becomes), about))
