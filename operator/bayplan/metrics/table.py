"""Every metric of the running scheduler in one table: kube-scheduler's (pkg/scheduler/metrics) and bayplan's own.

What is read from the engine at a scrape stands in `bayplan.server.state`.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Final, Literal

from bayplan.api.kinds import RESOURCES
from bayplan.metrics.instruments import Counter, Gauge, GroupCounter, Histogram, Labels, exponential_buckets

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
POD_GROUP_PREEMPTOR: Final = "podgroup"
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

_TEXTS: Final[Mapping[str, str]] = {
    "scheduler_schedule_attempts_total": (
        "Number of attempts to schedule pods, by the result: 'unschedulable' means no node fits the pod, 'error' "
        "means an internal problem."
    ),
    "scheduler_scheduling_attempt_duration_seconds": (
        "Scheduling attempt latency in seconds (scheduling algorithm and binding)."
    ),
    "scheduler_scheduling_algorithm_duration_seconds": "Scheduling algorithm latency in seconds.",
    "scheduler_pod_scheduling_sli_duration_seconds": (
        "Latency for a pod being scheduled, from the first attempt, over all its attempts."
    ),
    "scheduler_pod_scheduling_attempts": "Number of attempts to successfully schedule a pod.",
    "scheduler_pod_scheduled_after_flush_total": (
        "Number of pods scheduled only after the periodic flush of the unschedulable pods."
    ),
    "scheduler_framework_extension_point_duration_seconds": (
        "Latency for running all plugins of a specific extension point."
    ),
    "scheduler_plugin_execution_duration_seconds": (
        "Duration for running a plugin at a specific extension point, in a tenth of the cycles."
    ),
    "scheduler_plugin_evaluation_total": (
        "Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, "
        "Filter, PreScore, and Score); Filter and Score count the nodes that were looked at."
    ),
    "scheduler_queueing_hint_execution_duration_seconds": (
        "Duration for running a queueing hint function of a plugin, for a tenth of the events."
    ),
    "scheduler_permit_wait_duration_seconds": "Duration of waiting on permit.",
    "scheduler_volume_scheduling_stage_error_total": "Volume scheduling stage error count",
    "scheduler_dra_bindingconditions_allocations_total": (
        "Number of allocations using devices with BindingConditions, by driver, one for each attempt to bind."
    ),
    "scheduler_dra_bindingconditions_wait_duration_seconds": (
        "Time in seconds spent waiting for BindingConditions to be satisfied during PreBind."
    ),
    "dynamic_resource_allocation_resourceclaim_creates_total": (
        "Number of ResourceClaims that were to be created, by status, admin access and kind of the owner."
    ),
    "scheduler_podgroup_schedule_attempts_total": "Number of attempts to schedule pod groups, by the result.",
    "scheduler_podgroup_scheduling_attempt_duration_seconds": "Pod group scheduling attempt latency in seconds.",
    "scheduler_preemption_attempts_total": "Total preemption attempts till now.",
    "scheduler_preemption_victims": "Number of selected preemption victims.",
    "scheduler_preemption_evaluation_duration_seconds": (
        "Duration in seconds for identifying the target preemption victims."
    ),
    "scheduler_preemption_execution_duration_seconds": (
        "Duration in seconds for preempting the target preemption victims, while other pods are scheduled."
    ),
    "scheduler_preemption_goroutines_execution_total": "Number of preemptions that were carried out.",
    "scheduler_preemption_pdb_violations_total": (
        "Total number of pod disruption budget violations caused by preemption."
    ),
    "scheduler_queue_incoming_pods_total": "Number of pods added to scheduling queues by event and queue type.",
    "scheduler_unschedulable_pods": (
        "Number of unschedulable pods by the plugin that rejected them; a pod counts once for each of its plugins."
    ),
    "scheduler_event_handling_duration_seconds": "Event handling latency in seconds.",
    "bayplan_watch_lag_seconds": (
        "Time from the arrival of watch events until cache and queue know all that came with them."
    ),
    "bayplan_undecodable_objects_total": "Number of objects left out because they cannot be read.",
    "bayplan_cache_comparisons_total": "Number of times the cache was compared with the API server's content.",
    "bayplan_cache_differences": (
        "Number of objects of which the cache and the API server said different things when last compared."
    ),
    "rest_client_requests_total": "Number of HTTP requests, partitioned by status code, method, and host.",
    "rest_client_request_duration_seconds": "Request latency in seconds. Broken down by verb, and host.",
    "rest_client_rate_limiter_duration_seconds": (
        "Client side rate limiter latency in seconds. Broken down by verb, and host."
    ),
    "scheduler_async_api_call_execution_total": "Total number of API calls executed by the async dispatcher.",
    "scheduler_async_api_call_execution_duration_seconds": (
        "Duration in seconds for executing API call in the async dispatcher."
    ),
    "bayplan_bind_ambiguous_total": "Number of bindings whose answer was lost.",
    "bayplan_bind_conflicts_total": (
        "Number of bindings that the API server refused because the pod was on a node already, or was another."
    ),
    "bayplan_admission_refusals_total": (
        "Number of writes that admission refused: a webhook that denied or failed, a policy, or a quota."
    ),
    "bayplan_kubelet_rejections_total": (
        "Number of pods of this scheduler that the kubelet of their node did not admit, by its reason."
    ),
    "bayplan_pre_bind_notices_total": (
        "Number of Events of plugins about pods that were about to be bound, by their reason."
    ),
    "bayplan_config_last_reload_successful": (
        "Whether the last configuration that was read is in force; 0 means that it was refused."
    ),
    "bayplan_config_last_reload_success_timestamp_seconds": (
        "When the configuration in force was last read, in seconds since the epoch."
    ),
    "bayplan_config_reloads_total": (
        "Number of times the configuration was read anew, by the result: 'failure' means that it was refused."
    ),
}
"""What each metric says, as it is exported."""


def _counter(name: str, *labels: *Labels, preset: Iterable[tuple[*Labels]] = ()) -> Counter[*Labels]:
    return Counter(name, _TEXTS[name], labels, preset=preset)


def _gauge(name: str, *labels: *Labels) -> Gauge[*Labels]:
    return Gauge(name, _TEXTS[name], labels)


def _histogram(name: str, bounds: tuple[float, ...], *labels: *Labels) -> Histogram[*Labels]:
    return Histogram(name, _TEXTS[name], labels, bounds)


class Metrics:
    """The metrics that the engine reports to as it works: each stands here once, and callers use it.

    The engine relies on every call costing about a microsecond and never raising. All calls come from the event loop's
    thread. Durations are in seconds. Label values are names from the configuration or constants of the code, never text
    a user can choose: their number is bounded. The methods are for what counts in two metrics, or bounds a label.
    Series exist from the start for each of `profiles`.
    """

    def __init__(self, *, profiles: Iterable[str] = ()) -> None:
        # Attempts.
        self.attempts = _counter(
            "scheduler_schedule_attempts_total",
            "result",
            "profile",
            preset=product(("scheduled", "unschedulable", "error"), profiles),
        )
        self.attempt_seconds = _histogram(
            "scheduler_scheduling_attempt_duration_seconds", _FROM_1_MILLISECOND, "result", "profile"
        )
        self.algorithm_seconds = _histogram("scheduler_scheduling_algorithm_duration_seconds", _FROM_1_MILLISECOND)
        self.sli_seconds = _histogram(
            "scheduler_pod_scheduling_sli_duration_seconds", exponential_buckets(0.01, 2, 20), "attempts"
        )
        self.attempts_per_pod = _histogram("scheduler_pod_scheduling_attempts", exponential_buckets(1, 2, 5))
        self.scheduled_after_flush = _counter("scheduler_pod_scheduled_after_flush_total")
        self.pod_group_attempts = _counter(
            "scheduler_podgroup_schedule_attempts_total",
            "result",
            "profile",
            preset=product(("scheduled", "unschedulable", "error"), profiles),
        )
        self.pod_group_attempt_seconds = _histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds", _FROM_1_MILLISECOND, "result", "profile"
        )
        # Extension points, plugins and hints.
        self.extension_point_seconds = _histogram(
            "scheduler_framework_extension_point_duration_seconds",
            _FROM_100_MICROSECONDS,
            "extension_point",
            "status",
            "profile",
        )
        self.plugin_seconds = _histogram(
            "scheduler_plugin_execution_duration_seconds", _FROM_10_MICROSECONDS, "plugin", "extension_point", "status"
        )
        self.plugin_evaluations = GroupCounter(
            "scheduler_plugin_evaluation_total",
            _TEXTS["scheduler_plugin_evaluation_total"],
            ("plugin", "extension_point", "profile"),
        )
        self.hint_seconds = _histogram(
            "scheduler_queueing_hint_execution_duration_seconds", _FROM_10_MICROSECONDS, "plugin", "event", "hint"
        )
        self.permit_wait_seconds = _histogram("scheduler_permit_wait_duration_seconds", _FROM_1_MILLISECOND, "result")
        self.volume_stage_errors = _counter(
            "scheduler_volume_scheduling_stage_error_total",
            "operation",
            preset=((stage,) for stage in VOLUME_STAGES.values()),
        )
        self.device_waits = _counter("scheduler_dra_bindingconditions_allocations_total", "profile", "driver", "status")
        self.device_wait_seconds = _histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            exponential_buckets(0.1, 2, 14),
            "profile",
            "driver",
            "status",
        )
        self.claims_made = _counter(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            *("status", "admin_access", "owner_api_group", "owner_api_kind"),
            preset=((status, "false", "", "Pod") for status in ("success", "failure")),
        )
        # Preemption.
        self.preemption_attempts = _counter("scheduler_preemption_attempts_total")
        self.preemption_victims = _histogram("scheduler_preemption_victims", exponential_buckets(1, 2, 7))
        self.preemption_evaluation_seconds = _histogram(
            "scheduler_preemption_evaluation_duration_seconds", _PREEMPTION, "preemptor", "result"
        )
        self.preemption_execution_seconds = _histogram(
            "scheduler_preemption_execution_duration_seconds", _PREEMPTION, "preemptor", "result"
        )
        self.preemption_executions = _counter("scheduler_preemption_goroutines_execution_total", "result")
        self.budget_violations = _counter(
            "scheduler_preemption_pdb_violations_total", "preemptor", preset=((POD_PREEMPTOR,),)
        )
        # Queue and cache.
        self.incoming_pods = _counter("scheduler_queue_incoming_pods_total", "queue", "event")
        self.unschedulable_pods = _gauge("scheduler_unschedulable_pods", "plugin", "profile")
        self.event_seconds = _histogram("scheduler_event_handling_duration_seconds", _FROM_100_MICROSECONDS, "event")
        self.watch_lag_seconds = _histogram("bayplan_watch_lag_seconds", _FROM_1_MILLISECOND, "resource")
        # From 0 on, or the first object of a kind would be no increase.
        self.undecodable_objects = _counter(
            "bayplan_undecodable_objects_total",
            "kind",
            preset=((kind,) for kind in sorted({"Node", "Pod"}.union(resource.kind for resource in RESOURCES))),
        )
        self.cache_comparisons = _counter("bayplan_cache_comparisons_total")
        self.cache_differences = _gauge("bayplan_cache_differences", "kind")
        # The API server and the kubelets.
        self.requests = _counter("rest_client_requests_total", "code", "method", "host")
        self.request_seconds = _histogram("rest_client_request_duration_seconds", _CLIENT, "verb", "host")
        self.throttle_seconds = _histogram("rest_client_rate_limiter_duration_seconds", _CLIENT, "verb", "host")
        self.api_calls = _counter("scheduler_async_api_call_execution_total", "call_type", "result")
        self.api_call_seconds = _histogram(
            "scheduler_async_api_call_execution_duration_seconds", _FROM_1_MILLISECOND, "call_type", "result"
        )
        self.ambiguous_binds = _counter("bayplan_bind_ambiguous_total")
        self.bind_conflicts = _counter("bayplan_bind_conflicts_total")
        # From 0 on, as panels show what there is.
        self.admission_refusals = _counter(
            "bayplan_admission_refusals_total",
            "method",
            "resource",
            "namespace",
            preset=(("POST", "pods/binding", ""),),
        )
        self.kubelet_rejections = _counter(
            "bayplan_kubelet_rejections_total", "reason", preset=((reason,) for reason in sorted(KUBELET_REASONS))
        )
        self.pre_bind_notices = _counter(
            "bayplan_pre_bind_notices_total", "reason", preset=(("BindingConditionsPending",), ("DeviceTakenTwice",))
        )
        # The configuration.
        self.config_is_newest = _gauge("bayplan_config_last_reload_successful")
        self.config_read_at = _gauge("bayplan_config_last_reload_success_timestamp_seconds")
        self.config_reloads = _counter("bayplan_config_reloads_total", "result", preset=(("success",), ("failure",)))

    def attempt(self, profile: str, result: AttemptResult, seconds: float) -> None:
        """Count an attempt that ended; `seconds` covers the cycle, and binding when it got that far."""
        self.attempts.add(result, profile)
        self.attempt_seconds.observe(seconds, result, profile)

    def pod_group_attempt(self, profile: str, result: str, seconds: float) -> None:
        """Count a round of a pod group; binds are no part of it."""
        self.pod_group_attempts.add(result, profile)
        self.pod_group_attempt_seconds.observe(seconds, result, profile)

    def bound(self, attempts: int, sli_seconds: float) -> None:
        """Count a pod that was bound at its n-th attempt, `sli_seconds` after its first one (gated time left out)."""
        self.sli_seconds.observe(sli_seconds, _ATTEMPT_LABELS[min(attempts, 15)])
        self.attempts_per_pod.observe(attempts)

    def preemption_executed(self, result: str, seconds: float, preemptor: str = POD_PREEMPTOR) -> None:
        """Count a preemption whose victims were ended (`success`), or one of them could not be (`error`)."""
        self.preemption_executions.add(result)
        self.preemption_execution_seconds.observe(seconds, preemptor, result)

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
