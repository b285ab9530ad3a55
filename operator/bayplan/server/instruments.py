"""Counters and histograms for the hot path: a dictionary and a list each, exported by prometheus-client.

prometheus-client's own are made for threads: they take a lock per call, scan the buckets one by one and
export `_created` series kube-scheduler does not have. The scheduling loop has one thread, and makes some
forty calls a pod.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

LabelValues = tuple[str, ...]


class Tally(Collector):
    """A number per label set, changed by the event loop's thread only; SchedulerMetrics keeps one a metric.

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
    ) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = tuple(labels)
        self._gauge = gauge
        self.values: defaultdict[LabelValues, int] = defaultdict(int, dict.fromkeys(preset, 0))
        if not self._labels:
            self.values[()] = 0

    def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """The metric family with every series."""
        family = (GaugeMetricFamily if self._gauge else CounterMetricFamily)(
            self._name, self._documentation, labels=self._labels
        )
        for labels, value in self.values.items():
            family.add_metric(labels, value)
        yield family


class Histogram(Collector):
    """Observations counted into fixed buckets that only the event loop's thread fills.

    `bounds` are inclusive upper bounds in ascending order; the bucket for everything above is added here.
    Each series is one list: a count per bucket, the overflow, and last the sum.
    """

    def __init__(self, name: str, documentation: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> None:
        self._name = name
        self._documentation = documentation
        self._bounds = tuple(bounds)
        self._bound_names = (*map(floatToGoString, self._bounds), "+Inf")
        self._labels = tuple(labels)
        self._series: dict[LabelValues, list[float]] = {}
        if not self._labels:
            self._add_series(())

    def observe(self, labels: LabelValues, value: float) -> None:
        """Count a value into the series of these label values, in the order of the label names."""
        series = self._series.get(labels)
        if series is None:
            series = self._add_series(labels)
        series[bisect_left(self._bounds, value)] += 1
        series[-1] += value

    def _add_series(self, labels: LabelValues) -> list[float]:
        series: list[float] = [0] * (len(self._bounds) + 2)
        self._series[labels] = series
        return series

    def collect(self) -> Iterable[HistogramMetricFamily]:
        """The metric family: cumulative buckets, count and sum of every series."""
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
        for labels, series in self._series.items():
            buckets = []
            total = 0.0
            for bound, count in zip(self._bound_names, series, strict=False):
                total += count
                buckets.append((bound, total))
            family.add_metric(labels, buckets, sum_value=series[-1])
        yield family


class Instruments:
    """Makes instruments in a registry of its own; the metrics of one part of the scheduler each derive from it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

    def tally(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str] = (),
        *,
        gauge: bool = False,
        preset: Iterable[LabelValues] = (),
    ) -> Tally:
        """Make and register a counter, or a gauge that is counted up and down."""
        tally = Tally(name, documentation, labels, gauge=gauge, preset=preset)
        self.registry.register(tally)
        return tally

    def histogram(
        self, name: str, documentation: str, bounds: Sequence[float], labels: Sequence[str] = ()
    ) -> Histogram:
        """Make and register a histogram."""
        histogram = Histogram(name, documentation, bounds, labels)
        self.registry.register(histogram)
        return histogram


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """`count` bounds from `start`, each `factor` times the one before (Prometheus' own scheme)."""
    return tuple(start * factor**power for power in range(count))
