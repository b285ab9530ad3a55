"""`/metrics/slis`: how each health check has ended, for service level indicators (upstream: component-base slis)."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bayplan.server.health import HealthChecks


class SliCollector(Collector):
    """Exports the last result of each check, and how often it ended in which way; only probes run them."""

    def __init__(self, health: HealthChecks) -> None:
        self._health = health

    def collect(self) -> Iterable[Metric]:
        """Both metrics."""
        last = GaugeMetricFamily(
            "kubernetes_healthcheck", "Result of the last run of a health check: 1 is success.", labels=("name", "type")
        )
        total = CounterMetricFamily(
            "kubernetes_healthchecks_total",
            "Number of times that a health check was run, by its result.",
            labels=("name", "type", "status"),
        )
        for (endpoint, name), outcome in self._health.outcomes.items():
            last.add_metric((name, endpoint), float(outcome.healthy))
            for status, count in (("success", outcome.successes), ("error", outcome.errors)):
                if count:
                    total.add_metric((name, endpoint, status), count)
        yield last
        yield total
