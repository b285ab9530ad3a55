"""What the scheduling loop reports as it works, for metrics."""

from dataclasses import dataclass
from typing import Literal, Protocol

from bayplan.framework.plugin_calls import PluginObserver

AttemptResult = Literal["scheduled", "unschedulable", "error"]
"""How one attempt to schedule a pod ended, in kube-scheduler's words."""


@dataclass(frozen=True, slots=True)
class WatchState:
    """How fresh one watch is: seconds since its last event or bookmark, and how often it listed again."""

    last_event_age_seconds: float
    relists: int


class SchedulerObserver(PluginObserver, Protocol):
    """The calls the engine makes as it works; the engine relies on each being cheap and never raising.

    All calls come from the event loop's thread. Durations are in seconds. Label values are names from the
    configuration or constants of the code, never text a user can choose: their number is bounded.
    """

    def attempt(self, profile: str, result: AttemptResult, seconds: float) -> None:
        """One attempt ended; `seconds` covers the cycle, and binding when it got that far."""

    def algorithm(self, seconds: float) -> None:
        """Filtering and scoring of one pod ended, whatever the outcome."""

    def bound(self, attempts: int, sli_seconds: float) -> None:
        """A pod was bound at its n-th attempt, `sli_seconds` after its first one (gated time left out)."""

    def permit_waited(self, result: str, seconds: float) -> None:
        """A pod waited for Permit plugins: `Success`, `Unschedulable` (rejected) or `Error` (its room was taken)."""

    def queueing_hint(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """A hint ended with `Queue`, `QueueSkip` or `Error`."""

    def incoming(self, queue: str, event: str) -> None:
        """A pod entered a queue (active, backoff, unschedulable); `event` is the cluster event's label."""

    def unschedulable(self, plugin: str, profile: str, delta: int) -> None:
        """The number of pods that wait because `plugin` rejected them changed by `delta`."""

    def event_handled(self, event: str, seconds: float) -> None:
        """One watch event was taken into cache and queue."""

    def preemption_attempt(self) -> None:
        """Preemption was tried for a pod, whatever it found."""

    def preemption_victims(self, count: int) -> None:
        """Preemption chose a node where `count` pods end."""

    def preemption_executed(self, result: str, seconds: float) -> None:
        """The victims of one preemption were ended (`success`), or one of them could not be (`error`)."""

    def budgets_violated(self, count: int) -> None:
        """Preemption chose a node where disruption budgets are violated so many times."""

    def flushed(self) -> None:
        """A pod was bound only after the periodic flush of the unschedulable pods, not woken by an event."""

    def bind_ambiguous(self) -> None:
        """The answer to a binding was lost: the server may or may not have acted."""

    def bind_conflict(self) -> None:
        """A binding was refused with 409: the pod has a node already, or its name is another's by now."""

    def api_call(self, call_type: str, result: str, seconds: float) -> None:
        """A bind or a status patch ended, tries again included: `success`, or `error` if it was given up."""

    def watch_lagged(self, resource: str, seconds: float) -> None:
        """Events that arrived together on a watch are all in cache and queue, so many seconds after they arrived."""

    def rest_request(self, method: str, code: str, host: str, seconds: float) -> None:
        """A request to the API server ended; `code` is the HTTP status, or `<error>` without an answer."""

    def throttled(self, method: str, host: str, seconds: float) -> None:
        """A request waited this long for the client's own rate limit."""

    def admission_refused(self, method: str, resource: str, namespace: str) -> None:
        """Admission refused a write, or a webhook failed; `resource` is like `pods/binding`."""

    def kubelet_rejected(self, reason: str) -> None:
        """A kubelet did not admit a pod of ours; `reason` is one of a fixed list."""

    def undecodable(self, kind: str) -> None:
        """An object of this kind could not be decoded and was left out."""
