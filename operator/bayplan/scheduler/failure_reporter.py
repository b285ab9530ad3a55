"""Reports attempts that failed: to the user by Events and conditions, to the metrics by their result."""

from collections.abc import Callable

from bayplan.scheduler.attempt import Failed, Nominated
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.observer import SchedulerObserver
from bayplan.scheduler.pod_conditions import PodConditions

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


class FailureReporter:
    """Writes why a pod is still pending; the loop, binding and preemption rely on it for every failed attempt."""

    def __init__(
        self,
        *,
        recorder: EventRecorder,
        conditions: PodConditions,
        observer: SchedulerObserver,
        clock: Callable[[], float],
    ) -> None:
        self._recorder = recorder
        self._conditions = conditions
        self._observer = observer
        self._clock = clock

    def report(self, failed: Failed) -> None:
        """Report an attempt whose pod is back in the queue; nothing is written on a pod that was deleted."""
        seconds = self._clock() - failed.started
        self._observer.attempt(failed.queued.profile, "error" if failed.error else "unschedulable", seconds)
        if failed.gone:
            return
        self._recorder.failed_scheduling(failed.pod, failed.message)
        reason = SCHEDULER_ERROR if failed.error else UNSCHEDULABLE
        self._conditions.pending(failed.pod, reason, failed.message, nomination=failed.nomination)

    async def nominated(self, nominated: Nominated) -> bool:
        """Report why the pod waits and on which node; returns whether the API server took the nomination."""
        pod, message = nominated.pod, nominated.fit_error.message
        self._observer.attempt(nominated.queued.profile, "unschedulable", self._clock() - nominated.started)
        self._recorder.failed_scheduling(pod, message)
        return await self._conditions.nominated(pod, UNSCHEDULABLE, message, nominated.node_name)
