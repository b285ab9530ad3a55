"""What is left of devices that are taken in part: packing leaves little of it."""

from collections import Counter

from bayplan.cache.listers import Listers
from bayplan.devices.allocated_state import PoolId
from bayplan.devices.packing import WHOLE, left_in_part
from bayplan.devices.pools import Pool
from bayplan.plugins.dynamic_resources.claim_cache import ClaimCache


class StrandedDevices:
    """Adds up by driver what is left of devices that are taken in part; metrics and simulations tell of it.

    A counter set counts as one device. Pools of which nothing changed are not looked at again; what is kept is bounded
    by the pools there are.
    """

    def __init__(self, listers: Listers) -> None:
        self._cache = listers.shared(ClaimCache)
        self._known: dict[PoolId, tuple[int, Pool, int]] = {}

    def by_driver(self) -> dict[str, float]:
        """Return it in devices; a driver of which nothing is taken in part has 0."""
        index, state = self._cache.allocator().index, self._cache.state
        known, left = self._known, Counter[str]()
        self._known = {}
        for pool in index.whole_pools():
            version, before = state.version(pool.id), known.get(pool.id)
            if before is None or before[:2] != (version, pool):
                before = version, pool, left_in_part(pool, state)
            self._known[pool.id] = before
            left[pool.id[0]] += before[2]
        return {driver: amount / WHOLE for driver, amount in sorted(left.items())}
