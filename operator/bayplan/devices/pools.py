"""Pools of devices as one node sees them: complete, incomplete or invalid, in the order in which they are searched.

Source: D/structured/internal/incubating/pools_incubating.go, GatherPools.
"""

import itertools
from bisect import bisect_left
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from bayplan.api.quantity import QuantityError, exact_nano
from bayplan.devices.allocated_state import AllocatedState, PoolId, Usage, amount_of
from bayplan.devices.offers import CounterName, Kinds, Offer, Reads, SliceOffers, consumed_by

UPDATING_STATE: Final = "being updated"
INVALID_STATE: Final = "invalid"


class Pool:
    """One pool as a node sees it.

    Attributes:
        state: why nothing is allocated from it, so that a request for all devices fails; "" if something is.
        slices: those with devices for the node, by name; `others` are those with devices for other nodes alone.
        counters: what the devices share, in billionths.
        order: pools are searched by it.
        own: all of it is for one node, so that pools of other nodes may be alike.
        negative: a device consumes less than nothing, so that taking one can make room for another.
    """

    __slots__ = (
        *("_available", "_kind", "_places", "counters", "id", "negative", "order", "others", "own", "slices"),
        "state",
    )

    def __init__(
        self, pool: PoolId, relevant: Sequence[SliceOffers], whole: Iterable[SliceOffers] = (), *, state: str = ""
    ) -> None:
        """Take the slices of a generation that are `relevant` for the node, if a `state` does not forbid it.

        Where these are not all of them, `whole` has all.
        """
        relevant = sorted(relevant, key=lambda each: each.name.encode())
        names = {each.name for each in relevant}
        others = [each for each in whole if each.name not in names]
        self.id = pool
        self.negative = False
        self.counters: dict[CounterName, int] = {}
        self.slices = [each for each in relevant if not each.spec.shared_counters]
        self.others = [each for each in others if not each.spec.shared_counters]
        self.state = state or ("" if self._is_valid([*relevant, *others]) else INVALID_STATE)
        if self.state:
            self.slices, self.others = [], []
        self.own = not self.others and all(each.spec.node_name for each in relevant)
        # Pools with binding conditions are searched last, otherwise names decide.
        self.order = any(each.binds for each in self.slices), pool[0].encode(), pool[1].encode()
        self._available: tuple[int, dict[CounterName, int]] | None = None
        self._kind: tuple[int, Reads, int] | None = None
        self._places: dict[str, int] | None = None

    def available(self, allocated: AllocatedState) -> dict[CounterName, int]:
        """The counters less what all devices of the pool consume that somebody has; it may be negative."""
        version = allocated.version(self.id)
        if self._available is None or self._available[0] != version:
            self._available = version, self._left(allocated.usage(self.id))
        return self._available[1]

    def is_overdrawn(self, name: str, usage: Mapping[str, Usage]) -> bool:
        """Whether more of a device is taken than it has, or than the counters allow that it consumes."""
        offer = next(self._offers({name}), None)
        if offer is None:
            return False
        capacity = {each: amount_of(offered.value) for each, offered in offer.capacity.items()}
        if any(amount > capacity.get(each, amount) for each, amount in usage[name].consumed.items()):
            return True
        left = self._left(usage)
        return any(left[each] < 0 for each, _ in offer.consumes)

    def _left(self, usage: Mapping[str, Usage]) -> dict[CounterName, int]:
        left = dict(self.counters)
        for offer in self._offers(usage) if usage else ():
            for name, amount in offer.consumes:
                left[name] -= amount
        return left

    def _offers(self, names: Container[str]) -> Iterator[Offer]:
        """Return the devices of these names, for whatever nodes they are."""
        for each in itertools.chain(self.slices, self.others):
            for index, device in enumerate(each.devices):
                if device.name in names:
                    yield each.offer(index)

    def kind(self, reads: Reads, kinds: Kinds, allocated: AllocatedState) -> int:
        """A number for what a search in it depends on; pools of two nodes with the same number answer alike."""
        version = allocated.version(self.id)
        if self._kind is None or self._kind[:2] != (version, reads):
            number = kinds.number(self._content(reads, kinds, allocated)) if self.own else kinds.fresh()
            self._kind = version, reads, number
        return self._kind[2]

    def _content(self, reads: Reads, kinds: Kinds, allocated: AllocatedState) -> Hashable:
        contents = tuple(each.kinds(reads, kinds) for each in self.slices)
        counters = tuple(sorted(self.counters.items()))
        return self.id[0], self.state, contents, counters, self._usage_key(allocated)

    def _usage_key(self, allocated: AllocatedState) -> Hashable:
        usage = allocated.usage(self.id)
        if not usage:
            return ()
        if self._places is None:
            self._places = {name: place for place, name in enumerate(self._names())}
        places = self._places
        return tuple(sorted((places[name], each.key) for name, each in usage.items() if name in places))

    def _is_valid(self, everything: Sequence[SliceOffers]) -> bool:
        """Take in the counters; each set and each device has to be there once, with what the devices consume."""
        sets = [counters for each in everything for counters in each.spec.shared_counters or ()]
        consuming = [each for each in itertools.chain(self.slices, self.others) if each.counts]
        try:
            for counters in sets:
                for name, counter in (counters.counters or {}).items():
                    self.counters[counters.name, name] = exact_nano(counter.value)
            consumed = {each for of in consuming for device in of.devices for each in consumed_by(device)}
        except QuantityError:
            return False
        self.negative = any(amount < 0 for _, amount in consumed)
        names = self._names()
        is_once = len({each.name for each in sets}) == len(sets) and len(set(names)) == len(names)
        return is_once and {name for name, _ in consumed} <= self.counters.keys()

    def _names(self) -> list[str]:
        return [device.name for each in self.slices for device in each.devices]


class PoolView:
    """The pools that nodes share which the same selectors match, in order."""

    __slots__ = ("_kind", "by_id", "pools")

    def __init__(self, by_id: dict[PoolId, tuple[list[SliceOffers], Pool | None]]) -> None:
        self.by_id = by_id
        found = (pool for _, pool in by_id.values() if pool is not None)
        self.pools = tuple(sorted(found, key=_order))
        self._kind: tuple[int, Reads, int] | None = None

    def kind(self, reads: Reads, kinds: Kinds, allocated: AllocatedState) -> int:
        """A number for what a search in them depends on."""
        if self._kind is None or self._kind[:2] != (allocated.latest, reads):
            content = tuple([pool.kind(reads, kinds, allocated) for pool in self.pools])
            self._kind = allocated.latest, reads, kinds.number(content)
        return self._kind[2]


class NodePools:
    """The pools with devices for a node, in the order in which they are searched: its own among shared ones.

    Where slices leave it to each device which nodes it is for, `chosen` is what that depends on.
    """

    __slots__ = ("_chosen", "_own", "_replaced", "_view", "pools")

    def __init__(self, view: PoolView, own: dict[PoolId, Pool | None], chosen: Hashable = ()) -> None:
        self._view = view
        self._chosen = chosen
        mine = [pool for pool in own.values() if pool is not None]
        self._own = [(pool, bisect_left(view.pools, pool.order, key=_order)) for pool in sorted(mine, key=_order)]
        self._replaced = tuple(place for place, pool in enumerate(view.pools) if pool.id in own) if own else ()
        self.pools = view.pools
        if own:
            kept = [pool for pool in view.pools if pool.id not in own] if self._replaced else view.pools
            self.pools = tuple(sorted((*kept, *mine), key=_order))

    def kind(self, reads: Reads, kinds: Kinds, allocated: AllocatedState) -> Hashable:
        """What a search in them depends on; nodes for which it is equal are answered alike."""
        own = [number for pool, place in self._own for number in (place, pool.kind(reads, kinds, allocated))]
        return self._view.kind(reads, kinds, allocated), self._replaced, tuple(own), self._chosen


def _order(pool: Pool) -> tuple[bool, bytes, bytes]:
    return pool.order
