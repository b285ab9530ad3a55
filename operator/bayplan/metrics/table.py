"""Every metric of the running scheduler in one table: kube-scheduler's (pkg/scheduler/metrics) and bayplan's own.

What is read from the engine at a scrape stands in `bayplan.server.state` and `bayplan.server.state`.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Final, Literal

from bayplan.api.kinds import RESOURCES
from bayplan.metrics.instruments import Counter, Gauge, GroupCounter, Histogram, exponential_buckets

AttemptResult = Literal["scheduled", "unschedulable", "error"]
"""How one attempt to schedule a pod ended, in kube-scheduler's words."""

KUBELET_REASONS: Final = frozenset(
    (
        *("OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods", "OutOfExtendedResources"),
        *("AppArmor", "Evicted", "InitContainerRestartPolicyForbidden", "InvalidNodeInfo", "NodeShutdown"),
        *("PodFeatureUnsupported", "PodLevelResourcesNotSupported", "PodOSNotSupported"),
        *("PodOSSelectorNodeLabelDoesNotMatch", "SupplementalGroupsPolicyNotSupported", "SysctlForbidden"),
        *("TopologyAffinityError", "UnexpectedAdmissionError", "UnexpectedPredicateFailureType", "UnknownReason"),
        *("VolumeAttachmentLimitExceeded", "Other"),
    )
)
"""The reasons that are told apart, as the kubelet's own metric does (pkg/kubelet/kubelet.go, rejectPod)."""

VOLUME_STAGES: Final = {"Filter": "predicate", "Reserve": "assume", "PreBind": "bind"}
"""What kube-scheduler's binder counts as a stage, by the extension point where VolumeBinding does it."""

POD_PREEMPTOR: Final = "pod"
"""What preempts, as a label; upstream has groups of pods besides."""

MAX_REFUSED: Final = 200
"""So many namespaces, times methods and resources, are told apart: a tenant can make any number of them."""

# The SLI's `attempts` label is capped as upstream caps it, or a pod tried all night would add a series a try.
_ATTEMPT_LABELS: Final = (*(str(number) for number in range(15)), "15+")
_FROM_100_MICROSECONDS: Final = exponential_buckets(0.0001, 2, 12)
_FROM_10_MICROSECONDS: Final = exponential_buckets(0.00001, 1.5, 20)
_FROM_1_MILLISECOND: Final = exponential_buckets(0.001, 2, 15)
_PREEMPTION: Final = exponential_buckets(0.001, 2, 16)
_CLIENT: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class Metrics:
    """The metrics that the engine reports to as it works: each stands here once, and callers use it.

    The engine relies on every call costing about a microsecond and never raising. All calls come from the event loop's
    thread. Durations are in seconds. Label values are names from the configuration or constants of the code, never text
    a user can choose: their number is bounded. The methods are for what counts in two metrics, or bounds a label.
    Series exist from the start for each of `profiles`.
    """

    def __init__(self, *, profiles: Iterable[str] = ()) -> None:
        # Attempts.
        self.attempts = Counter(
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods, by the result: 'unschedulable' means no node fits the "
            "pod, 'error' means an internal problem.",
            ("result", "profile"),
            preset=product(("scheduled", "unschedulable", "error"), profiles),
        )
        self.attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm and binding).",
            ("result", "profile"),
            _FROM_1_MILLISECOND,
        )
        self.algorithm_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds.",
            (),
            _FROM_1_MILLISECOND,
        )
        self.sli_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Latency for a pod being scheduled, from the first attempt, over all its attempts.",
            ("attempts",),
            exponential_buckets(0.01, 2, 20),
        )
        self.attempts_per_pod = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            (),
            exponential_buckets(1, 2, 5),
        )
        self.scheduled_after_flush = Counter(
            "scheduler_pod_scheduled_after_flush_total",
            "Number of pods scheduled only after the periodic flush of the unschedulable pods.",
            (),
        )
        # Extension points, plugins and hints.
        self.extension_point_seconds = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            ("extension_point", "status", "profile"),
            _FROM_100_MICROSECONDS,
        )
        self.plugin_seconds = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point, in a tenth of the cycles.",
            ("plugin", "extension_point", "status"),
            _FROM_10_MICROSECONDS,
        )
        self.plugin_evaluations = GroupCounter(
            "scheduler_plugin_evaluation_total",
            "Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, "
            "Filter, PreScore, and Score); Filter and Score count the nodes that were looked at.",
            ("plugin", "extension_point", "profile"),
        )
        self.hint_seconds = Histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "Duration for running a queueing hint function of a plugin, for a tenth of the events.",
            ("plugin", "event", "hint"),
            _FROM_10_MICROSECONDS,
        )
        self.permit_wait_seconds = Histogram(
            "scheduler_permit_wait_duration_seconds", "Duration of waiting on permit.", ("result",), _FROM_1_MILLISECOND
        )
        self.volume_stage_errors = Counter(
            "scheduler_volume_scheduling_stage_error_total",
            "Volume scheduling stage error count",
            ("operation",),
            preset=((stage,) for stage in VOLUME_STAGES.values()),
        )
        # Preemption.
        self.preemption_attempts = Counter(
            "scheduler_preemption_attempts_total", "Total preemption attempts till now.", ()
        )
        self.preemption_victims = Histogram(
            "scheduler_preemption_victims", "Number of selected preemption victims.", (), exponential_buckets(1, 2, 7)
        )
        self.preemption_evaluation_seconds = Histogram(
            "scheduler_preemption_evaluation_duration_seconds",
            "Duration in seconds for identifying the target preemption victims.",
            ("preemptor", "result"),
            _PREEMPTION,
        )
        self.preemption_execution_seconds = Histogram(
            "scheduler_preemption_execution_duration_seconds",
            "Duration in seconds for preempting the target preemption victims, while other pods are scheduled.",
            ("preemptor", "result"),
            _PREEMPTION,
        )
        self.preemption_executions = Counter(
            "scheduler_preemption_goroutines_execution_total",
            "Number of preemptions that were carried out.",
            ("result",),
        )
        self.budget_violations = Counter(
            "scheduler_preemption_pdb_violations_total",
            "Total number of pod disruption budget violations caused by preemption.",
            ("preemptor",),
            preset=((POD_PREEMPTOR,),),
        )
        # Queue and cache.
        self.incoming_pods = Counter(
            "scheduler_queue_incoming_pods_total",
            "Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
        )
        self.unschedulable_pods = Gauge(
            "scheduler_unschedulable_pods",
            "Number of unschedulable pods by the plugin that rejected them; a pod counts once for each of its plugins.",
            ("plugin", "profile"),
        )
        self.event_seconds = Histogram(
            "scheduler_event_handling_duration_seconds",
            "Event handling latency in seconds.",
            ("event",),
            _FROM_100_MICROSECONDS,
        )
        self.watch_lag_seconds = Histogram(
            "bayplan_watch_lag_seconds",
            "Time from the arrival of watch events until cache and queue know all that came with them.",
            ("resource",),
            _FROM_1_MILLISECOND,
        )
        self.undecodable_objects = Counter(
            "bayplan_undecodable_objects_total",
            "Number of objects left out because they cannot be read.",
            ("kind",),
            # From 0 on, or the first object of a kind would be no increase.
            preset=((kind,) for kind in sorted({"Node", "Pod"}.union(resource.kind for resource in RESOURCES))),
        )
        self.cache_comparisons = Counter(
            "bayplan_cache_comparisons_total",
            "Number of times the cache was compared with the API server's content.",
            (),
        )
        self.cache_differences = Gauge(
            "bayplan_cache_differences",
            "Number of objects of which the cache and the API server said different things when last compared.",
            ("kind",),
        )
        # The API server and the kubelets.
        self.requests = Counter(
            "rest_client_requests_total",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "method", "host"),
        )
        self.request_seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host.",
            ("verb", "host"),
            _CLIENT,
        )
        self.throttle_seconds = Histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Client side rate limiter latency in seconds. Broken down by verb, and host.",
            ("verb", "host"),
            _CLIENT,
        )
        self.api_calls = Counter(
            "scheduler_async_api_call_execution_total",
            "Total number of API calls executed by the async dispatcher.",
            ("call_type", "result"),
        )
        self.api_call_seconds = Histogram(
            "scheduler_async_api_call_execution_duration_seconds",
            "Duration in seconds for executing API call in the async dispatcher.",
            ("call_type", "result"),
            _FROM_1_MILLISECOND,
        )
        self.ambiguous_binds = Counter("bayplan_bind_ambiguous_total", "Number of bindings whose answer was lost.", ())
        self.bind_conflicts = Counter(
            "bayplan_bind_conflicts_total",
            "Number of bindings that the API server refused because the pod was on a node already, or was another.",
            (),
        )
        self.admission_refusals = Counter(
            "bayplan_admission_refusals_total",
            "Number of writes that admission refused: a webhook that denied or failed, a policy, or a quota.",
            ("method", "resource", "namespace"),
            # From 0 on, as panels show what there is.
            preset=(("POST", "pods/binding", ""),),
        )
        self.kubelet_rejections = Counter(
            "bayplan_kubelet_rejections_total",
            "Number of pods of this scheduler that the kubelet of their node did not admit, by its reason.",
            ("reason",),
            preset=((reason,) for reason in sorted(KUBELET_REASONS)),
        )
        # The configuration.
        self.config_is_newest = Gauge(
            "bayplan_config_last_reload_successful",
            "Whether the last configuration that was read is in force; 0 means that it was refused.",
            (),
        )
        self.config_read_at = Gauge(
            "bayplan_config_last_reload_success_timestamp_seconds",
            "When the configuration in force was last read, in seconds since the epoch.",
            (),
        )
        self.config_reloads = Counter(
            "bayplan_config_reloads_total",
            "Number of times the configuration was read anew, by the result: 'failure' means that it was refused.",
            ("result",),
            preset=(("success",), ("failure",)),
        )

    def attempt(self, profile: str, result: AttemptResult, seconds: float) -> None:
        """Count an attempt that ended; `seconds` covers the cycle, and binding when it got that far."""
        self.attempts.add(result, profile)
        self.attempt_seconds.observe(seconds, result, profile)

    def bound(self, attempts: int, sli_seconds: float) -> None:
        """Count a pod that was bound at its n-th attempt, `sli_seconds` after its first one (gated time left out)."""
        self.sli_seconds.observe(sli_seconds, _ATTEMPT_LABELS[min(attempts, 15)])
        self.attempts_per_pod.observe(attempts)

    def preemption_executed(self, result: str, seconds: float) -> None:
        """Count a preemption whose victims were ended (`success`), or one of them could not be (`error`)."""
        self.preemption_executions.add(result)
        self.preemption_execution_seconds.observe(seconds, POD_PREEMPTOR, result)

    def cache_compared(self, differences: Mapping[str, int]) -> None:
        """Take the outcome of a comparison of the cache with the API server's content: differences by kind."""
        self.cache_comparisons.add()
        for kind in [kind for (kind,) in self.cache_differences.values]:
            self.cache_differences.set(0, kind)
        for kind, count in differences.items():
            self.cache_differences.set(count, kind)

    def rest_request(self, method: str, code: str, host: str, seconds: float) -> None:
        """Count a request that ended; `code` is the HTTP status, or `<error>` without an answer."""
        self.requests.add(code, method, host)
        self.request_seconds.observe(seconds, method, host)

    def api_call(self, call_type: str, result: str, seconds: float) -> None:
        """Count a bind or a status patch, tries again included: `success`, or `error` if it was given up."""
        self.api_calls.add(call_type, result)
        self.api_call_seconds.observe(seconds, call_type, result)

    def admission_refused(self, method: str, resource: str, namespace: str) -> None:
        """Count a write that admission refused; what comes after `MAX_REFUSED` label sets has no namespace.

        `resource` is like `pods/binding`.
        """
        known = self.admission_refusals.values
        is_told_apart = (method, resource, namespace) in known or len(known) < MAX_REFUSED
        self.admission_refusals.add(method, resource, namespace if is_told_apart else "")
