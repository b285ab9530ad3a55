"""Exports metrics in prometheus-client's form: the table's, and numbers that are read from the engine at the scrape."""

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from bayplan.metrics.instruments import Counter, Gauge, GroupCounter, Histogram
from bayplan.metrics.table import Metrics

LabelValues = tuple[str, ...]
Values = Mapping[Any, float]
"""A number by label values; where there is one label, its value may stand alone."""
_Any = tuple[Any, ...]


class SchedulerMetrics(Metrics):
    """The table behind `/metrics`, with what the process and the interpreter tell, in a registry of its own.

    HttpServer serves `registry`. What is read at the scrape joins it as `Reading`.
    """

    def __init__(self, *, profiles: Iterable[str]) -> None:
        super().__init__(profiles=profiles)
        instruments = list(vars(self).values())
        self.registry = CollectorRegistry()
        self.registry.register(Reading(lambda: map(exported, instruments)))
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)


class Reading(Collector):
    """Metrics that `read` gives at each scrape, one after the other, so that scheduling never sets them."""

    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """All of them."""
        return self._read()


def exported(instrument: Counter[*_Any] | GroupCounter[*_Any] | Histogram[*_Any]) -> Metric:
    """Return the metric family of an instrument, with every series."""
    name, documentation, labels = instrument.name, instrument.documentation, instrument.labels
    if isinstance(instrument, Histogram):
        family = HistogramMetricFamily(name, documentation, labels=labels)
        bounds = (*map(floatToGoString, instrument.bounds), "+Inf")
        for values, series in instrument.values.items():
            counts = map(float, accumulate(series.counts))
            family.add_metric(values, list(zip(bounds, counts, strict=True)), sum_value=series.total)
        return family
    return (gauge if isinstance(instrument, Gauge) else counter)(name, documentation, labels, instrument.values)


def gauge(name: str, documentation: str, labels: LabelValues, values: Values) -> Metric:
    """Return a gauge with a number for each set of label values."""
    return _filled(GaugeMetricFamily(name, documentation, labels=labels), values)


def counter(name: str, documentation: str, labels: LabelValues, values: Values) -> Metric:
    """Return a counter, as `gauge` returns a gauge."""
    return _filled(CounterMetricFamily(name, documentation, labels=labels), values)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: Values) -> Metric:
    for labels, value in values.items():
        family.add_metric((labels,) if isinstance(labels, str) else labels, value)
    return family
