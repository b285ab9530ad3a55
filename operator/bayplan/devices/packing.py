"""Which device leaves least behind, and how much of a node's devices is taken: what packing goes by.

kube-scheduler has nothing of the kind: it takes the first devices that fit, and all nodes are alike to it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from bayplan.devices.allocated_state import AllocatedState, amount_of
from bayplan.devices.candidates import Pick, Slot
from bayplan.devices.offers import CounterName, Offer
from bayplan.devices.pools import Pool
from bayplan.devices.requests import Request

_Unit = tuple[int, str] | tuple[int, int, int]
"""A counter set of a pool, or a device that consumes no counters: pool, slice and device by their numbers."""
WHOLE: Final = 10**6
"""Shares are in millionths."""


class LeastLeftOver:
    """Orders the devices that a request can have, so that those that stay free are of most use; searches rely on it.

    What takes least comes first: the smallest capacity, or share of one, then the smallest partition. Of those the
    first is what blocks least of the partitions beside it, so one of a device that is broken already, then what leaves
    least of its device. What is free is what was before the attempt. `slots` are all devices of the node.
    """

    def __init__(self, slots: Iterable[Slot], allocated: AllocatedState) -> None:
        self._allocated = allocated
        self._beside: dict[tuple[int, str], list[Slot]] = defaultdict(list)
        for slot in slots:
            for name in () if slot.held else _sets(slot.offer):
                self._beside[slot.place[0], name].append(slot)
        self._costs: dict[tuple[int, int, int], tuple[int, int, int]] = {}

    def order(self, request: Request, slots: Sequence[Slot]) -> list[Slot]:
        """Return the slots in the order in which they are tried; those that are alike keep theirs."""
        sizes = [_size(request, slot) for slot in slots]
        largest: Counter[str] = Counter()
        for size in sizes:
            largest |= size
        keys = [
            (
                sum(size[name] * WHOLE // most for name, most in largest.items()),
                *self._cost(slot),
                _left(request, slot),
            )
            for slot, size in zip(slots, sizes, strict=True)
        ]
        return [slots[place] for place in sorted(range(len(slots)), key=keys.__getitem__)]

    def _cost(self, slot: Slot) -> tuple[int, int, int]:
        """Return what the slot takes of its pool's counters, what it blocks there, and what it leaves."""
        if not slot.offer.consumes or slot.shared:
            return 0, 0, 0
        known = self._costs.get(slot.place)
        if known is None:
            totals, before = slot.pool.counters, slot.pool.available(self._allocated)
            after = before | {name: before[name] - amount for name, amount in slot.offer.consumes}
            beside = {each.place: each for name in _sets(slot.offer) for each in self._beside[slot.place[0], name]}
            blocked = sum(
                _counted(each.offer.consumes, totals)
                for place, each in beside.items()
                if place != slot.place and _fits(each.offer, before) and not _fits(each.offer, after)
            )
            left = _counted(((name, after[name]) for name in totals if name[0] in _sets(slot.offer)), totals)
            known = self._costs[slot.place] = _counted(slot.offer.consumes, totals), blocked, left
        return known


def utilization(pools: Sequence[Pool], picks: Iterable[Pick], allocated: AllocatedState) -> int:
    """Return how many per cent of what the picks' pools offer is taken with them, 0..100; scores rely on it.

    Devices count alike, a counter set as one. One that is taken in part counts in part. `pools` are those of a node
    that is alike to the one of the picks, in the same order.
    """
    mine = [pick for pick in picks if not pick.request.admin]
    taken: Counter[_Unit] = Counter()
    for number in {pick.slot.place[0] for pick in mine}:
        taken.update(_taken(pools[number], number, allocated))
    for pick in mine:
        taken.update(_takes(pick))
    return sum(min(each, WHOLE) for each in taken.values()) * 100 // (WHOLE * max(len(taken), 1))


def left_in_part(pool: Pool, allocated: AllocatedState) -> int:
    """Return what is left of the pool's devices that are taken in part, in millionths of a device; metrics tell of it.

    A counter set counts as one device, and is taken as far as its counters are.
    """
    if not allocated.usage(pool.id):
        return 0
    return sum(WHOLE - share for share in _taken(pool, 0, allocated).values() if 0 < share < WHOLE)


def _taken(pool: Pool, number: int, allocated: AllocatedState) -> dict[_Unit, int]:
    """Return how much is taken of each unit of the pool."""
    usage, left = allocated.usage(pool.id), pool.available(allocated)
    taken: dict[_Unit, int] = {(number, name): 0 for name, _ in pool.counters}
    for name, total in pool.counters.items():
        taken[number, name[0]] += _of_set(pool, name, total - left[name])
    for piece, each in enumerate(pool.slices):
        for place, device in enumerate(each.devices):
            if not device.consumes_counters:
                used = usage.get(device.name)
                share = 0 if used is None else WHOLE if used.holders else _of_shared(each.offer(place), used.consumed)
                taken[number, piece, place] = share
    return taken


def _takes(pick: Pick) -> dict[_Unit, int]:
    slot, offer = pick.slot, pick.slot.offer
    if not offer.consumes:
        amounts = {name: amount for name, (amount, _) in pick.want.amounts.items()}
        return {slot.place: _of_shared(offer, amounts) if offer.multiple else WHOLE}
    taken: Counter[_Unit] = Counter()
    for name, amount in () if slot.shared else offer.consumes:
        taken[slot.place[0], name[0]] += _of_set(slot.pool, name, amount)
    return taken


def _of_set(pool: Pool, name: CounterName, amount: int) -> int:
    """Return the share of its counter set that so much of one counter is."""
    return amount * WHOLE // max(pool.counters[name], 1) // sum(name[0] == other for other, _ in pool.counters)


def _of_shared(offer: Offer, amounts: Mapping[str, int]) -> int:
    """Return the share of a device that these amounts of its capacities are; all of it where it has none."""
    values = {name: amount_of(each.value) for name, each in offer.capacity.items()}
    parts = [amounts.get(name, 0) * WHOLE // value for name, value in values.items() if value > 0]
    return sum(parts) // len(parts) if parts else WHOLE


def _size(request: Request, slot: Slot) -> Counter[str]:
    """Return how much of each capacity nobody else can have then."""
    want = request.want(slot.offer, slot.kind).amounts
    return Counter({name: amount if slot.offer.multiple else value for name, (amount, value) in want.items()})


def _left(request: Request, slot: Slot) -> int:
    """Return the share of a device for several that is left."""
    if not slot.offer.multiple:
        return 0
    want = request.want(slot.offer, slot.kind).amounts
    return WHOLE - _of_shared(slot.offer, {name: slot.used.get(name, 0) + amount for name, (amount, _) in want.items()})


def _sets(offer: Offer) -> set[str]:
    return {name for (name, _), _ in offer.consumes}


def _counted(amounts: Iterable[tuple[CounterName, int]], totals: Mapping[CounterName, int]) -> int:
    return sum(amount * WHOLE // max(totals[name], 1) for name, amount in amounts)


def _fits(offer: Offer, left: Mapping[CounterName, int]) -> bool:
    return all(left[name] >= amount for name, amount in offer.consumes)
