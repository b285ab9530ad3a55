"""`/metrics/slis`: how each health check has ended, for service level indicators (upstream: component-base slis)."""

import time
from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from bayplan.server.health import HealthChecks
from bayplan.server.metrics import counter, gauge

PROCESS_START: Final = "process_start_time_seconds"
"""The metric that says it, in `/metrics` and `/metrics/slis` (upstream: component-base metrics/processstarttime.go)."""

_READ_AT: Final = time.time()


def process_start_seconds() -> float:
    """Return when the process began, in seconds since the epoch; where the kernel is silent, when this was loaded."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    started = registry.get_sample_value(PROCESS_START)
    return _READ_AT if started is None else started


class SliCollector(Collector):
    """Exports the last result of each check, how often it ended in which way, and since when that is counted.

    Only probes run the checks.
    """

    def __init__(self, health: HealthChecks) -> None:
        self._health = health
        self._started = process_start_seconds()

    def collect(self) -> Iterable[Metric]:
        """All three metrics."""
        outcomes = self._health.outcomes
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
        yield gauge(PROCESS_START, "Start time of the process since unix epoch in seconds.", (), {(): self._started})
