"""How many nodes any packing needs at least, of one resource after the other."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final

MAX_THRESHOLDS: Final = 64
"""Most sizes at which small pods are told from large ones; with fewer the bound is lower, and still one."""


def fewest(capacities: Iterable[int], demand: int) -> int:
    """Return how many of these capacities, the largest first, cover the demand; all of them where all do not."""
    return _cover(sorted(Counter(capacities).items(), reverse=True), demand)


def fewest_for_sizes(capacities: Iterable[int], sizes: Mapping[int, int]) -> int:
    """Return a number of nodes that no packing of one resource can do with fewer of, as no pod can be split.

    It is the largest of three bounds. By the sum: the largest nodes that have as much as all pods ask for. By L2 of
    Martello and Toth (Knapsack Problems, 1990, section 8.3), here as the function of sizes that Fekete and Schepers
    gave for it (Mathematical Programming 91, 2001): for a threshold a up to half the largest node c, what asks for more
    than c - a fills a node, and what asks for less than a counts nothing; a smaller node holds what it has, or is
    filled by one pod that would fill the largest. By number: of the pods that ask for s or more, a node holds as many
    as s goes into what it has.

    Where all nodes do not cover what is asked for, all of them count. `sizes` has how many pods ask for each amount.
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


_Offered = Sequence[tuple[int, int]]
"""Capacities, the largest first, and how many nodes have each."""


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
