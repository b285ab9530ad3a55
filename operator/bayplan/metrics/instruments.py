"""Counters, gauges and histograms for the hot path: a dictionary and a list each, without locks.

prometheus-client's own are made for threads: they take a lock per call, scan the buckets one by one and
export `_created` series kube-scheduler does not have. The scheduling loop has one thread, and makes some
forty calls a pod. `bayplan.server.metrics` exports them.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import Generic, TypeVarTuple

Labels = TypeVarTuple("Labels")


class Instrument(Generic[*Labels]):
    """What every metric has: a name, a help text, and label names, whose number each call's label values have."""

    def __init__(self, name: str, documentation: str, labels: tuple[*Labels]) -> None:
        self.name = name
        self.documentation = documentation
        self.labels = labels


class Counter(Instrument[*Labels]):
    """A number per label set, changed by the event loop's thread only.

    Without labels, and for each label set in `preset`, the series exists from the start with 0, so that a
    rate sees the first increment.
    """

    def __init__(
        self, name: str, documentation: str, labels: tuple[*Labels], *, preset: Iterable[tuple[*Labels]] = ()
    ) -> None:
        super().__init__(name, documentation, labels)
        self.values: defaultdict[tuple[*Labels], float] = defaultdict(int, dict.fromkeys(preset, 0))
        if not labels:
            self.values[labels] = 0

    def add(self, *labels: *Labels, by: int = 1) -> None:
        """Add to the number of these label values, which are in the order of the label names."""
        self.values[labels] += by


class Gauge(Counter[*Labels]):
    """A counter that also goes down, or is set."""

    def set(self, value: float, *labels: *Labels) -> None:
        """Replace the number of these label values."""
        self.values[labels] = value


class Count:
    """A number that whoever counts adds to, without a lookup."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class GroupCounter(Instrument[str, *Labels]):
    """Counts what happens to the members of a group together, and exports a series for each member.

    One addition counts for all of them: a number a member would cost more than what is counted. The member is the
    first label. There are as many groups as a caller makes; plugins make one for each set that skips alike.
    """

    def __init__(self, name: str, documentation: str, labels: tuple[str, *Labels]) -> None:
        super().__init__(name, documentation, labels)
        self._counts: dict[tuple[tuple[str, ...], tuple[*Labels]], Count] = {}

    def count(self, members: tuple[str, ...], *labels: *Labels) -> Count:
        """Return the one count of this group with these label values."""
        return self._counts.setdefault((members, labels), Count())

    @property
    def values(self) -> dict[tuple[str, *Labels], int]:
        """The number of each member, added up over its groups."""
        totals: dict[tuple[str, *Labels], int] = {}
        for (members, labels), count in self._counts.items():
            for member in members:
                totals[member, *labels] = totals.get((member, *labels), 0) + count.value
        return totals


class Series:
    """One series of a histogram; who has many observations for it keeps it, and need not look it up."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """A count per bucket, and last what is above all of them."""
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value


class Histogram(Instrument[*Labels]):
    """Observations counted into fixed buckets that only the event loop's thread fills.

    `bounds` are inclusive upper bounds in ascending order; the bucket for everything above is added here.
    """

    def __init__(self, name: str, documentation: str, labels: tuple[*Labels], bounds: tuple[float, ...]) -> None:
        super().__init__(name, documentation, labels)
        self.bounds = bounds
        self.values: dict[tuple[*Labels], Series] = {}
        if not labels:
            self.series(*labels)

    def series(self, *labels: *Labels) -> Series:
        """Return the series of these label values, in the order of the label names; it exists from now on."""
        series = self.values.get(labels)
        if series is None:
            series = self.values[labels] = Series(self.bounds)
        return series

    def observe(self, value: float, *labels: *Labels) -> None:
        """Count a value into the series of these label values."""
        # Looked up here, as passing label values on takes as long as the lookup.
        (self.values.get(labels) or self.series(*labels)).observe(value)


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """`count` bounds from `start`, each `factor` times the one before (Prometheus' own scheme)."""
    return tuple(start * factor**power for power in range(count))
