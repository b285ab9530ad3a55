"""Exports metrics in prometheus-client's form, worked out rarely and in small steps, and those of health checks."""

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from bayplan.metrics.instruments import Counter, Gauge, GroupCounter, Histogram
from bayplan.metrics.table import Metrics
from bayplan.server.health import HealthChecks

LabelValues = tuple[str, ...]
Values = Mapping[Any, float]
"""A number by label values; where there is one label, its value may stand alone."""
_Any = tuple[Any, ...]

PROCESS_START: Final = "process_start_time_seconds"
"""The metric that says it, in `/metrics` and `/metrics/slis` (upstream: component-base metrics/processstarttime.go)."""

_READ_AT: Final = time.time()

TEXT_FORMAT = "text/plain; version=0.0.4"
OPENMETRICS_TYPE = "application/openmetrics-text"
OPENMETRICS_FORMAT = f"{OPENMETRICS_TYPE}; version=1.0.0"
KEPT_SECONDS = 1.0
_OPENMETRICS_END = b"# EOF\n"


class SchedulerMetrics(Metrics):
    """The table behind `/metrics`, with what the process and the interpreter tell, in a registry of its own.

    HttpServer serves `registry`. What is read at the scrape joins it as `AtScrape`.
    """

    def __init__(self, *, profiles: Iterable[str]) -> None:
        super().__init__(profiles=profiles)
        instruments = list(vars(self).values())
        self.registry = CollectorRegistry()
        self.registry.register(AtScrape(lambda: map(exported, instruments)))
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)


class AtScrape(Collector):
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


def process_start_seconds() -> float:
    """Return when the process began, in seconds since the epoch; where the kernel is silent, when this was loaded."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    started = registry.get_sample_value(PROCESS_START)
    return _READ_AT if started is None else started


def sli_metrics(health: HealthChecks) -> Iterator[Metric]:
    """Yield the last result of each check, how often it ended in which way, and since when that is counted.

    Only probes run the checks.
    """
    outcomes = health.outcomes
    yield gauge(
        "kubernetes_healthcheck",
        "Result of the last run of a health check: 1 is success.",
        ("name", "type"),
        {(name, endpoint): float(outcome.healthy) for (endpoint, name), outcome in outcomes.items()},
    )
    yield counter(
        "kubernetes_healthchecks_total",
        "Number of times that a health check was run, by its result.",
        ("name", "type", "status"),
        {
            (name, endpoint, status): count
            for (endpoint, name), outcome in outcomes.items()
            for status, count in (("success", outcome.successes), ("error", outcome.errors))
            if count
        },
    )
    yield gauge(
        PROCESS_START, "Start time of the process since unix epoch in seconds.", (), {(): process_start_seconds()}
    )


@dataclass(eq=False)
class Scrapes:
    """Works out the text of all metrics at most once a second, whoever asks, and lets the loop go on meanwhile.

    HttpServer relies on it. All who ask in one format get the same text until it is a second old. The loop turns after
    each metric, so no decision waits for more than one of them. A metric is consistent in itself. Those whose names are
    `disabled` are left out.
    """

    registry: CollectorRegistry
    disabled: Collection[str] = field(default=(), kw_only=True)
    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    _texts: dict[str, asyncio.Task[tuple[bytes, str]]] = field(default_factory=dict, init=False)
    _done_at: dict[str, float] = field(default_factory=dict, init=False)

    async def text(self, *, openmetrics: bool) -> tuple[bytes, str]:
        """Return the text and its content type; raises what a collector raises."""
        wanted = OPENMETRICS_FORMAT if openmetrics else TEXT_FORMAT
        if self.clock() - self._done_at.get(wanted, -math.inf) >= KEPT_SECONDS:
            self._done_at[wanted] = math.inf
            self._texts[wanted] = asyncio.create_task(self._work_out(wanted))
        # Whoever asked first may leave; the others still wait for it.
        return await asyncio.shield(self._texts[wanted])

    async def _work_out(self, wanted: str) -> tuple[bytes, str]:
        encode, content_type = choose_encoder(wanted)
        try:
            parts = []
            for metric in self.registry.collect():
                # A counter has lost the end of its name here.
                if metric.name not in self.disabled and f"{metric.name}_total" not in self.disabled:
                    parts.append(encode(AtScrape(partial(iter, [metric]))).removesuffix(_OPENMETRICS_END))
                await asyncio.sleep(0)
            if content_type.startswith(OPENMETRICS_TYPE):
                parts.append(_OPENMETRICS_END)
            return b"".join(parts), content_type
        finally:
            self._done_at[wanted] = self.clock()
