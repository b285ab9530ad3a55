"""Adds up what nodes cost and what pods ask for over virtual time."""

from typing import Final

from bayplan.cache.resources import CPU
from bayplan.replay.bound import LowerBound
from bayplan.replay.outcome import Moment
from bayplan.replay.pools import Pools

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
