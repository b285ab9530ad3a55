"""kube-scheduler's metrics with its names, labels, buckets (pkg/scheduler/metrics), and bayplan's own."""

from collections.abc import Iterable, Mapping

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector

from bayplan.scheduler.observer import AttemptResult
from bayplan.server.api_metrics import ApiMetrics
from bayplan.server.framework_metrics import POINT_BUCKETS, FrameworkMetrics
from bayplan.server.instruments import exponential_buckets

RESULTS: tuple[AttemptResult, ...] = ("scheduled", "unschedulable", "error")
ATTEMPT_BUCKETS = exponential_buckets(0.001, 2, 15)
SLI_BUCKETS = exponential_buckets(0.01, 2, 20)
PREEMPTION_BUCKETS = exponential_buckets(0.001, 2, 16)
# The SLI's `attempts` label is capped as upstream caps it, or a pod tried all night would add a series a try.
ATTEMPT_LABELS = (*((str(number),) for number in range(15)), ("15+",))
_PREEMPTOR = "pod"


class SchedulerMetrics(FrameworkMetrics, ApiMetrics):
    """The observer behind `/metrics`: counts what the engine reports, in a registry of its own.

    The engine relies on every call costing about a microsecond; HttpServer serves `registry`. Calls come from
    the event loop's thread only. Series exist from the start for each of `profiles`. Gauges that are read from the
    engine at scrape time join the registry as collectors.
    """

    def __init__(self, *, profiles: Iterable[str]) -> None:
        super().__init__()
        self._add_attempts(tuple(profiles))
        self._add_preemption()
        self._add_queue_and_cache()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def _add_attempts(self, profiles: tuple[str, ...]) -> None:
        self._attempts = self.tally(
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods, by the result: 'unschedulable' means no node fits the "
            "pod, 'error' means an internal problem.",
            ("result", "profile"),
            preset=((result, profile) for profile in profiles for result in RESULTS),
        )
        self._attempt_seconds = self.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm and binding).",
            ATTEMPT_BUCKETS,
            ("result", "profile"),
        )
        self._algorithm_seconds = self.histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds.",
            ATTEMPT_BUCKETS,
        )
        self._sli_seconds = self.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Latency for a pod being scheduled, from the first attempt, over all its attempts.",
            SLI_BUCKETS,
            ("attempts",),
        )
        self._attempts_per_pod = self.histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            exponential_buckets(1, 2, 5),
        )
        self._after_flush = self.tally(
            "scheduler_pod_scheduled_after_flush_total",
            "Number of pods scheduled only after the periodic flush of the unschedulable pods.",
        )

    def _add_preemption(self) -> None:
        self._preemptions = self.tally("scheduler_preemption_attempts_total", "Total preemption attempts till now.")
        self._victims = self.histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims.",
            exponential_buckets(1, 2, 7),
        )
        self._evaluation_seconds = self.histogram(
            "scheduler_preemption_evaluation_duration_seconds",
            "Duration in seconds for identifying the target preemption victims.",
            PREEMPTION_BUCKETS,
            ("preemptor", "result"),
        )
        self._execution_seconds = self.histogram(
            "scheduler_preemption_execution_duration_seconds",
            "Duration in seconds for preempting the target preemption victims, while other pods are scheduled.",
            PREEMPTION_BUCKETS,
            ("preemptor", "result"),
        )
        self._executions = self.tally(
            "scheduler_preemption_goroutines_execution_total",
            "Number of preemptions that were carried out.",
            ("result",),
        )
        self._budget_violations = self.tally(
            "scheduler_preemption_pdb_violations_total",
            "Total number of pod disruption budget violations caused by preemption.",
            ("preemptor",),
            preset=((_PREEMPTOR,),),
        )

    def _add_queue_and_cache(self) -> None:
        self._incoming = self.tally(
            "scheduler_queue_incoming_pods_total",
            "Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
        )
        self._event_seconds = self.histogram(
            "scheduler_event_handling_duration_seconds",
            "Event handling latency in seconds.",
            POINT_BUCKETS,
            ("event",),
        )
        self._comparisons = self.tally(
            "bayplan_cache_comparisons_total", "Number of times the cache was compared with the API server's content."
        )
        self._differences = self.tally(
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

    def incoming(self, queue: str, event: str) -> None:
        """See `SchedulerObserver.incoming`."""
        self._incoming.values[(queue, event)] += 1

    def event_handled(self, event: str, seconds: float) -> None:
        """See `SchedulerObserver.event_handled`."""
        self._event_seconds.observe((event,), seconds)

    def flushed(self) -> None:
        """See `SchedulerObserver.flushed`."""
        self._after_flush.values[()] += 1

    def preemption_attempt(self) -> None:
        """See `SchedulerObserver`."""
        self._preemptions.values[()] += 1

    def preemption_victims(self, count: int) -> None:
        """See `SchedulerObserver`."""
        self._victims.observe((), count)

    def preemption_evaluated(self, result: str, seconds: float) -> None:
        """See `PluginObserver.preemption_evaluated`."""
        self._evaluation_seconds.observe((_PREEMPTOR, result), seconds)

    def preemption_executed(self, result: str, seconds: float) -> None:
        """See `SchedulerObserver.preemption_executed`."""
        self._executions.values[(result,)] += 1
        self._execution_seconds.observe((_PREEMPTOR, result), seconds)

    def budgets_violated(self, count: int) -> None:
        """See `SchedulerObserver.budgets_violated`."""
        self._budget_violations.values[(_PREEMPTOR,)] += count

    def cache_compared(self, differences: Mapping[str, int]) -> None:
        """Take the outcome of a comparison of the cache with the API server's content: differences by kind."""
        self._comparisons.values[()] += 1
        for kind in self._differences.values:
            self._differences.values[kind] = 0
        self._differences.values.update({(kind,): count for kind, count in differences.items()})
