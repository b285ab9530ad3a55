"""How few nodes, and cores, any packing of the pods that run at a moment could do with."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from bayplan.cache.packing import fewest_for_sizes
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.cache.resources import CPU
from bayplan.replay.pools import Pools

_KEPT: Final = 4096
"""How many bounds are kept for when the same pods run again."""


@dataclass(frozen=True, slots=True)
class Fewest:
    """A lower bound."""

    nodes: int = 0
    milli_cpu: int = 0


class LowerBound:
    """The lower bound for the pods that run now, kept as they come and go.

    Pools are bounded together if some pod may be on either of them, and otherwise each by itself: first by the number
    of nodes, as of the largest of those together, for the resource that needs most (`fewest_for_sizes`). A node's cores
    are then those of the smallest of them, and all together are no fewer than the pods ask for.
    """

    def __init__(self, pools: Pools) -> None:
        self._asked = pools.asked
        group_of = list(range(len(pools.pools)))
        for together in pools.of_template.values():
            joined = {group_of[index] for index in together}
            group_of = [min(joined) if each in joined else each for each in group_of]
        self._group_of = {name: group_of[indexes[0]] for name, indexes in pools.of_template.items() if indexes}
        self._rooms: dict[int, Counter[str]] = {}
        self._cheapest: dict[int, int] = {}
        for group, pool in zip(group_of, pools.pools, strict=True):
            self._rooms[group] = self._rooms.get(group, Counter()) | Counter(pool.room)
            self._cheapest[group] = min(pool.milli_cpu, self._cheapest.get(group, pool.milli_cpu))
        self._running: dict[int, Counter[str]] = {group: Counter() for group in self._rooms}
        self._fewest = dict.fromkeys(self._rooms, Fewest())
        self._known: RecentlyUsed[tuple[int, frozenset[tuple[str, int]]], Fewest] = RecentlyUsed(_KEPT)
        self.total = Fewest()
        """The bound for all pools."""

    def change(self, template: str, count: int) -> None:
        """Count so many more pods of a template as running, or fewer; each is on some node."""
        group = self._group_of[template]
        running = self._running[group]
        running[template] += count
        key = (group, frozenset(each for each in running.items() if each[1]))
        found = self._known.get(key)
        if found is None:
            found = self._known.put(key, self._bound(group, running))
        before, self._fewest[group] = self._fewest[group], found
        total = self.total
        self.total = Fewest(
            total.nodes + found.nodes - before.nodes, total.milli_cpu + found.milli_cpu - before.milli_cpu
        )

    def _bound(self, group: int, running: Counter[str]) -> Fewest:
        sizes: dict[str, Counter[int]] = {}
        for template, count in running.items():
            for name, amount in self._asked[template].items():
                sizes.setdefault(name, Counter())[amount] += count
        nodes = 0
        for name, counts in sizes.items():
            asked = sum(amount * count for amount, count in counts.items())
            # By first fit all but one node are more than half full, so that more are never needed.
            enough = 2 * asked // self._rooms[group][name] + 1
            nodes = max(nodes, fewest_for_sizes({self._rooms[group][name]: enough}, counts))
        asked_milli = sum(amount * count for amount, count in sizes.get(CPU, Counter()).items())
        return Fewest(nodes, max(nodes * self._cheapest[group], asked_milli))
