"""kube-scheduler's metrics with its names, labels, buckets (pkg/scheduler/metrics), and bayplan's own."""

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from bayplan.scheduler.kubelet_rejections import REASONS
from bayplan.scheduler.observer import AttemptResult
from bayplan.server.instruments import Histogram, LabelValues, Tally, exponential_buckets

RESULTS: tuple[AttemptResult, ...] = ("scheduled", "unschedulable", "error")
ATTEMPT_BUCKETS = exponential_buckets(0.001, 2, 15)
SLI_BUCKETS = exponential_buckets(0.01, 2, 20)
POINT_BUCKETS = exponential_buckets(0.0001, 2, 12)
CLIENT_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
# The SLI's `attempts` label is capped as upstream caps it, or a pod tried all night would add a series a try.
ATTEMPT_LABELS = (*((str(number),) for number in range(15)), ("15+",))


class SchedulerMetrics:
    """The observer behind `/metrics`: counts what the engine reports, in a registry of its own.

    The engine relies on every call costing about a microsecond; HttpServer serves `registry`. Calls come from
    the event loop's thread only. Series exist from the start for each of `profiles`. Gauges that are read from the
    engine at scrape time join the registry as a StateCollector.
    """

    def __init__(self, *, profiles: Iterable[str]) -> None:
        self.registry = CollectorRegistry()
        self._add_attempts(tuple(profiles))
        self._add_framework()
        self._add_queue()
        self._add_client()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def _tally(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str] = (),
        *,
        gauge: bool = False,
        preset: Iterable[LabelValues] = (),
    ) -> Tally:
        tally = Tally(name, documentation, labels, gauge=gauge, preset=preset)
        self.registry.register(tally)
        return tally

    def _histogram(
        self, name: str, documentation: str, bounds: Sequence[float], labels: Sequence[str] = ()
    ) -> Histogram:
        histogram = Histogram(name, documentation, bounds, labels)
        self.registry.register(histogram)
        return histogram

    def _add_attempts(self, profiles: tuple[str, ...]) -> None:
        self._attempts = self._tally(
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods, by the result: 'unschedulable' means no node fits the "
            "pod, 'error' means an internal problem.",
            ("result", "profile"),
            preset=((result, profile) for profile in profiles for result in RESULTS),
        )
        self._attempt_seconds = self._histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm and binding).",
            ATTEMPT_BUCKETS,
            ("result", "profile"),
        )
        self._algorithm_seconds = self._histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds.",
            ATTEMPT_BUCKETS,
        )
        self._sli_seconds = self._histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Latency for a pod being scheduled, from the first attempt, over all its attempts.",
            SLI_BUCKETS,
            ("attempts",),
        )
        self._attempts_per_pod = self._histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            exponential_buckets(1, 2, 5),
        )
        self._after_flush = self._tally(
            "scheduler_pod_scheduled_after_flush_total",
            "Number of pods scheduled only after the periodic flush of the unschedulable pods.",
        )
        self._preemptions = self._tally("scheduler_preemption_attempts_total", "Total preemption attempts till now.")
        self._victims = self._histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims.",
            exponential_buckets(1, 2, 7),
        )

    def _add_framework(self) -> None:
        self._point_seconds = self._histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            POINT_BUCKETS,
            ("extension_point", "status", "profile"),
        )
        self._unschedulable = self._tally(
            "scheduler_unschedulable_pods",
            "Number of unschedulable pods by the plugin that rejected them; a pod counts once for each of its plugins.",
            ("plugin", "profile"),
            gauge=True,
        )
        self._permit_seconds = self._histogram(
            "scheduler_permit_wait_duration_seconds",
            "Duration of waiting on permit.",
            ATTEMPT_BUCKETS,
            ("result",),
        )

    def _add_queue(self) -> None:
        self._incoming = self._tally(
            "scheduler_queue_incoming_pods_total",
            "Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
        )
        self._event_seconds = self._histogram(
            "scheduler_event_handling_duration_seconds",
            "Event handling latency in seconds.",
            POINT_BUCKETS,
            ("event",),
        )

    def _add_client(self) -> None:
        self._requests = self._tally(
            "rest_client_requests_total",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "method", "host"),
        )
        self._request_seconds = self._histogram(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host.",
            CLIENT_BUCKETS,
            ("verb", "host"),
        )
        self._throttle_seconds = self._histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Client side rate limiter latency in seconds. Broken down by verb, and host.",
            CLIENT_BUCKETS,
            ("verb", "host"),
        )
        self._undecodable = self._tally(
            "bayplan_undecodable_objects_total",
            "Number of objects left out because they cannot be read.",
            ("kind",),
        )
        self._ambiguous = self._tally("bayplan_bind_ambiguous_total", "Number of bindings whose answer was lost.")
        self._kubelet_rejections = self._tally(
            "bayplan_kubelet_rejections_total",
            "Number of pods of this scheduler that the kubelet of their node did not admit, by its reason.",
            ("reason",),
            preset=((reason,) for reason in sorted(REASONS)),
        )
        self._comparisons = self._tally(
            "bayplan_cache_comparisons_total", "Number of times the cache was compared with the API server's content."
        )
        self._differences = self._tally(
            "bayplan_cache_differences",
            "Number of objects of which the cache and the API server said different things when last compared.",
            ("kind",),
            gauge=True,
        )

    def attempt(self, profile: str, result: AttemptResult, seconds: float) -> None:
        """See `SchedulerObserver.attempt`."""
        labels = (result, profile)
        self._attempts.values[labels] += 1
        self._attempt_seconds.observe(labels, seconds)

    def algorithm(self, seconds: float) -> None:
        """See `SchedulerObserver.algorithm`."""
        self._algorithm_seconds.observe((), seconds)

    def bound(self, attempts: int, sli_seconds: float) -> None:
        """See `SchedulerObserver.bound`."""
        self._sli_seconds.observe(ATTEMPT_LABELS[min(attempts, 15)], sli_seconds)
        self._attempts_per_pod.observe((), attempts)

    def extension_point(self, point: str, status: str, profile: str, seconds: float) -> None:
        """See `SchedulerObserver.extension_point`."""
        self._point_seconds.observe((point, status, profile), seconds)

    def permit_waited(self, result: str, seconds: float) -> None:
        """See `SchedulerObserver.permit_waited`."""
        self._permit_seconds.observe((result,), seconds)

    def incoming(self, queue: str, event: str) -> None:
        """See `SchedulerObserver.incoming`."""
        self._incoming.values[(queue, event)] += 1

    def unschedulable(self, plugin: str, profile: str, delta: int) -> None:
        """See `SchedulerObserver.unschedulable`."""
        self._unschedulable.values[(plugin, profile)] += delta

    def event_handled(self, event: str, seconds: float) -> None:
        """See `SchedulerObserver.event_handled`."""
        self._event_seconds.observe((event,), seconds)

    def preemption_attempt(self) -> None:
        """See `SchedulerObserver`."""
        self._preemptions.values[()] += 1

    def preemption_victims(self, count: int) -> None:
        """See `SchedulerObserver`."""
        self._victims.observe((), count)

    def flushed(self) -> None:
        """See `SchedulerObserver.flushed`."""
        self._after_flush.values[()] += 1

    def bind_ambiguous(self) -> None:
        """See `SchedulerObserver.bind_ambiguous`."""
        self._ambiguous.values[()] += 1

    def rest_request(self, method: str, code: str, host: str, seconds: float) -> None:
        """See `SchedulerObserver.rest_request`."""
        self._requests.values[(code, method, host)] += 1
        self._request_seconds.observe((method, host), seconds)

    def throttled(self, method: str, host: str, seconds: float) -> None:
        """See `SchedulerObserver.throttled`."""
        self._throttle_seconds.observe((method, host), seconds)

    def kubelet_rejected(self, reason: str) -> None:
        """See `SchedulerObserver.kubelet_rejected`."""
        self._kubelet_rejections.values[(reason,)] += 1

    def undecodable(self, kind: str) -> None:
        """See `SchedulerObserver.undecodable`."""
        self._undecodable.values[(kind,)] += 1

    def cache_compared(self, differences: Mapping[str, int]) -> None:
        """Take the outcome of a comparison of the cache with the API server's content: differences by kind."""
        self._comparisons.values[()] += 1
        for kind in self._differences.values:
            self._differences.values[kind] = 0
        self._differences.values.update({(kind,): count for kind, count in differences.items()})
