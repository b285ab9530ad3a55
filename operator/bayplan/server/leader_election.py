"""What the election says on `/metrics`: upstream's two metrics, read when they are asked for."""

from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class LeaderElectionCollector(Collector):
    """Exports whether this process leads (upstream: component-base metrics/prometheus/clientgo/leaderelection).

    `name` gives the Lease's. The callables may be called at any time; one number is read from the elector's thread.
    """

    def __init__(
        self, name: Callable[[], str], *, is_leading: Callable[[], bool], slow_paths: Callable[[], int]
    ) -> None:
        self._name = name
        self._is_leading = is_leading
        self._slow_paths = slow_paths

    def collect(self) -> Iterable[Metric]:
        """Both metrics."""
        status = GaugeMetricFamily(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.",
            labels=("name",),
        )
        status.add_metric((self._name(),), float(self._is_leading()))
        yield status
        slow = CounterMetricFamily(
            "leader_election_slowpath_total",
            "Number of renewals that had to read the lease first.",
            labels=("name",),
        )
        slow.add_metric((self._name(),), self._slow_paths())
        yield slow
