"""What nodes cost and what pods ask for over virtual time, beside the least that any packing could do with."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from bayplan.cache.packing import fewest_for_sizes
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.cache.resources import CPU
from bayplan.replay.outcome import Moment
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


MOMENTS: Final = 288
"""How many moments of a replay are kept; every five minutes of a day."""


class Meter:
    """Integrals over the seconds from 0 to the end; every change is told with its time, which never goes back."""

    def __init__(self, pools: Pools, end: float) -> None:
        self._end = end
        self._bound = LowerBound(pools)
        self._asked = pools.asked
        self._now = 0.0
        self._nodes = 0
        self._milli_cpu = 0
        self._asked_milli = 0
        self.node_seconds = 0.0
        self.paid = 0.0
        """In milli-CPU seconds, as the two below."""
        self.asked = 0.0
        self.bound_cpu = 0.0
        self.bound_node_seconds = 0.0
        self.most_nodes = 0
        self.moments: list[Moment] = []

    def advance(self, now: float) -> None:
        """Let time pass; at most to the end."""
        now = min(now, self._end)
        while (at := self._end * len(self.moments) / MOMENTS) < now:
            self.moments.append(Moment(at, self._nodes, self._bound.total.nodes))
        passed = now - self._now
        self._now = now
        self.node_seconds += passed * self._nodes
        self.paid += passed * self._milli_cpu
        self.asked += passed * self._asked_milli
        self.bound_node_seconds += passed * self._bound.total.nodes
        self.bound_cpu += passed * self._bound.total.milli_cpu
        self.most_nodes = max(self.most_nodes, self._nodes)

    def node(self, milli_cpu: int, count: int) -> None:
        """Count so many more nodes, or fewer."""
        self._nodes += count
        self._milli_cpu += count * milli_cpu

    def pod(self, template: str, count: int) -> None:
        """Count so many more pods on nodes, or fewer."""
        self._asked_milli += count * self._asked[template].get(CPU, 0)
        self._bound.change(template, count)
