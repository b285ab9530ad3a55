"""Allocates devices for the claims of a pod on many nodes at once; nodes that are alike share one search.

Pure: what is allocated already is an argument, and so is the clock. Nothing is written.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from typing import Final, TypeVar

import msgspec

from bayplan.api.claim_objects import (
    AllocationResult,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from bayplan.api.device_objects import DeviceClass, DeviceTaintRule, ResourceSlice
from bayplan.api.objects import Node
from bayplan.devices.allocated_state import AllocatedState
from bayplan.devices.candidates import Pick
from bayplan.devices.device_counts import DeviceCount, count_devices
from bayplan.devices.offers import Kinds, Offer, Reads
from bayplan.devices.packing import utilization
from bayplan.devices.pool_index import NodeKinds, PoolIndex
from bayplan.devices.pools import INVALID_STATE
from bayplan.devices.requests import AllocationError, ClaimRequests, Request, reads_of
from bayplan.devices.results import INVALID, NOT_ALL, TIMED_OUT, Refusal, allocation_of
from bayplan.devices.search import Search, SearchTimeoutError

ATTEMPT_SECONDS: Final = 0.2
"""How long one attempt searches, over all nodes: the loop waits for it."""
_MAX_READS: Final = 8
_MAX_KNOWN: Final = 8192
"""So many results and devices of searches are kept; one takes about 2 KiB."""
T = TypeVar("T")
_Begin = Callable[..., Search]
"""Begins a search on one node; it may be told that it `packs`."""
_encode: Final = msgspec.msgpack.Encoder().encode


@dataclass(slots=True, eq=False)
class Grant:
    """That a node has devices for all claims; which ones is written down when it is asked for.

    It is as good for other claims that ask for the same, and for nodes that are alike. `choices` says for each request
    that has alternatives, over all claims, which one was chosen, from 0.
    """

    _index: PoolIndex
    picks: Sequence[Sequence[Pick]]
    chosen: tuple[Mapping[int, Request], ...]
    choices: Sequence[int]
    _utilization: int | None = None
    """What it makes of a node, once that was asked."""

    def allocations(self, claims: Sequence[ResourceClaim], node: Node) -> tuple[AllocationResult, ...]:
        """The allocation of each claim, in order, with new share IDs at each call and without a timestamp."""
        pools = self._index.pools_of(node).pools

        def here(pick: Pick) -> Offer:
            pool, piece, place = pick.slot.place
            return pools[pool].slices[piece].offer(place)

        return tuple(
            allocation_of(claim, [(pick, here(pick)) for pick in picks], chosen, node.metadata.name)
            for claim, picks, chosen in zip(claims, self.picks, self.chosen, strict=True)
        )

    def utilization(self, node: Node, allocated: AllocatedState) -> int:
        """Return how many per cent of the node's devices of this kind are taken with this grant."""
        if self._utilization is None:
            pools = self._index.pools_of(node).pools
            self._utilization = utilization(pools, chain.from_iterable(self.picks), allocated)
        return self._utilization


class Allocator:
    """Finds devices for claims, as kube-scheduler 1.37 does with its default gates; the plugin asks it for all nodes.

    It stays good until slices, classes or rules change; one made with `previous` keeps what is the same. `allocated` is
    read at each call.
    """

    def __init__(
        self,
        slices: Iterable[ResourceSlice],
        classes: Mapping[str, DeviceClass],
        taint_rules: Iterable[DeviceTaintRule],
        allocated: AllocatedState,
        *,
        previous: "Allocator | None" = None,
    ) -> None:
        self.index: PoolIndex = PoolIndex(slices, taint_rules, previous.index if previous else None)
        self.kinds: Kinds = previous.kinds if previous else Kinds()
        self._classes = classes
        self._allocated = allocated
        self._known: dict[Hashable, dict[Hashable, Grant | Refusal]] = {}
        self._known_size = 0
        self._nodes: dict[Reads, NodeKinds] = {}

    def allocate(
        self,
        claims: Sequence[ResourceClaim],
        nodes: Sequence[Node],
        now: Callable[[], float],
        *,
        seconds: float = ATTEMPT_SECONDS,
        packs: bool = False,
    ) -> list[Grant | Refusal]:
        """Answer for each node, in order: that it has devices for all claims, or why not.

        The devices are upstream's, unless it `packs`: then those that leave least over. `now` is a clock in seconds.
        When so many `seconds` are over, nodes without an answer are refused for that. Of nodes that are alike and fail
        only the first has a text that names its own devices.
        """
        if self.index.selector_error:
            return [Refusal(self.index.selector_error, fails=True)] * len(nodes)
        too_late: Grant | Refusal = TIMED_OUT
        ask = partial(self._answer, claims, packs=packs)
        answers = self._answers(claims, packs=packs)
        return self._by_kind(claims, nodes, now, ask, too_late, answers=answers, seconds=seconds)

    def count(
        self, claims: Sequence[ResourceClaim], nodes: Sequence[Node], now: Callable[[], float]
    ) -> list[Sequence[DeviceCount]]:
        """Count for each node, in order, the devices that each request could have; none for nodes without an answer."""
        none: Sequence[DeviceCount] = ()
        return self._by_kind(claims, nodes, now, partial(self._count, claims), none, answers={})

    def _by_kind(
        self,
        claims: Sequence[ResourceClaim],
        nodes: Sequence[Node],
        now: Callable[[], float],
        ask: Callable[[_Begin], T],
        too_late: T,
        *,
        answers: dict[Hashable, T],
        seconds: float = ATTEMPT_SECONDS,
    ) -> list[T]:
        """Give for each node what was answered on the first of its kind, as long as there is time."""
        end = now() + seconds
        reads = reads_of(claims, self._classes)
        begin = partial(Search, self.index, self._allocated, (reads, self.kinds), lambda: now() >= end)
        kinds = self._kinds_by(reads)
        numbers = kinds.known(nodes)
        for place, number in enumerate(numbers):
            # Taking a node in takes its time, too, when it was not seen before.
            if number in answers or now() >= end:
                continue
            node = nodes[place]
            numbers[place] = found = kinds.find(node) if number is None else number
            if found not in answers:
                answers[found] = ask(partial(begin, node))
        return list(map(answers.get, numbers, repeat(too_late)))

    def _kinds_by(self, reads: Reads) -> NodeKinds:
        found = self._nodes.get(reads)
        if found is None:
            if len(self._nodes) >= _MAX_READS:
                self._nodes.clear()
            found = self._nodes[reads] = NodeKinds(self.index, reads, self.kinds, self._allocated)
        found.follow()
        return found

    def _answers(self, claims: Sequence[ResourceClaim], *, packs: bool) -> dict[Hashable, Grant | Refusal]:
        """Return what is known for claims that ask for the same, by the kinds of nodes.

        It stands until something is taken or given back on a node, which is of another kind then.
        """
        if self._known_size > _MAX_KNOWN:
            self._known, self._known_size = {}, 0
        asked = packs, tuple(_encode(claim.spec) for claim in claims)
        self._known_size += asked not in self._known
        known = self._known.get(asked, {})
        # An error names claims and devices.
        self._known[asked] = {
            kind: each for kind, each in known.items() if not (isinstance(each, Refusal) and each.fails)
        }
        return self._known[asked]

    def _answer(self, claims: Sequence[ResourceClaim], begin: _Begin, *, packs: bool) -> Grant | Refusal:
        """Search; what has no answer when packed may have one in upstream's order, and then that counts."""
        found = self._search(claims, begin(packs=packs))
        if packs and isinstance(found, Refusal) and found.fails:
            found = self._search(claims, begin())
        self._known_size += 1 if isinstance(found, Refusal) else 1 + sum(map(len, found.picks))
        return found

    def selected(self, class_name: str) -> Iterator[tuple[ResourceSlice, Sequence[int] | None]]:
        """Give for each slice the places of the devices that a class takes; None where a selector fails on one.

        Slices whose devices are alike are looked at once.
        """
        exactly = ExactDeviceRequest(class_name, allocation_mode="ExactCount", count=1)
        claim = ResourceClaim(spec=ResourceClaimSpec(DeviceClaim([DeviceRequest("all", exactly)])))
        reads, claimed = reads_of([claim], self._classes), ClaimRequests(claim)
        claimed.prepare(self._classes, lambda _: 0)
        ((request,),) = claimed.requests
        known: dict[Sequence[int], Sequence[int] | None] = {}
        for each in self.index.offers.values():
            kinds = each.kinds(reads, self.kinds)
            if kinds not in known:
                places = (at for at, kind in enumerate(kinds) if not request.refused_by(each.offer(at), kind))
                with suppress(AllocationError):
                    known[kinds] = [*places]
            yield each.wire, known.setdefault(kinds, None)

    def _prepared(self, claims: Sequence[ResourceClaim], search: Search) -> list[ClaimRequests]:
        """Return the requests of the claims, ready for the search.

        Raises:
            AllocationError: the first problem.
            SearchTimeoutError: there was not enough time.
        """
        requests = [ClaimRequests(claim) for claim in claims]
        for each in requests:
            each.prepare(self._classes, search.list_all)
        return requests

    def _count(self, claims: Sequence[ResourceClaim], begin: _Begin) -> Sequence[DeviceCount]:
        search = begin()
        try:
            return count_devices(search, self._prepared(claims, search))
        except (AllocationError, SearchTimeoutError):
            return ()

    def _search(self, claims: Sequence[ResourceClaim], search: Search) -> Grant | Refusal:
        try:
            requests = self._prepared(claims, search)
            if not search.run(requests):
                return INVALID if any(pool.state == INVALID_STATE for pool in search.pools) else NOT_ALL
            return self._granted(claims, requests, search)
        except SearchTimeoutError:
            return TIMED_OUT
        except AllocationError as error:
            return Refusal(str(error), fails=True)

    def _granted(self, claims: Sequence[ResourceClaim], requests: Sequence[ClaimRequests], search: Search) -> Grant:
        """Return what was found.

        Raises:
            AllocationError: it cannot be written down, which ends the attempt here already.
        """
        chosen = tuple(
            {r: search.chosen.get((c, r), choices[0]) for r, choices in enumerate(each.requests)}
            for c, each in enumerate(requests)
        )
        choices = [
            each.requests[r].index(request)
            for each, by_request in zip(requests, chosen, strict=True)
            for r, request in by_request.items()
            if request.is_choice
        ]
        grant = Grant(self.index, search.picks, chosen, choices)
        grant.allocations(claims, search.node)
        for request in chain.from_iterable(by_request.values() for by_request in chosen):
            request.forget()
        return grant
