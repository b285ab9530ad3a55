"""Allocates devices for the claims of a pod on many nodes at once; nodes that are alike share one search.

Pure: what is allocated already is an argument, and so is the clock. Nothing is written.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from bayplan.api.claim_objects import AllocationResult, ResourceClaim
from bayplan.api.device_objects import DeviceClass, DeviceTaintRule, ResourceSlice
from bayplan.api.objects import Node
from bayplan.devices.allocated_state import AllocatedState
from bayplan.devices.candidates import Pick
from bayplan.devices.device_counts import DeviceCount, count_devices
from bayplan.devices.offers import Kinds, Offer, Reads
from bayplan.devices.pools import Pool, PoolIndex
from bayplan.devices.requests import (
    AllocationError,
    ClaimRequests,
    CompileSelector,
    Request,
    Selector,
    reads_of,
)
from bayplan.devices.results import allocation_of
from bayplan.devices.search import Search, SearchTimeoutError

ATTEMPT_SECONDS: Final = 0.2
"""How long one attempt searches, over all nodes: the loop waits for it."""
_MAX_SELECTORS: Final = 4096
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the claims cannot be allocated on a node; `timed_out` when the search did not get that far."""

    text: str
    timed_out: bool = False


_NOT_ALL: Final = Refusal("cannot allocate all claims")
_INVALID: Final = Refusal("invalid resource pools were encountered")
_TIMED_OUT: Final = Refusal("timed out trying to allocate devices", timed_out=True)


@dataclass(frozen=True, slots=True)
class _Solution:
    """What one search found: the picks of each claim, and by request the alternative that was chosen."""

    claims: Sequence[ResourceClaim]
    picks: Sequence[Sequence[Pick]]
    chosen: tuple[Mapping[int, Request], ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """That a node has devices for all claims; which ones is written down when it is asked for."""

    node_name: str
    _pools: Sequence[Pool]
    _solution: _Solution

    def allocations(self) -> tuple[AllocationResult, ...]:
        """The allocation of each claim, in order, with new share IDs at each call and without a timestamp."""
        found = self._solution

        def here(pick: Pick) -> Offer:
            pool, piece, place = pick.slot.place
            return self._pools[pool].slices[piece].offer(place)

        return tuple(
            allocation_of(claim, [(pick, here(pick)) for pick in picks], chosen, self.node_name)
            for claim, picks, chosen in zip(found.claims, found.picks, found.chosen, strict=True)
        )

    def choices(self) -> list[int]:
        """For each request that has alternatives, over all claims: which one was chosen, from 0."""
        return [
            next(i for i, each in enumerate(wire.first_available) if each is request.wire)
            for claim, chosen in zip(self._solution.claims, self._solution.chosen, strict=True)
            for wire, request in zip(claim.spec.devices.requests or (), chosen.values(), strict=True)
            if wire.first_available
        ]


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
        compile_selector: CompileSelector,
        *,
        previous: "Allocator | None" = None,
    ) -> None:
        self.index: PoolIndex = PoolIndex(slices, taint_rules, previous.index if previous else None)
        self.kinds: Kinds = previous.kinds if previous else Kinds()
        self.selectors: dict[str, Selector] = previous.selectors if previous else {}
        self._classes = classes
        self._allocated = allocated
        self._compile_new = compile_selector

    def allocate(
        self, claims: Sequence[ResourceClaim], nodes: Sequence[Node], now: Callable[[], float]
    ) -> list[Grant | Refusal]:
        """Answer for each node, in order: that it has devices for all claims, or why not.

        `now` is a clock in seconds. When the attempt's time is over, nodes without an answer are refused for that.

        Raises:
            AllocationError: the claims, or what they name, make any answer impossible.
        """
        if self.index.selector_error and nodes:
            raise AllocationError(self.index.selector_error)
        reads = reads_of(claims, self._classes, self._compile)
        too_late: _Solution | Refusal = _TIMED_OUT
        found = self._by_kind(nodes, reads, now, partial(self._search, claims, reads), too_late)
        return [
            solution if isinstance(solution, Refusal) else Grant(node.metadata.name, pools, solution)
            for node, (pools, solution) in zip(nodes, found, strict=True)
        ]

    def count(
        self, claims: Sequence[ResourceClaim], nodes: Sequence[Node], now: Callable[[], float]
    ) -> list[Sequence[DeviceCount]]:
        """Count for each node, in order, the devices that each request could have; none for nodes without an answer."""
        reads = reads_of(claims, self._classes, self._compile)
        none: Sequence[DeviceCount] = ()
        return [counts for _, counts in self._by_kind(nodes, reads, now, partial(self._count, claims, reads), none)]

    def _by_kind(
        self, nodes: Sequence[Node], reads: Reads, now: Callable[[], float], ask: Callable[..., T], too_late: T
    ) -> Iterator[tuple[Sequence[Pool], T]]:
        """Give the pools of each node and what was answered on the first of its kind, as long as there is time."""
        end = now() + ATTEMPT_SECONDS
        answers: dict[Hashable, T] = {}
        for node in nodes:
            # Taking a node in takes its time, too, when it was not seen before.
            if now() >= end:
                yield (), too_late
                continue
            here = self.index.pools_of(node)
            key = here.kind(reads, self.kinds, self._allocated)
            if key not in answers:
                answers[key] = ask(node, here.pools, lambda: now() >= end)
            yield here.pools, answers[key]

    def _compile(self, expression: str) -> Selector:
        known = self.selectors.get(expression)
        if known is None:
            known = self._compile_new(expression)
            if len(self.selectors) >= _MAX_SELECTORS:
                self.selectors.clear()
            self.selectors[expression] = known
        return known

    def _count(
        self,
        claims: Sequence[ResourceClaim],
        reads: Reads,
        node: Node,
        pools: Sequence[Pool],
        is_over: Callable[[], bool],
    ) -> Sequence[DeviceCount]:
        search = Search(node, pools, self.index, self._allocated, (reads, self.kinds), is_over=is_over)
        requests = [ClaimRequests(claim) for claim in claims]
        try:
            for each in requests:
                each.prepare(self._classes, self._compile, search.list_all)
            return count_devices(search, requests)
        except (AllocationError, SearchTimeoutError):
            return ()

    def _search(
        self,
        claims: Sequence[ResourceClaim],
        reads: Reads,
        node: Node,
        pools: Sequence[Pool],
        is_over: Callable[[], bool],
    ) -> _Solution | Refusal:
        search = Search(node, pools, self.index, self._allocated, (reads, self.kinds), is_over=is_over)
        requests = [ClaimRequests(claim) for claim in claims]
        try:
            for each in requests:
                each.prepare(self._classes, self._compile, search.list_all)
            if not search.run(requests):
                return _INVALID if any(pool.invalid for pool in pools) else _NOT_ALL
        except SearchTimeoutError:
            return _TIMED_OUT
        chosen = tuple(
            {r: search.chosen.get((c, r), choices[0]) for r, choices in enumerate(each.requests)}
            for c, each in enumerate(requests)
        )
        solution = _Solution(claims, search.picks, chosen)
        # What cannot be written down ends the attempt here already.
        Grant(node.metadata.name, pools, solution).allocations()
        return solution
