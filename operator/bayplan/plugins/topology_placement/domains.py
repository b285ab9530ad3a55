"""The values of a topology key as sets of nodes: how many members of a group each has room for, and what that takes."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import Scores
from bayplan.plugins.node_resources.node_resources_fit import NodeResourcesFit

Room = NDArray[np.int64]
"""At most how many pods there is room for on each row, or in each domain, whatever else is placed meanwhile."""


class Shape(NamedTuple):
    """Members that are alike: one of them, how many there are, and the room for such pods, `(capacity,) int64`."""

    pod: PodInfo
    members: int
    room: Room


class PlacementDomains:
    """The nodes divided by `ids`, `(capacity,) ints`; 0 is no domain. Made for one round, and not kept up to date."""

    def __init__(
        self, nodes: NodeTable, ids: NDArray[np.int32], shapes: Sequence[Shape], fit: NodeResourcesFit | None
    ) -> None:
        self._nodes = nodes
        self._ids = ids
        self._size = int(ids.max(initial=0)) + 1
        self._shapes = shapes
        self._fit = fit
        self._held = [np.minimum(self._sums(np.minimum(each.room, each.members)), each.members) for each in shapes]
        self._main = max(shapes, key=lambda shape: shape.members)
        self._wanted = sum(each.members for each in shapes)
        self.room: Room = np.sum(self._held, axis=0)
        """At most how many of the members each domain takes, `(domains,) int64`."""

    @property
    def there(self) -> NDArray[np.intp]:
        """The domains that have a node."""
        found: NDArray[np.intp] = np.flatnonzero(np.bincount(self._ids[self._nodes.rows()], minlength=1))
        return found[found > 0]

    def rows(self, *domains: int) -> Rows:
        """The nodes of these domains, in growing order."""
        return np.flatnonzero(np.isin(self._ids, domains))

    @cached_property
    def scores(self) -> Scores:
        """What NodeResourcesFit gives each domain with as many members as it has room for, `(domains,) int64`."""
        return self._scores(self._held)

    def score_now(self, domain: int) -> int:
        """What NodeResourcesFit gives a domain with what is on it now."""
        return self._scores([np.zeros_like(self.room)] * len(self._shapes)).item(domain)

    def by_fewest_nodes(self, domains: NDArray[np.intp]) -> NDArray[np.intp]:
        """These domains in order: with room for all members, by how few nodes do, by how little room is left."""
        room, ids = self._main.room, self._ids
        order = np.lexsort((-room, ids))
        sizes = room[order]
        before = np.cumsum(sizes) - sizes
        # Of its own domain: what came before the first of it does not count.
        before -= before[np.searchsorted(ids[order], ids[order])]
        needed = np.bincount(ids[order][(before < self._wanted) & (sizes > 0)], minlength=self._size)
        keys = (self._sums(room), needed, -self.room)
        return domains[np.lexsort(tuple(each[domains] for each in keys))]

    def fewest_rows(self, *domains: int) -> Rows:
        """The fewest nodes of these domains on which all members may have room, as if all were like most of them."""
        rows = self.rows(*domains) if domains else self._nodes.rows()
        return np.sort(rows[_fewest(self._main.room[rows], self._wanted)])

    def fewest(self, domains: NDArray[np.intp]) -> list[int]:
        """The fewest of these domains in which all members may have room together."""
        chosen: list[int] = domains[_fewest(self.room[domains], self._wanted)].tolist()
        return chosen

    def _scores(self, counts: Sequence[Room]) -> Scores:
        if self._fit is None:
            return np.zeros(self._size, dtype=np.int64)
        pods = [(each.pod, count) for each, count in zip(self._shapes, counts, strict=True)]
        return self._fit.placement_score(self._nodes, self._ids, pods)

    def _sums(self, room: Room) -> Room:
        """The room of each domain; exact, as no node takes more than some thousands of pods."""
        return np.bincount(self._ids, room, self._size).astype(np.int64)


def _fewest(room: Room, wanted: int) -> NDArray[np.intp]:
    """Return the fewest places that have so much room together: the largest, and last the smallest that is enough.

    Where all together have too little, they are all that have some.
    """
    order = np.argsort(-room, kind="stable")
    largest = room[order]
    together = np.cumsum(largest)
    full = int(np.searchsorted(together, wanted))
    if full == len(order):
        return order[largest > 0]
    rest = wanted - (together.item(full - 1) if full else 0)
    return np.append(order[:full], order[np.flatnonzero(largest >= rest)[-1]])
