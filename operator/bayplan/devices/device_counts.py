"""Counts how many devices of a node each request could have, and which selector refuses the others."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from bayplan.api.meta_objects import key_of
from bayplan.devices.candidates import Candidates, Slot
from bayplan.devices.requests import ClaimRequests, Request
from bayplan.devices.search import Search


class DeviceCount(msgspec.Struct, frozen=True, rename="camel"):
    """The devices of one node as a request finds them, by itself; explanations are made of it.

    Attributes:
        claim: Namespace and name.
        offered: Those for the node, of whatever class.
        selected: Of these, those that all selectors of the class and of the request take.
        free: Of these, those that the request could have now: without taints, in no use, with capacity and counters.
        refused_by: The selector that refuses most of the others; empty where none does.
        unusable_pool: A pool of the node, of any driver, that nothing is taken from; empty where there is none.
        pool_state: Why that is: it is being updated, or invalid.
    """

    claim: str
    request: str
    device_class: str
    asked: int
    offered: int
    selected: int
    free: int
    refused_by: str
    unusable_pool: str
    pool_state: str


def count_devices(search: Search, claims: Sequence[ClaimRequests]) -> list[DeviceCount]:
    """Count for each request of prepared `claims`; of alternatives, for the one that lacks fewest devices.

    Raises:
        AllocationError: A selector or a capacity failed.
        SearchTimeoutError: There was not enough time.
    """
    slots = []
    for slot in search.slots():
        search.look()
        if search.is_for_node(slot):
            slots.append(slot)
    return [
        min(
            (_count(search, slots, claim, request) for request in alternatives), key=lambda each: each.asked - each.free
        )
        for claim in claims
        for alternatives in claim.requests
    ]


def _count(search: Search, slots: Sequence[Slot], claim: ClaimRequests, request: Request) -> DeviceCount:
    refusals = Counter(expression for slot in slots if (expression := _refused_by(search, request, slot)))
    candidates = Candidates(search, request)
    unusable = next((("/".join(pool.id), pool.state) for pool in search.pools if pool.state), ("", ""))
    return DeviceCount(
        key_of(claim.claim.metadata),
        request.names[1],
        request.wire.device_class_name,
        request.count,
        len(slots),
        len(slots) - refusals.total(),
        sum(request.admin or not slot.held for slot in candidates.slots()),
        refusals.most_common(1)[0][0] if refusals else "",
        *unusable,
    )


def _refused_by(search: Search, request: Request, slot: Slot) -> str:
    search.look()
    return request.refused_by(slot.offer, slot.kind, search.check_time)
