"""What `/metrics` says of the configuration: whether the last one was taken over, and when; as Prometheus' own say."""

import time
from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class ConfigurationCollector(Collector):
    """Counts configurations that were taken over and refused; the one of the start counts as taken over, in no count.

    `now` gives seconds since the epoch.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._successful = True
        self._success_at = now()
        self._reloads = {"success": 0, "failure": 0}

    def ended(self, *, successful: bool) -> None:
        """Count a reload: what is in force is the newest configuration, or it was refused."""
        self._successful = successful
        self._reloads["success" if successful else "failure"] += 1
        if successful:
            self._success_at = self._now()

    def collect(self) -> Iterable[Metric]:
        """The three metrics."""
        yield GaugeMetricFamily(
            "bayplan_config_last_reload_successful",
            "Whether the last configuration that was read is in force; 0 means that it was refused.",
            value=float(self._successful),
        )
        yield GaugeMetricFamily(
            "bayplan_config_last_reload_success_timestamp_seconds",
            "When the configuration in force was last read, in seconds since the epoch.",
            value=self._success_at,
        )
        reloads = CounterMetricFamily(
            "bayplan_config_reloads_total",
            "Number of times the configuration was read anew, by the result: 'failure' means that it was refused.",
            labels=("result",),
        )
        for result, count in self._reloads.items():
            reloads.add_metric((result,), count)
        yield reloads
