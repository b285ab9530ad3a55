"""Gauges read from the engine at scrape time, so that scheduling never sets one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bayplan.cache.allocation import AllocationSummary
from bayplan.cache.cache import CacheSizes
from bayplan.cache.packing import Packing
from bayplan.scheduler.observer import WatchState

QUEUES = ("active", "backoff", "unschedulable", "gated")


@dataclass(frozen=True, slots=True)
class StateSources:
    """Where each scrape reads the engine's state; each callable is called once a scrape, on the event loop.

    `pending` gives pods by queue (active, backoff, unschedulable, gated), `watches` gives freshness by
    resource (pods, nodes, ...), `in_flight_events` events by label, `tasks` what goes on beside the decisions by its
    work, `waiting_calls` calls by type, `nominations` how many there are and the age of the oldest in seconds.
    `packing` receives the resources to look at.
    """

    pending: Callable[[], Mapping[str, int]]
    in_flight_events: Callable[[], Mapping[str, int]]
    nominations: Callable[[], tuple[int, float]]
    cache: Callable[[], CacheSizes]
    allocation: Callable[[], AllocationSummary]
    packing: Callable[[Sequence[str]], Packing]
    tasks: Callable[[], Mapping[str, int]]
    waiting_calls: Callable[[], Mapping[str, int]]
    watches: Callable[[], Mapping[str, WatchState]]


class StateCollector(Collector):
    """Exports the state of queue, cache, calls and watches as it is at the moment of the scrape."""

    def __init__(self, sources: StateSources) -> None:
        self._sources = sources

    def collect(self) -> Iterable[Metric]:
        """All of it, metric by metric."""
        yield self._pending()
        yield self._cache()
        yield from self._nominations()
        yield from self._under_way()
        yield from self._watches()

    def _pending(self) -> Metric:
        pending = self._sources.pending()
        return labelled(
            "scheduler_pending_pods",
            "Number of pending pods, by queue: 'active' is ready to be tried, 'backoff' waits after a "
            "failure, 'unschedulable' waits for a change in the cluster, 'gated' is held back by a gate.",
            ("queue",),
            (((queue,), pending.get(queue, 0)) for queue in QUEUES),
        )

    def _cache(self) -> Metric:
        sizes = self._sources.cache()
        return labelled(
            "scheduler_cache_size",
            "Number of nodes, pods, and assumed (bound, not yet confirmed) pods in the cache.",
            ("type",),
            [(("nodes",), sizes.nodes), (("pods",), sizes.pods), (("assumed_pods",), sizes.assumed_pods)],
        )

    def _nominations(self) -> Iterator[Metric]:
        count, oldest_age = self._sources.nominations()
        yield GaugeMetricFamily("bayplan_nominations", "Number of pods that room on a node is kept for.", value=count)
        yield GaugeMetricFamily(
            "bayplan_oldest_nomination_age_seconds",
            "Seconds since the oldest nomination that still lasts was made or seen first; 0 without any.",
            value=oldest_age,
        )

    def _under_way(self) -> Iterator[Metric]:
        for name, documentation, label, source in (
            (
                "scheduler_inflight_events",
                "Number of events currently tracked in the scheduling queue.",
                "event",
                self._sources.in_flight_events,
            ),
            (
                "scheduler_goroutines",
                "Number of tasks under way split by the work they do such as binding.",
                "operation",
                self._sources.tasks,
            ),
            (
                "scheduler_pending_async_api_calls",
                "Number of API calls currently pending in the async queue.",
                "call_type",
                self._sources.waiting_calls,
            ),
        ):
            yield labelled(name, documentation, (label,), (((key,), number) for key, number in source().items()))

    def _watches(self) -> Iterator[Metric]:
        watches = self._sources.watches()
        yield labelled(
            "bayplan_watch_last_event_age_seconds",
            "Seconds since the last event or bookmark of a watch.",
            ("resource",),
            (((resource,), state.last_event_age_seconds) for resource, state in watches.items()),
        )
        relists = CounterMetricFamily(
            "bayplan_watch_relists_total", "Number of times a watch had to list again.", labels=("resource",)
        )
        for resource, state in watches.items():
            relists.add_metric((resource,), state.relists)
        yield relists


def labelled(
    name: str, documentation: str, labels: tuple[str, ...], series: Iterable[tuple[tuple[str, ...], float]]
) -> GaugeMetricFamily:
    """Return a gauge with a number for each set of label values."""
    family = GaugeMetricFamily(name, documentation, labels=labels)
    for values, number in series:
        family.add_metric(values, number)
    return family
