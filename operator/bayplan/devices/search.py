"""The depth-first search for devices on one node; the first full solution is upstream's.

Source: D/structured/internal/incubating/allocator_incubating.go, allocateOne and allocateDevice.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from itertools import tee
from typing import Final, NamedTuple

from bayplan.api.objects import Node
from bayplan.devices.allocated_state import AllocatedState, PoolId
from bayplan.devices.candidates import Candidates, Order, Pick, Slot
from bayplan.devices.offers import CounterName, Kinds, Reads
from bayplan.devices.packing import LeastLeftOver
from bayplan.devices.pool_index import PoolIndex
from bayplan.devices.requests import MAX_RESULTS, AllocationError, ClaimRequests, Constraint, Request

MAX_LOOKS: Final = 100_000
"""How many times one search looks at a device or a request before it gives the node up."""
_FEW_LOOKS: Final = 8192
"""Up to so many looks all candidates of all requests are known before the search, which then fails early."""
_LOOKS_A_CLOCK: Final = 64


class SearchTimeoutError(Exception):
    """The search took too long; nothing is known of the node."""


class _Position(NamedTuple):
    """Where the search is: `choice` is the alternative, None before one is chosen; `start` the next candidate."""

    claim: int
    request: int
    choice: int | None = None
    picked: int = 0
    start: int = 0


class Search:
    """One search for all claims on one node; if it `packs`, and devices are few, by what leaves least over.

    `pools` are those with devices for the node, as they are searched.
    """

    def __init__(
        self,
        index: PoolIndex,
        allocated: AllocatedState,
        kinds: tuple[Reads, Kinds],
        is_over: Callable[[], bool],
        node: Node,
        *,
        packs: bool = False,
    ) -> None:
        self.node = node
        self.pools = index.pools_of(node).pools
        self._index = index
        self._allocated = allocated
        self._kinds = kinds
        self._is_over = is_over
        self._packs = packs
        self._order: Order | None = None
        self._looked = 0
        (self._slots,) = tee(self._all_slots(), 1)
        self._candidates: dict[Request, Candidates] = {}
        self._booked: dict[PoolId, dict[CounterName, int]] = {}
        self._claims: Sequence[ClaimRequests] = ()
        self._exceeded = False
        self._few = False
        self.picks: list[list[Pick]] = []
        self.chosen: dict[tuple[int, int], Request] = {}

    def list_all(self, request: Request) -> int:
        """List the devices of a request for all of them, used or not, and count them.

        Raises:
            AllocationError: a pool is being updated or invalid, or a selector or a capacity failed.
            SearchTimeoutError: there was not enough time.
        """
        listed, before = self._listed(request), 0
        for pool in self.pools:
            if pool.state:
                listed.look_at(before)
                name = "/".join(pool.id)
                raise AllocationError(
                    f"{request.text}: asks for all devices, but resource pool {name} is currently {pool.state}"
                )
            before += sum(len(each.devices) for each in pool.slices)
        return listed.count()

    def run(self, claims: Sequence[ClaimRequests]) -> bool:
        """Find the first solution; `picks` by claim and `chosen` by claim and request then have it.

        Raises:
            AllocationError: what ends the attempt.
            SearchTimeoutError: there was not enough time.
        """
        self._claims = claims
        self.picks = [[] for _ in claims]
        devices = sum(len(each.devices) for pool in self.pools for each in pool.slices)
        self._few = devices * sum(len(each) for claim in claims for each in claim.requests) <= _FEW_LOOKS
        if self._few and self._packs:
            self._order = LeastLeftOver(self.slots(), self._allocated).order
        if self._few and self._is_hopeless():
            return False
        stack = [self._advance(_Position(0, 0))] if claims else []
        while stack:
            position = next(stack[-1], None)
            if position is None:
                stack.pop()
            elif position.claim >= len(claims):
                return True
            else:
                self.look()
                stack.append(self._advance(position))
        if self._exceeded:
            raise AllocationError("allocation max size exceeded")
        return not claims

    def slots(self) -> Iterator[Slot]:
        """All devices in the order in which they are tried; who goes through them finds those of others again."""
        return copy(self._slots)

    def look(self) -> None:
        """Count a step.

        Raises:
            SearchTimeoutError: there is no time left.
        """
        self._looked += 1
        if self._looked > MAX_LOOKS:
            raise SearchTimeoutError
        if self._looked % _LOOKS_A_CLOCK == 0:
            self.check_time()

    def check_time(self) -> None:
        """Look at the clock, before what takes long.

        Raises:
            SearchTimeoutError: there is no time left.
        """
        if self._is_over():
            raise SearchTimeoutError

    def is_for_node(self, slot: Slot) -> bool:
        """Whether the device is for this node, where that is said of each device."""
        return self._index.device_is_for(slot.offer, self.node)

    def may_book(self, slot: Slot) -> bool:
        """Whether the counters of its pool allow for the device alone."""
        offer, pool = slot.offer, slot.pool
        if not offer.consumes or (offer.multiple and slot.shared) or pool.negative:
            return True
        left = pool.available(self._allocated)
        return all(left[name] >= amount for name, amount in offer.consumes) and all(each >= 0 for each in left.values())

    def _all_slots(self) -> Iterator[Slot]:
        for p, pool in enumerate(self.pools):
            for s, each in enumerate(pool.slices):
                kinds = each.kinds(*self._kinds)
                for d in range(len(each.devices)):
                    yield Slot(each.offer(d), kinds[d], pool, (p, s, d), self._allocated)

    def _listed(self, request: Request) -> Candidates:
        known = self._candidates.get(request)
        if known is None:
            known = self._candidates[request] = Candidates(self, request, self._order)
        return known

    def _most(self, claim_index: int, request: Request) -> int:
        """At most so many devices a request can have, by what there is and by each constraint alone."""
        listed = self._listed(request)
        most = listed.count()
        # A request for all devices does not fail by a constraint: it ends the attempt.
        for constraint in () if request.all else self._claims[claim_index].constraints:
            if constraint.concerns(request.names):
                most = min(most, constraint.most(slot.offer for slot in listed.slots()))
        return most

    def _is_hopeless(self) -> bool:
        """Whether some requests ask for more devices than there are candidates, so that no order helps.

        It is only said where the search could not have met an error instead.
        """
        demands: Counter[frozenset[tuple[int, int, int]]] = Counter()
        hopeless = False
        for number, claim in enumerate(self._claims):
            if sum(max(request.count for request in each) for each in claim.requests) > MAX_RESULTS:
                return False
            for alternatives in claim.requests:
                listed = [self._listed(request) for request in alternatives]
                found = [self._most(number, request) for request in alternatives]
                if any(each.fails for each in listed) or (claim.constraints and any(r.all for r in alternatives)):
                    return False
                hopeless = hopeless or all(n < request.count for n, request in zip(found, alternatives, strict=True))
                places = listed[0].exclusive
                if len(alternatives) == 1 and not alternatives[0].admin and places is not None:
                    demands[places] += alternatives[0].count
        hopeless = hopeless or any(wanted > len(places) for places, wanted in demands.items())
        return hopeless or sum(demands.values()) > len(frozenset[tuple[int, int, int]]().union(*demands))

    def _advance(self, at: _Position) -> Iterator[_Position]:
        """The steps that can follow; what one does is undone before the next."""
        claim = self._claims[at.claim]
        if at.request >= len(claim.requests):
            return self._next_claim(at)
        request = claim.requests[at.request][at.choice or 0]
        if at.choice is None and request.is_choice:
            return self._choose(at)
        if request.all and not request.count:
            return iter(())
        if at.picked >= request.count:
            return iter((_Position(at.claim, at.request + 1),))
        if request.count - at.picked > MAX_RESULTS - len(self.picks[at.claim]):
            self._exceeded = True
            return iter(())
        return self._pick(at, request)

    def _next_claim(self, at: _Position) -> Iterator[_Position]:
        yield _Position(at.claim + 1, 0)
        self._exceeded = False

    def _choose(self, at: _Position) -> Iterator[_Position]:
        all_exceeded = True
        for choice, request in enumerate(self._claims[at.claim].requests[at.request]):
            self.chosen[at.claim, at.request] = request
            yield at._replace(choice=choice)
            all_exceeded = all_exceeded and self._exceeded
            self._exceeded = False
        self._exceeded = all_exceeded

    def _pick(self, at: _Position, request: Request) -> Iterator[_Position]:
        candidates = self._listed(request)
        if self._few and not at.picked and not candidates.fails and self._most(at.claim, request) < request.count:
            return
        failed: set[object] = set()
        place = at.start
        while (candidate := candidates.at(place)) is not None:
            place += 1
            # Too few are left, and none of them can fail otherwise.
            left = candidates.count() - place + 1 if self._few else MAX_RESULTS
            if left < request.count - at.picked and not candidates.fails:
                return
            slot, error = candidate
            if not (at.claim in slot.taken if request.admin else slot.held or slot.taken):
                self.look()
                if error is not None:
                    raise error
                # What fails with one device fails with any other that is the same in all that matters.
                alike = object() if request.admin or slot.sharing else slot.alike
                if alike not in failed and (undo := self._take(at.claim, request, slot)):
                    yield at._replace(choice=at.choice or 0, picked=at.picked + 1, start=place)
                    undo()
                    if self._exceeded:
                        return
                    failed.add(alike)
            if request.all:
                return

    def _take(self, claim_index: int, request: Request, slot: Slot) -> Callable[[], None] | None:
        """Take a device, if taints, counters, constraints and capacity allow; returns what undoes it."""
        offer = slot.offer
        want = request.want(offer, slot.kind)
        books = bool(offer.consumes) and not (offer.multiple and (slot.shared or slot.sharing))
        if not request.tolerates(offer, slot.kind) or (books and not self._book(slot)):
            return None
        added: list[Constraint] = []

        def put_back() -> None:
            for each in added:
                each.remove()
            if books:
                self._unbook(slot)

        for constraint in self._claims[claim_index].constraints:
            if not constraint.concerns(request.names):
                continue
            if not constraint.add(offer):
                put_back()
                _refuse_broken(request, slot)
                return None
            added.append(constraint)
        if not want.fits_beside(slot.used, slot.taking):
            put_back()
            return None
        slot.take(claim_index, want, 1)
        self.picks[claim_index].append(Pick(request, slot, want))

        def undo() -> None:
            self.picks[claim_index].pop()
            slot.take(claim_index, want, -1)
            put_back()

        return undo

    def _book(self, slot: Slot) -> bool:
        """Book what a device consumes, if then no counter of its pool is overdrawn, whichever it is."""
        left = slot.pool.available(self._allocated)
        booked = self._booked.setdefault(slot.pool.id, dict.fromkeys(left, 0))
        for name, amount in slot.offer.consumes:
            booked[name] += amount
        if all(left[name] >= amount for name, amount in booked.items()):
            return True
        self._unbook(slot)
        return False

    def _unbook(self, slot: Slot) -> None:
        for name, amount in slot.offer.consumes:
            self._booked[slot.pool.id][name] -= amount


def _refuse_broken(request: Request, slot: Slot) -> None:
    """A request for all devices cannot do without one that breaks a constraint."""
    if request.all:
        raise AllocationError(
            f"{request.text}: cannot add device {slot.offer.name} because a claim constraint would not be satisfied"
        )
