"""Reports attempts that failed: to the user by Events and conditions, to the metrics by their result."""

from collections.abc import Callable
from dataclasses import dataclass

from bayplan.scheduler.attempt import Failed, Nominated
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.observer import SchedulerObserver
from bayplan.scheduler.pod_conditions import PodConditions

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


@dataclass(kw_only=True, eq=False)
class FailureReporter:
    """Writes why a pod is still pending; the loop, binding and preemption rely on it for every failed attempt."""

    recorder: EventRecorder
    conditions: PodConditions
    observer: SchedulerObserver
    clock: Callable[[], float]

    def report(self, failed: Failed) -> None:
        """Report an attempt whose pod is back in the queue; nothing is written on a pod that was deleted."""
        seconds = self.clock() - failed.started
        self.observer.attempt(failed.queued.profile, "error" if failed.error else "unschedulable", seconds)
        if failed.gone:
            return
        self.recorder.failed_scheduling(failed.pod, failed.message)
        reason = SCHEDULER_ERROR if failed.error else UNSCHEDULABLE
        self.conditions.pending(failed.pod, reason, failed.message, nomination=failed.nomination)

    async def nominated(self, nominated: Nominated) -> bool:
        """Report why the pod waits and on which node; returns whether the API server took the nomination."""
        pod, message = nominated.pod, nominated.fit_error.message
        self.observer.attempt(nominated.queued.profile, "unschedulable", self.clock() - nominated.started)
        self.recorder.failed_scheduling(pod, message)
        return await self.conditions.nominated(pod, UNSCHEDULABLE, message, nominated.node_name)
