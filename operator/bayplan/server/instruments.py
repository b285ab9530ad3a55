"""Counters and histograms for the hot path: a dictionary and a list each, exported by prometheus-client.

prometheus-client's own are made for threads: they take a lock per call, scan the buckets one by one and
export `_created` series kube-scheduler does not have. The scheduling loop has one thread, and makes some
forty calls a pod.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

LabelValues = tuple[str, ...]


class Tally(Collector):
    """A number per label set, changed by the event loop's thread only; a counter, or a `gauge` counted up and down.

    `values` is what callers change in place, by label values in the order of the label names.
    Without labels, and for each label set in `preset`, the series exists from the start with 0, so that a
    rate sees the first increment.
    """

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str] = (),
        *,
        gauge: bool = False,
        preset: Iterable[LabelValues] = (),
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = tuple(labels)
        self._gauge = gauge
        self.values: defaultdict[LabelValues, int] = defaultdict(int, dict.fromkeys(preset, 0))
        if not self._labels:
            self.values[()] = 0
        if registry is not None:
            registry.register(self)

    def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """The metric family with every series."""
        family = (GaugeMetricFamily if self._gauge else CounterMetricFamily)(
            self._name, self._documentation, labels=self._labels
        )
        for labels, value in self.values.items():
            family.add_metric(labels, value)
        yield family


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


class Histogram(Collector):
    """Observations counted into fixed buckets that only the event loop's thread fills.

    `bounds` are inclusive upper bounds in ascending order; the bucket for everything above is added here.
    """

    def __init__(
        self,
        name: str,
        documentation: str,
        bounds: Sequence[float],
        labels: Sequence[str] = (),
        *,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._name = name
        self._documentation = documentation
        self._bounds = tuple(bounds)
        self._bound_names = (*map(floatToGoString, self._bounds), "+Inf")
        self._labels = tuple(labels)
        self._series: dict[LabelValues, Series] = {}
        if not self._labels:
            self.series(())
        if registry is not None:
            registry.register(self)

    def series(self, labels: LabelValues) -> Series:
        """Return the series of these label values, in the order of the label names; it exists from now on."""
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = Series(self._bounds)
        return series

    def observe(self, labels: LabelValues, value: float) -> None:
        """Count a value into the series of these label values."""
        self.series(labels).observe(value)

    def collect(self) -> Iterable[HistogramMetricFamily]:
        """The metric family: cumulative buckets, count and sum of every series."""
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
        for labels, series in self._series.items():
            buckets = []
            total = 0.0
            for bound, count in zip(self._bound_names, series.counts, strict=True):
                total += count
                buckets.append((bound, total))
            family.add_metric(labels, buckets, sum_value=series.total)
        yield family


class Instruments:
    """Makes instruments in a registry of its own; the metrics of one part of the scheduler each derive from it.

    `tally` and `histogram` take what `Tally` and `Histogram` take, but for the registry.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.tally = partial(Tally, registry=self.registry)
        self.histogram = partial(Histogram, registry=self.registry)


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """`count` bounds from `start`, each `factor` times the one before (Prometheus' own scheme)."""
    return tuple(start * factor**power for power in range(count))
