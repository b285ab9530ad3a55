"""Gauges read from the engine at scrape time, so that scheduling never sets one."""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bayplan import __version__
from bayplan.cache.cache import CacheSizes
from bayplan.scheduler.allocation import AllocationSummary
from bayplan.scheduler.observer import WatchState

QUEUES = ("active", "backoff", "unschedulable", "gated")
NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
MAX_EXTENDED_RESOURCES = 32


@dataclass(frozen=True, slots=True)
class StateSources:
    """Where each scrape reads the engine's state; each callable is called once a scrape, on the event loop.

    `pending` gives pods by queue (active, backoff, unschedulable, gated), `watches` gives freshness by
    resource (pods, nodes, ...).
    """

    pending: Callable[[], Mapping[str, int]]
    cache: Callable[[], CacheSizes]
    allocation: Callable[[], AllocationSummary]
    watches: Callable[[], Mapping[str, WatchState]]


class StateCollector(Collector):
    """Exports the state of queue, cache, packing and watches as it is at the moment of the scrape."""

    def __init__(self, sources: StateSources) -> None:
        self._sources = sources
        self._extended: set[str] = set()

    def collect(self) -> Iterable[Metric]:
        """All state gauges, and the build."""
        yield self._pending()
        yield self._cache()
        yield from self._packing()
        yield from self._watches()
        yield _labelled(
            "bayplan_build_info",
            "Always 1; its labels say which build runs.",
            ("version", "python_version"),
            [((__version__, platform.python_version()), 1)],
        )

    def _pending(self) -> Metric:
        pending = self._sources.pending()
        return _labelled(
            "scheduler_pending_pods",
            "Number of pending pods, by queue: 'active' is ready to be tried, 'backoff' waits after a "
            "failure, 'unschedulable' waits for a change in the cluster, 'gated' is held back by a gate.",
            ("queue",),
            (((queue,), pending.get(queue, 0)) for queue in QUEUES),
        )

    def _cache(self) -> Metric:
        sizes = self._sources.cache()
        return _labelled(
            "scheduler_cache_size",
            "Number of nodes, pods, and assumed (bound, not yet confirmed) pods in the cache.",
            ("type",),
            [(("nodes",), sizes.nodes), (("pods",), sizes.pods), (("assumed_pods",), sizes.assumed_pods)],
        )

    def _packing(self) -> Iterator[Metric]:
        summary = self._sources.allocation()
        yield GaugeMetricFamily("bayplan_nodes", "Number of nodes known.", value=summary.nodes)
        yield GaugeMetricFamily(
            "bayplan_nodes_in_use", "Number of nodes that hold at least one pod.", value=summary.nodes_in_use
        )
        resources = list(self._admitted(summary.allocatable))
        for name, documentation, capacity in (
            (
                "bayplan_allocation_ratio",
                "Requested over allocatable on the nodes in use.",
                summary.allocatable_in_use,
            ),
            (
                "bayplan_cluster_allocation_ratio",
                "Requested over allocatable on all nodes.",
                summary.allocatable,
            ),
        ):
            yield _labelled(
                name,
                documentation,
                ("resource",),
                [((r,), _ratio(summary.requested.get(r, 0), capacity.get(r, 0))) for r in resources],
            )

    def _admitted(self, allocatable: Mapping[str, int]) -> Iterator[str]:
        # Node owners choose the names of extended resources. The first ones seen keep their place, so that
        # series neither grow without bound nor come and go.
        for resource in sorted(allocatable):
            if allocatable[resource] <= 0:
                continue
            if resource not in NATIVE_RESOURCES and resource not in self._extended:
                if len(self._extended) >= MAX_EXTENDED_RESOURCES:
                    continue
                self._extended.add(resource)
            yield resource

    def _watches(self) -> Iterator[Metric]:
        watches = self._sources.watches()
        yield _labelled(
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


def _labelled(
    name: str, documentation: str, labels: tuple[str, ...], series: Iterable[tuple[tuple[str, ...], float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, documentation, labels=labels)
    for values, number in series:
        family.add_metric(values, number)
    return family


def _ratio(requested: int, allocatable: int) -> float:
    return requested / allocatable if allocatable else 0.0
