"""TopologyPlacementGenerator: on which sets of nodes a pod group is tried, and in which order.

The sets are values of a topology key: how many members of the group each has room for, and what that takes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.bayplan_args import PlacementChoice, TopologyPlacementGeneratorArgs, WhenUnsatisfiable
from bayplan.framework.interface import MAX_NODE_SCORE, Scores
from bayplan.framework.status import Traits
from bayplan.groups.pod_groups import PodGroup
from bayplan.plugins.node_resources.node_resources_fit import NodeResourcesFit

_MOST_GUESSES: Final = 64
"""So many sets are tried for a group that may stand anywhere: rules other than of room may keep it out of thousands."""
_CANNOT: Final = "cannot determine domain for already scheduled pods"


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


class PlacementError(Exception):
    """The members that run stand where the group cannot be completed; the text is kube-scheduler's."""


class NodePlacement(NamedTuple):
    """A set of nodes to try a group on: `rows` in growing order, or None for all nodes.

    Without a `domain`, one that holds the group is taken at once. With one it is held against the others, and scores
    no more than `points`. Nobody is told why one that is only a `guess` does not hold the group.
    """

    rows: Rows | None
    guess: bool = False
    domain: int = 0
    points: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Placements:
    """The sets of nodes for one round of a group; the round relies on it to try no set in vain that it can tell.

    `each` has those that may have enough room, best first, and at least one. `number` is how many values of the key
    there are, which the group is told of if it `is_told`. `most` is how many of the group the best value runs.
    """

    each: Iterator[NodePlacement]
    number: int
    is_told: bool
    most: int
    domains: PlacementDomains

    def points(self, placement: NodePlacement, pods: int) -> int:
        """What a set of nodes scores as it is now, with so many of the group running."""
        return self.domains.score_now(placement.domain) + MAX_NODE_SCORE * pods // self.most


class TopologyPlacementGenerator:
    """Divides the nodes by the label that a group names, or else the profile (upstream: plugins/topologyaware).

    Values of the label in which the group has no room, whatever happens in its round, are left out: kube-scheduler
    tries them in vain. The others come in the order of what they may score by MostAllocated and by how many members
    they hold (upstream: noderesources/fit.go ScorePlacement, plugins/podgrouppodscount). With `FewestNodes` they come
    in the order of how few nodes do, and these few are tried first.
    """

    name: ClassVar[str] = "TopologyPlacementGenerator"
    traits: ClassVar[Traits] = Traits()

    def __init__(
        self, args: TopologyPlacementGeneratorArgs, nodes: NodeTable, index: NodeIndex, *, is_told: bool
    ) -> None:
        self._args = args
        self._nodes = nodes
        self._labels = index.labels
        self._is_told = is_told

    def generate(
        self,
        group: PodGroup,
        shapes: Sequence[Shape],
        placed: Sequence[tuple[PodInfo, str]],
        fit: NodeResourcesFit | None,
    ) -> Placements | None:
        """The placements for the waiting members of these shapes; None where there is none.

        `placed` are the members that run, with their nodes: theirs is the only value where all must stand in one.

        Raises:
            PlacementError: they are in several values, or in none.
        """
        key = group.topology_key or self._args.topology_key
        must = bool(group.topology_key) or self._args.when_unsatisfiable is WhenUnsatisfiable.DO_NOT_SCHEDULE
        must &= bool(key)
        ids = self._labels.column(key).ids if key else self._nodes.exists.astype(np.int32)
        domains = PlacementDomains(self._nodes, ids, shapes, fit)
        values = domains.there
        if key and placed:
            standing = self._standing(key, placed, must=must)
            values = np.intersect1d(values, standing) if standing or must else values
        if must and not len(values):
            return None
        pods = len(placed) + domains.room
        most = max(int(pods[values].max(initial=0)), 1)
        enough = values[pods[values] >= group.least]
        if must and not len(enough):
            # Somebody has to be told what it lacks there.
            enough = values[[domains.room[values].argmax()]]
        if self._args.choice is PlacementChoice.FEWEST_NODES:
            each = self._fewest_nodes(domains, enough, has_key=bool(key))
        else:
            each = self._scored(domains, enough, MAX_NODE_SCORE * pods // most) if key else iter(())
        if not must:
            each = self._anywhere(each, domains, values, has_key=bool(key))
        return Placements(each, len(values), must or self._is_told, most, domains)

    def _scored(
        self, domains: PlacementDomains, values: NDArray[np.intp], points: NDArray[np.int64]
    ) -> Iterator[NodePlacement]:
        points = points + domains.scores
        for value in values[np.argsort(-points[values], kind="stable")].tolist():
            yield NodePlacement(domains.rows(value), domain=value, points=points.item(value))

    def _fewest_nodes(
        self, domains: PlacementDomains, values: NDArray[np.intp], *, has_key: bool
    ) -> Iterator[NodePlacement]:
        for value in domains.by_fewest_nodes(values).tolist():
            few, rows = domains.fewest_rows(value), domains.rows(value)
            if len(few) < len(rows):
                yield NodePlacement(few, guess=True)
            if has_key:
                yield NodePlacement(rows)

    def _anywhere(
        self, each: Iterator[NodePlacement], domains: PlacementDomains, values: NDArray[np.intp], *, has_key: bool
    ) -> Iterator[NodePlacement]:
        """One value if it can be, else the fewest, else all nodes, on which alone it is told what is lacking."""
        for placement in islice(each, _MOST_GUESSES):
            yield placement._replace(guess=True)
        if has_key:
            chosen = domains.fewest(values)
            if self._args.choice is PlacementChoice.FEWEST_NODES:
                yield NodePlacement(domains.fewest_rows(*chosen), guess=True)
            yield NodePlacement(domains.rows(*chosen), guess=True)
        yield NodePlacement(None)

    def _standing(self, key: str, placed: Sequence[tuple[PodInfo, str]], *, must: bool) -> list[int]:
        """The values in which members run; of those that must stand together there is one."""
        column = self._labels.column(key)
        found: dict[int, None] = {}
        for pod, node_name in placed:
            row = self._nodes.row(node_name)
            value = 0 if row is None else column.ids.item(row)
            if value:
                found[value] = None
            if must and row is None:
                text = f'getting node for pod {pod.key}: nodeinfo not found for node name "{node_name}"'
                raise PlacementError(f"{_CANNOT}: {text}")
            if must and not value:
                raise PlacementError(f"{_CANNOT}: no topology domain found for pod {pod.key}")
            if must and len(found) > 1:
                shown = ", ".join(str(column.values[each]) for each in found)
                raise PlacementError(f"{_CANNOT}: more than 1 domain found for pod group: {shown}")
        return list(found)
