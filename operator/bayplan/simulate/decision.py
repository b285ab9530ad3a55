"""What came of one attempt on one pod, and how it is reported."""

from dataclasses import dataclass

from msgspec import UNSET

from bayplan.cache.pod_info import PodInfo
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.scheduler.cycle import FitError, Placement
from bayplan.simulate.report import AttemptReport, PodReport, node_verdicts, preemption

Outcome = Placement | FitError


@dataclass(frozen=True, slots=True)
class Decision:
    """One attempt on one pod; without an outcome no decision could be made. `message` says why there is no node."""

    pod: PodInfo
    outcome: Outcome | None
    message: str | None = None

    def attempt(self, *, explained: bool = True) -> AttemptReport:
        """The decision as it is reported, with the trace that was made unless `explained` is false."""
        outcome = self.outcome
        if outcome is None:
            return AttemptReport(None, None, [], self.message, 0)
        traced = explained and outcome.trace is not None
        nodes = node_verdicts(outcome.trace or {}) if traced else UNSET
        explanation = (outcome.explanation if explained else None) or UNSET
        if isinstance(outcome, Placement):
            return AttemptReport(
                outcome.node_name, None, [], None, outcome.feasible_nodes, nodes, explanation=explanation
            )
        victims = [victim.key for victim in outcome.victims]
        compared = preemption(outcome.candidates) if traced and outcome.candidates else UNSET
        nominated = outcome.nominated_node_name or None
        return AttemptReport(None, nominated, victims, self.message, 0, nodes, compared, explanation)


def pod_report(pod: PodInfo) -> PodReport:
    """The report of a pod that was not tried yet."""
    return PodReport(pod.namespace, pod.name, pod.pod.spec.scheduler_name, [])


def gated_report(queued: QueuedPodInfo) -> PodReport:
    """The report of a pod that a gate keeps from being tried."""
    report = pod_report(queued.pod_info)
    report.attempts.append(AttemptReport(None, None, [], queued.gating_message, 0))
    return report
