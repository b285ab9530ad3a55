"""TopologyPlacementGenerator: on which sets of nodes a pod group is tried, and in which order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.bayplan_args import PlacementChoice, TopologyPlacementGeneratorArgs, WhenUnsatisfiable
from bayplan.framework.interface import MAX_NODE_SCORE
from bayplan.framework.status import Traits
from bayplan.groups.pod_group import PodGroup
from bayplan.plugins.node_resources.node_resources_fit import NodeResourcesFit
from bayplan.plugins.topology_placement.domains import PlacementDomains, Shape

_MOST_GUESSES: Final = 64
"""So many sets are tried for a group that may stand anywhere: rules other than of room may keep it out of thousands."""
_CANNOT: Final = "cannot determine domain for already scheduled pods"


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
