"""Which devices are taken, and how much of shared ones, by all claims at this moment."""

import itertools
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bayplan.api.claim_objects import AllocationResult
from bayplan.api.meta_objects import Quantity
from bayplan.api.quantity import QuantityError, exact_nano

_MAX_CHANGES: Final = 1024
PoolId = tuple[str, str]
"""A driver and the name of one of its pools."""


class Usage:
    """Who has one device: `holders` whole, `shares` in part, and what these consume of its capacities, in billionths.

    Two claims may hold one device: the API server does not refuse it.
    """

    __slots__ = ("consumed", "holders", "shares")

    def __init__(self) -> None:
        self.holders = 0
        self.shares = 0
        self.consumed: dict[str, int] = {}

    @property
    def key(self) -> tuple[object, ...]:
        """What searches depend on: equal keys are equal usages."""
        return self.holders > 0, self.shares > 0, tuple(sorted(self.consumed.items()))


NOT_USED: Final[Mapping[str, Usage]] = MappingProxyType({})


class AllocatedState:
    """Keeps what claims have allocated, event by event; every search for devices reads it.

    A claim counts once, by its UID: what is in flight, so decided and not yet seen, goes before what was observed. Of a
    device that nobody has any more nothing is kept: the memory is bounded by the results of the claims there are.
    Results with adminAccess take nothing. Source: dynamicresources/allocateddevices.go.
    """

    def __init__(self) -> None:
        self._observed: dict[str, AllocationResult] = {}
        self._in_flight: dict[str, AllocationResult] = {}
        self._pools: dict[PoolId, dict[str, Usage]] = {}
        self._versions: dict[PoolId, int] = {}
        self.latest = 0
        """It changes with the usage of any pool."""
        self._changes: deque[tuple[int, PoolId]] = deque(maxlen=_MAX_CHANGES)

    def observe(self, uid: str, allocation: AllocationResult | None) -> None:
        """Take the status of a claim as it was last seen; None when it has no allocation or is gone."""
        if self._observed.get(uid) is not allocation:
            self._change(self._observed, uid, allocation)

    def mark_in_flight(self, uid: str, allocation: AllocationResult) -> None:
        """Take it that the claim gets this allocation, until `clear_in_flight`."""
        self._change(self._in_flight, uid, allocation)

    def clear_in_flight(self, uid: str) -> None:
        """Go back to what was observed: the write was seen, or will not come."""
        self._change(self._in_flight, uid, None)

    def usage(self, pool: PoolId) -> Mapping[str, Usage]:
        """Return the devices of a pool that somebody has, by name."""
        return self._pools.get(pool, NOT_USED)

    def version(self, pool: PoolId) -> int:
        """Return a number that changes with the usage of the pool; 0 is a pool of which nothing is used."""
        return self._versions.get(pool, 0)

    def changed_since(self, latest: int) -> set[PoolId] | None:
        """Return the pools whose usage changed since `latest` was that; None where they were too many to remember."""
        if latest < self.latest and self._changes[0][0] > latest + 1:
            return None
        later = itertools.takewhile(lambda change: change[0] > latest, reversed(self._changes))
        return {pool for _, pool in later}

    @property
    def size(self) -> int:
        """How many devices and claims are kept."""
        return sum(map(len, self._pools.values())) + len(self._observed) + len(self._in_flight) + len(self._versions)

    def _change(self, where: dict[str, AllocationResult], uid: str, allocation: AllocationResult | None) -> None:
        before = self._in_flight.get(uid) or self._observed.get(uid)
        if allocation is None:
            where.pop(uid, None)
        else:
            where[uid] = allocation
        after = self._in_flight.get(uid) or self._observed.get(uid)
        if after is not before:
            self._count(before, -1)
            self._count(after, 1)

    def _count(self, allocation: AllocationResult | None, sign: int) -> None:
        for result in allocation.devices.results or () if allocation else ():
            if result.admin_access:
                continue
            pool = (result.driver, result.pool)
            devices = self._pools.setdefault(pool, {})
            usage = devices.setdefault(result.device, Usage())
            if result.share_id is None:
                usage.holders += sign
            else:
                usage.shares += sign
                for name, amount in (result.consumed_capacity or {}).items():
                    total = usage.consumed.get(name, 0) + sign * amount_of(amount)
                    if total:
                        usage.consumed[name] = total
                    else:
                        usage.consumed.pop(name, None)
            self.latest += 1
            self._versions[pool] = self.latest
            self._changes.append((self.latest, pool))
            if not usage.holders and not usage.shares:
                del devices[result.device]
                if not devices:
                    del self._pools[pool], self._versions[pool]


def amount_of(quantity: Quantity) -> int:
    """The amount of a capacity, or of a share of it, in billionths; one that cannot be read counts as none.

    Who has such a share still has one.
    """
    try:
        return exact_nano(quantity)
    except QuantityError:
        return 0
