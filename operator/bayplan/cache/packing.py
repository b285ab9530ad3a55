"""How full and how well packed the cluster is, from the node table's columns, and how many nodes any packing needs."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import Column, NodeTable
from bayplan.cache.resources import CPU, MEMORY, PODS

MAX_THRESHOLDS: Final = 64
"""Most sizes at which small pods are told from large ones; with fewer the bound is lower, and still one."""

_Offered = Sequence[tuple[int, int]]
"""Capacities, the largest first, and how many nodes have each."""

_HALF = 32
_LOW = (1 << _HALF) - 1
TAKEN_BY_ALL: Final = (CPU, MEMORY, PODS)
"""The resources that nearly every pod takes: where one of them is full, the others are of no use."""


def fewest(capacities: Iterable[int], demand: int) -> int:
    """Return how many of these capacities, the largest first, cover the demand; all of them where all do not."""
    return _cover(sorted(Counter(capacities).items(), reverse=True), demand)


def fewest_for_sizes(capacities: Iterable[int] | Mapping[int, int], sizes: Mapping[int, int]) -> int:
    """Return a number of nodes that no packing of one resource can do with fewer of, as no pod can be split.

    It is the largest of three bounds. By the sum: the largest nodes that have as much as all pods ask for. By L2 of
    Martello and Toth (Knapsack Problems, 1990, section 8.3), here as the function of sizes that Fekete and Schepers
    gave for it (Mathematical Programming 91, 2001): for a threshold a up to half the largest node c, what asks for more
    than c - a fills a node, and what asks for less than a counts nothing; a smaller node holds what it has, or is
    filled by one pod that would fill the largest. By number: of the pods that ask for s or more, a node holds as many
    as s goes into what it has.

    Where all nodes do not cover what is asked for, all of them count. `sizes` has how many pods ask for each amount;
    `capacities` are those of all nodes, or how many nodes have each.
    """
    offered = sorted(Counter(capacities).items(), reverse=True)
    wanted = _Sizes({size: count for size, count in sizes.items() if size > 0})
    if not offered or not wanted.sizes:
        return 0
    largest = offered[0][0]
    found = _cover(offered, wanted.between(0, None))
    for size in wanted.thresholds(largest):
        found = max(found, _by_number(offered, wanted, size))
        if 2 * size <= largest:
            found = max(found, _by_filling(offered, wanted, 2 * size))
    return max(found, _by_filling(offered, wanted, largest))


class _Sizes:
    """The sizes in growing order, with running sums of how many there are and what they ask for together."""

    def __init__(self, counts: Mapping[int, int]) -> None:
        self.sizes = sorted(counts)
        self._counts = [0, *accumulate(counts[size] for size in self.sizes)]
        self._sums = [0, *accumulate(size * counts[size] for size in self.sizes)]

    def thresholds(self, largest: int) -> Sequence[int]:
        """The sizes that a node can hold, or as many of them as may be looked at, evenly spaced."""
        held = self.sizes[: bisect_right(self.sizes, largest)]
        step = -(-len(held) // MAX_THRESHOLDS) or 1
        # The largest is always among them.
        return held[::-1][::step]

    def between(self, first: int, last: int | None) -> int:
        """What the pods of these sizes ask for together, both ends included."""
        return self._sums[self._end(last)] - self._sums[bisect_left(self.sizes, first)]

    def count(self, first: int, last: int | None) -> int:
        """How many pods are of these sizes, both ends included."""
        return self._counts[self._end(last)] - self._counts[bisect_left(self.sizes, first)]

    def _end(self, last: int | None) -> int:
        return len(self.sizes) if last is None else bisect_right(self.sizes, last)


def _by_filling(offered: _Offered, wanted: _Sizes, twice: int) -> int:
    """The bound by L2, for the threshold of which `twice` is the double."""
    largest = offered[0][0]
    # What fills a node asks for more than c - a, and what counts asks for a or more; both in integers.
    fills = (2 * largest - twice) // 2 + 1
    counts = -(-twice // 2)
    demand = largest * wanted.count(fills, None) + wanted.between(counts, fills - 1)
    held = [
        (largest if capacity >= fills else capacity if capacity >= counts else 0, count) for capacity, count in offered
    ]
    return _cover(held, demand)


def _by_number(offered: _Offered, wanted: _Sizes, size: int) -> int:
    """The bound by how many of the pods that ask for `size` or more a node can hold; those that fit nowhere are not."""
    return _cover([(capacity // size, count) for capacity, count in offered], wanted.count(size, offered[0][0]))


def _cover(offered: _Offered, demand: int) -> int:
    """How many nodes it takes to cover the demand; all of them where all do not."""
    nodes = 0
    for capacity, count in offered:
        if demand <= 0:
            break
        needed = count if capacity <= 0 else min(count, -(-demand // capacity))
        nodes += needed
        demand -= max(capacity, 0) * needed
    return nodes


@dataclass(frozen=True, slots=True)
class AllocationSummary:
    """How full the cluster is, for the packing metrics.

    A node is in use when a pod runs there that could run elsewhere (`NodeTable.in_use`). Amounts are by resource
    name, in milli-CPU for cpu and in the resource's own unit (bytes, counts) for the rest; `requested` is the sum over
    all placed pods, `requested_in_use` over those on nodes in use.
    """

    nodes: int
    nodes_in_use: int
    requested: Mapping[str, int]
    requested_in_use: Mapping[str, int]
    allocatable_in_use: Mapping[str, int]
    allocatable: Mapping[str, int]


def allocation_summary(nodes: NodeTable) -> AllocationSummary:
    """What pods take of what existing nodes have, in total and over the nodes in use; metrics and reports show it."""
    in_use = nodes.in_use()
    taken = {**nodes.requested, PODS: nodes.pod_count}
    return AllocationSummary(
        nodes=len(nodes),
        nodes_in_use=int(np.count_nonzero(in_use)),
        requested={name: _sum(column[nodes.exists]) for name, column in taken.items()},
        requested_in_use={name: _sum(column[in_use]) for name, column in taken.items()},
        allocatable_in_use={name: _sum(column[in_use]) for name, column in nodes.allocatable.items()},
        allocatable={name: _sum(column[nodes.exists]) for name, column in nodes.allocatable.items()},
    )


def _sum(column: Column) -> int:
    """The exact sum: a few absurd amounts would wrap int64, their halves do not."""
    return (int((column >> _HALF).sum()) << _HALF) + int((column & _LOW).sum())


@dataclass(frozen=True, slots=True)
class Packing:
    """What can be said of the packing of a node table, each by a method, so that nobody waits for all of it.

    `resources` are those that are looked at, beside pods. Amounts are in milli-CPU for cpu and in the resource's own
    unit (bytes, counts) for the rest. Rules of pods are left out of account: all of it is by the sum of requests alone.
    Sums are exact up to 2**53.
    """

    nodes: NodeTable
    resources: Sequence[str]

    def stranded(self) -> dict[str, int]:
        """What is free of each resource on nodes where another one is full, cordoned nodes left out.

        Cpu, memory or pods are full on a node where less is free than the average of all pods on nodes requests; of
        pods that is one.
        """
        nodes, rows = self.nodes, self._open_rows()
        count = max(int(nodes.pod_count.sum()), 1)
        full: dict[str, NDArray[np.bool_]] = {}
        for name in TAKEN_BY_ALL:
            average = 1.0 if name == PODS else float(nodes.taken(name).sum(dtype=np.float64)) / count
            full[name] = self._free(name)[rows] < average
        found: dict[str, int] = {}
        for name in self.resources:
            others = [each for resource, each in full.items() if resource != name]
            stranded = self._free(name)[rows][np.logical_or.reduce(others)]
            found[name] = int(stranded.sum(dtype=np.float64))
        return found

    def largest(self) -> dict[str, int]:
        """The largest amount of each resource that is free on one node, which is not cordoned and takes another pod."""
        rows = self._open_rows()
        rows = rows[self._free(PODS)[rows] >= 1]
        return {name: int(self._free(name)[rows].max(initial=0)) for name in self.resources}

    def lower_bound(self) -> int:
        """The fewest nodes that have room for the pods that could run elsewhere, for the resource that needs most."""
        return max(map(self.fewest_for, (*self.resources, PODS)))

    def fewest_for(self, name: str) -> int:
        """The fewest nodes that have as much of a resource as pods take that could run elsewhere.

        Of each node what its other pods take is left out: it is taken there whatever runs beside it. Where a node has
        none of the resource, its pods have devices in its place.
        """
        rows = self.nodes.rows()
        offered = self.nodes.offered(name)
        room, taken = np.maximum(offered - self.staying(name), 0), np.where(offered > 0, self.movable(name), 0)
        return fewest(room[rows].tolist(), sum(taken[rows].tolist()))

    def emptiable(self) -> int:
        """How many nodes in use could be emptied into what is free on the others in use."""
        return len(self.emptiable_rows())

    def emptiable_rows(self) -> Rows:
        """Which nodes in use could be emptied into what is free on the others in use, the emptiest first.

        The nodes are taken in the order of how full they are of what they are fullest of, the emptiest first, and as
        many of them count as all the others together have room for. Pods that could run nowhere else may stay.
        """
        nodes = self.nodes
        rows = np.flatnonzero(nodes.in_use())
        shares = [nodes.taken(name)[rows] / np.maximum(nodes.offered(name)[rows], 1) for name in TAKEN_BY_ALL]
        rows = rows[np.argsort(np.max(shares, axis=0), kind="stable")]
        is_open = ~self._cordoned(rows)
        fits = np.ones(len(rows), dtype=np.bool_)
        for name in (*self.resources, PODS):
            moved = np.cumsum(self.movable(name)[rows], dtype=np.float64)
            free = np.cumsum((self._free(name)[rows] * is_open)[::-1], dtype=np.float64)[::-1]
            # What is free on those behind it, of which the last has none.
            fits[:-1] &= moved[:-1] <= free[1:]
            fits[-1:] = False
        return rows[fits]

    def staying(self, name: str) -> Column:
        """What is taken on each row of a resource by pods that could run on no other node."""
        return self.nodes.staying.get(name, np.zeros_like(self.nodes.pod_count))

    def movable(self, name: str) -> Column:
        """What is taken on each row of a resource by pods that could run elsewhere."""
        return self.nodes.taken(name) - self.staying(name)

    def _open_rows(self) -> Rows:
        rows = self.nodes.rows()
        return rows[~self._cordoned(rows)]

    def _cordoned(self, rows: Rows) -> NDArray[np.bool_]:
        nodes = self.nodes.nodes
        return np.array(
            [node is not None and node.spec.unschedulable for row in rows.tolist() for node in (nodes[row],)],
            dtype=np.bool_,
        )

    def _free(self, name: str) -> Column:
        """What is free of a resource on each row; none where more is taken than there is."""
        free: Column = np.maximum(self.nodes.offered(name) - self.nodes.taken(name), 0)
        return free
