"""What follows from an attempt that failed: the pod goes back to the queue, and the user is told why."""

from collections.abc import Callable

from bayplan.queue.queued_pod import NO_PLUGINS, QueuedPodInfo
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.observer import SchedulerObserver
from bayplan.scheduler.pod_conditions import PodConditions

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


class FailureHandler:
    """Gives failed pods back to the queue; the loop, binding and preemption rely on it as the only way back."""

    def __init__(
        self,
        *,
        queue: SchedulingQueue,
        recorder: EventRecorder,
        conditions: PodConditions,
        observer: SchedulerObserver,
        clock: Callable[[], float],
    ) -> None:
        self._queue = queue
        self._recorder = recorder
        self._conditions = conditions
        self._observer = observer
        self._clock = clock

    def fail(
        self,
        queued: QueuedPodInfo,
        message: str,
        started: float,
        *,
        error: bool = False,
        rejectors: frozenset[str] = NO_PLUGINS,
    ) -> None:
        """Tell the user, and give the pod back to the queue: rejected pods wait for an event, errors back off.

        A pod that no plugin rejected (there are no nodes) backs off as after an error, though it is called
        Unschedulable, as in kube-scheduler.
        """
        uid = queued.uid
        self._observer.attempt(queued.profile, "error" if error else "unschedulable", self._clock() - started)
        gone = self._queue.get(uid) is None
        self._queue.add_unschedulable(queued, rejector_plugins=rejectors, error=error)
        if gone:
            return
        pod = queued.pod_info
        self._recorder.failed_scheduling(pod, message)
        self._conditions.pending(pod, SCHEDULER_ERROR if error else UNSCHEDULABLE, message)
