"""What is known of one pod's claims within a cycle, what nodes can give them, and what these are short of."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from bayplan.api.claim_objects import AllocationResult, ResourceClaim
from bayplan.api.objects import Node
from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.devices.allocator import Grant
from bayplan.devices.device_counts import DeviceCount
from bayplan.devices.results import Refusal
from bayplan.framework.causes import Cause, Detail, DeviceShortage
from bayplan.plugins.dynamic_resources.extended_claim import ExtendedClaim, Places, SpecialClaim

T = TypeVar("T")
Answer = Grant | Refusal
"""What a node can give the claims that have no devices yet, or why it cannot."""
MOST_ALTERNATIVES: Final = 8
"""So many alternatives a request can have (upstream: api/resource/v1 FirstAvailableDeviceRequestMaxSize)."""


class Found(NamedTuple):
    """What the filter found on rows in growing order, and on which of them a claim that has devices is not available.

    There is no answer where nothing was to be allocated.
    """

    rows: Rows
    answers: Sequence[Answer | None]
    unavailable: NDArray[np.bool_]

    def at(self, rows: Rows) -> "Found":
        """Return what was found on these rows: nothing on those that the filter was not asked about."""
        places = np.searchsorted(self.rows, rows)
        places[np.append(self.rows, -1)[places] != rows] = len(self.rows)
        answers = [*self.answers, None]
        return Found(rows, [answers[each] for each in places.tolist()], np.append(self.unavailable, False)[places])


_NOTHING: Final = Found(np.empty(0, dtype=np.intp), (), np.empty(0, dtype=np.bool_))


@dataclass(slots=True)
class PodClaims:
    """What is known of one pod's claims within a cycle: all, those to allocate, and those that have devices."""

    claims: list[ResourceClaim]
    to_allocate: list[ResourceClaim] = field(default_factory=list)
    pending: dict[str, AllocationResult] = field(default_factory=dict)
    """What another pod of the group got for a claim and is yet to write, by the UID of the claim."""
    unavailable: Sequence[tuple[ResourceClaim, Rows]] = ()
    """Claims that have devices some node cannot use, and the rows of those nodes."""
    extended: ExtendedClaim | None = None
    """What stands for the pod's extended resources that a DeviceClass provides."""
    found: Found = _NOTHING
    """What the filter found on the rows that it was asked about last."""

    def parts(self, nodes: NodeTable, rows: Rows) -> Iterator[tuple[Places, SpecialClaim | Refusal | None]]:
        """Divide the rows by what is asked of devices there besides `to_allocate`."""
        return iter([(np.arange(len(rows)), None)]) if self.extended is None else self.extended.parts(nodes, rows)

    def wanted(self, special: SpecialClaim | None) -> list[ResourceClaim]:
        """Return all claims that are to be allocated."""
        return self.to_allocate if special is None else [*self.to_allocate, special.claim]

    def allocation(self, claim: ResourceClaim) -> AllocationResult | None:
        """Return what the claim has, or is about to have."""
        return claim.status.allocation or self.pending.get(claim.metadata.uid)

    def ask(
        self, nodes: NodeTable, rows: Rows, ask: Callable[[Sequence[ResourceClaim], Sequence[Node]], Sequence[T]]
    ) -> list[T | Refusal | None]:
        """Return for each row what `ask` says of the claims to allocate there; None where there are none."""
        answers: list[T | Refusal | None] = [None] * len(rows)
        for places, special in self.parts(nodes, rows):
            if isinstance(special, Refusal):
                given: Sequence[T | Refusal] = [special] * len(places)
            elif wanted := self.wanted(special):
                there = [node for row in rows[places].tolist() if (node := nodes.nodes[row]) is not None]
                given = ask(wanted, there)
            else:
                continue
            for place, answer in zip(places.tolist(), given, strict=True):
                answers[place] = answer
        return answers


def has_alternatives(claim: ResourceClaim) -> bool:
    """Return whether a request of the claim has alternatives."""
    return any(each.first_available for each in claim.spec.devices.requests or ())


def score(claim: ResourceClaim, allocation: AllocationResult) -> int:
    """Return the more, the earlier the alternatives are that the claim's requests got."""
    given = {each.request for each in allocation.devices.results or ()}
    return sum(
        MOST_ALTERNATIVES - number
        for request in claim.spec.devices.requests or ()
        for number, each in enumerate(request.first_available or ())
        if f"{request.name}/{each.name}" in given
    )


def shortages(counts: Sequence[Sequence[DeviceCount]], names: Sequence[str]) -> Iterator[Detail]:
    """Give a detail for each request that finds too few on some node, and more where those have no devices at all.

    `counts` are those of each node in `names`, request by request; a node without an answer has none.
    """
    requests = max((len(each) for each in counts), default=0)
    for request in range(requests):
        found = [each[request] if each else None for each in counts]
        groups = [None if each is None or each.free >= each.asked else _what_there_is(each) for each in found]
        for group in sorted({each for each in groups if each is not None}, reverse=True):
            yield _detail(found, names, np.array([each == group for each in groups]))


def _what_there_is(count: DeviceCount) -> tuple[bool, str]:
    """Whether there are any devices, and the state of a pool that nothing is taken from."""
    return count.offered > 0, count.pool_state


def _detail(found: Sequence[DeviceCount | None], names: Sequence[str], holds: NDArray[np.bool_]) -> Detail:
    def tell(places: NDArray[np.intp]) -> Cause:
        here = [(each, names[place]) for place in places.tolist() if (each := found[place]) is not None]
        most, node = max(here, key=lambda each: (each[0].free, each[0].selected))
        return DeviceShortage(**asdict(most), node=node)

    return Detail(holds, tell)
