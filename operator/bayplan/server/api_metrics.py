"""What requests to the API server take and how they end, and how soon what it tells is known."""

from bayplan.api.kinds import RESOURCES
from bayplan.scheduler.kubelet_rejections import REASONS
from bayplan.server.instruments import Instruments, exponential_buckets

CLIENT_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
MAX_REFUSED = 200
"""So many namespaces, times methods and resources, are told apart: a tenant can make any number of them."""
CALL_BUCKETS = exponential_buckets(0.001, 2, 15)


class ApiMetrics(Instruments):
    """The part of SchedulerObserver that clients, dispatcher, binder and watches report to."""

    def __init__(self) -> None:
        super().__init__()
        self._requests = self.tally(
            "rest_client_requests_total",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "method", "host"),
        )
        self._request_seconds = self.histogram(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host.",
            CLIENT_BUCKETS,
            ("verb", "host"),
        )
        self._throttle_seconds = self.histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Client side rate limiter latency in seconds. Broken down by verb, and host.",
            CLIENT_BUCKETS,
            ("verb", "host"),
        )
        self._calls = self.tally(
            "scheduler_async_api_call_execution_total",
            "Total number of API calls executed by the async dispatcher.",
            ("call_type", "result"),
        )
        self._call_seconds = self.histogram(
            "scheduler_async_api_call_execution_duration_seconds",
            "Duration in seconds for executing API call in the async dispatcher.",
            CALL_BUCKETS,
            ("call_type", "result"),
        )
        self._undecodable = self.tally(
            "bayplan_undecodable_objects_total",
            "Number of objects left out because they cannot be read.",
            ("kind",),
            # From 0 on, or the first object of a kind would be no increase.
            preset=((kind,) for kind in sorted({"Node", "Pod"}.union(resource.kind for resource in RESOURCES))),
        )
        self._ambiguous = self.tally("bayplan_bind_ambiguous_total", "Number of bindings whose answer was lost.")
        self._conflicts = self.tally(
            "bayplan_bind_conflicts_total",
            "Number of bindings that the API server refused because the pod was on a node already, or was another.",
        )
        self._admission_refusals = self.tally(
            "bayplan_admission_refusals_total",
            "Number of writes that admission refused: a webhook that denied or failed, a policy, or a quota.",
            ("method", "resource", "namespace"),
            # From 0 on, as panels show what there is.
            preset=(("POST", "pods/binding", ""),),
        )
        self._kubelet_rejections = self.tally(
            "bayplan_kubelet_rejections_total",
            "Number of pods of this scheduler that the kubelet of their node did not admit, by its reason.",
            ("reason",),
            preset=((reason,) for reason in sorted(REASONS)),
        )
        self._lag_seconds = self.histogram(
            "bayplan_watch_lag_seconds",
            "Time from the arrival of watch events until cache and queue know all that came with them.",
            CALL_BUCKETS,
            ("resource",),
        )

    def rest_request(self, method: str, code: str, host: str, seconds: float) -> None:
        """See `SchedulerObserver.rest_request`."""
        self._requests.values[(code, method, host)] += 1
        self._request_seconds.observe((method, host), seconds)

    def throttled(self, method: str, host: str, seconds: float) -> None:
        """See `SchedulerObserver.throttled`."""
        self._throttle_seconds.observe((method, host), seconds)

    def api_call(self, call_type: str, result: str, seconds: float) -> None:
        """See `SchedulerObserver.api_call`."""
        labels = (call_type, result)
        self._calls.values[labels] += 1
        self._call_seconds.observe(labels, seconds)

    def undecodable(self, kind: str) -> None:
        """See `SchedulerObserver.undecodable`."""
        self._undecodable.values[(kind,)] += 1

    def bind_ambiguous(self) -> None:
        """See `SchedulerObserver.bind_ambiguous`."""
        self._ambiguous.values[()] += 1

    def bind_conflict(self) -> None:
        """See `SchedulerObserver.bind_conflict`."""
        self._conflicts.values[()] += 1

    def admission_refused(self, method: str, resource: str, namespace: str) -> None:
        """See `SchedulerObserver.admission_refused`; what comes after `MAX_REFUSED` label sets has no namespace."""
        labels = (method, resource, namespace)
        refusals = self._admission_refusals.values
        refusals[labels if labels in refusals or len(refusals) < MAX_REFUSED else (method, resource, "")] += 1

    def kubelet_rejected(self, reason: str) -> None:
        """See `SchedulerObserver.kubelet_rejected`."""
        self._kubelet_rejections.values[(reason,)] += 1

    def watch_lagged(self, resource: str, seconds: float) -> None:
        """See `SchedulerObserver.watch_lagged`."""
        self._lag_seconds.observe((resource,), seconds)
