"""What extension points, plugins and hints take and how often they are run (upstream: pkg/scheduler/metrics)."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from bayplan.framework.plugin_calls import EvaluationCount
from bayplan.server.instruments import Instruments, exponential_buckets

POINT_BUCKETS = exponential_buckets(0.0001, 2, 12)
PLUGIN_BUCKETS = exponential_buckets(0.00001, 1.5, 20)
WAIT_BUCKETS = exponential_buckets(0.001, 2, 15)

# What kube-scheduler's binder counts as a stage, by the extension point where VolumeBinding does it.
_VOLUME_STAGES = {"Filter": "predicate", "Reserve": "assume", "PreBind": "bind"}
_VOLUME_PLUGIN = "VolumeBinding"


class Evaluations(Collector):
    """Counts runs of plugins by sets of them: those that are run together are counted together, and told apart here."""

    def __init__(self) -> None:
        self._counts: dict[tuple[tuple[str, ...], str, str], EvaluationCount] = {}

    def count(self, plugins: tuple[str, ...], point: str, profile: str) -> EvaluationCount:
        """Return the one count of these plugins at this extension point; there are as many as sets that skip alike."""
        return self._counts.setdefault((plugins, point, profile), EvaluationCount())

    def collect(self) -> Iterable[Metric]:
        """The metric, with a series a plugin and extension point."""
        totals: dict[tuple[str, str, str], int] = {}
        for (plugins, point, profile), count in self._counts.items():
            for plugin in plugins:
                key = (plugin, point, profile)
                totals[key] = totals.get(key, 0) + count.value
        family = CounterMetricFamily(
            "scheduler_plugin_evaluation_total",
            "Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, "
            "Filter, PreScore, and Score); Filter and Score count the nodes that were looked at.",
            labels=("plugin", "extension_point", "profile"),
        )
        for labels, total in totals.items():
            family.add_metric(labels, total)
        yield family


class FrameworkMetrics(Instruments):
    """The part of SchedulerObserver that frameworks, evaluations and the queue report to."""

    def __init__(self) -> None:
        super().__init__()
        self._point_seconds = self.histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            POINT_BUCKETS,
            ("extension_point", "status", "profile"),
        )
        self._plugin_seconds = self.histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point, in a tenth of the cycles.",
            PLUGIN_BUCKETS,
            ("plugin", "extension_point", "status"),
        )
        self._evaluations = Evaluations()
        self.registry.register(self._evaluations)
        self._hint_seconds = self.histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "Duration for running a queueing hint function of a plugin, for a tenth of the events.",
            PLUGIN_BUCKETS,
            ("plugin", "event", "hint"),
        )
        self._unschedulable = self.tally(
            "scheduler_unschedulable_pods",
            "Number of unschedulable pods by the plugin that rejected them; a pod counts once for each of its plugins.",
            ("plugin", "profile"),
            gauge=True,
        )
        self._permit_seconds = self.histogram(
            "scheduler_permit_wait_duration_seconds", "Duration of waiting on permit.", WAIT_BUCKETS, ("result",)
        )
        self._volume_errors = self.tally(
            "scheduler_volume_scheduling_stage_error_total",
            "Volume scheduling stage error count",
            ("operation",),
            preset=((stage,) for stage in _VOLUME_STAGES.values()),
        )

    def extension_point(self, point: str, status: str, profile: str, seconds: float) -> None:
        """See `PluginObserver.extension_point`."""
        self._point_seconds.observe((point, status, profile), seconds)

    def plugin_executed(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """See `PluginObserver.plugin_executed`."""
        self._plugin_seconds.observe((plugin, point, status), seconds)

    def plugin_failed(self, plugin: str, point: str) -> None:
        """See `PluginObserver.plugin_failed`."""
        if plugin == _VOLUME_PLUGIN and point in _VOLUME_STAGES:
            self._volume_errors.values[(_VOLUME_STAGES[point],)] += 1

    def evaluations(self, plugins: tuple[str, ...], point: str, profile: str) -> EvaluationCount:
        """See `PluginObserver.evaluations`."""
        return self._evaluations.count(plugins, point, profile)

    def queueing_hint(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """See `QueueObserver.queueing_hint`."""
        self._hint_seconds.observe((plugin, event, hint), seconds)

    def unschedulable(self, plugin: str, profile: str, delta: int) -> None:
        """See `SchedulerObserver.unschedulable`."""
        self._unschedulable.values[(plugin, profile)] += delta

    def permit_waited(self, result: str, seconds: float) -> None:
        """See `SchedulerObserver.permit_waited`."""
        self._permit_seconds.observe((result,), seconds)
