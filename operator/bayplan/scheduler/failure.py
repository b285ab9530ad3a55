"""What follows from an attempt that failed: the pod goes back to the queue, and the user is told why."""

from collections.abc import Callable

from bayplan.cache.pod_info import PodInfo
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
        nomination_ends: bool = True,
        retry_after: float | None = None,
    ) -> None:
        """Tell the user, and give the pod back to the queue: rejected pods wait for an event, errors back off.

        A pod that no plugin rejected (there are no nodes) backs off as after an error, though it is called
        Unschedulable, as in kube-scheduler. Its nomination ends, unless preemption had nothing to say about it. A
        rejected pod is tried again in `retry_after` seconds, when time alone may help it.
        """
        self._observer.attempt(queued.profile, "error" if error else "unschedulable", self._clock() - started)
        gone = self._queue.get(queued.uid) is None
        self.hand_back(queued, rejectors=rejectors, error=error, retry_after=retry_after)
        pod = queued.pod_info
        told = self._end_nomination(pod) if nomination_ends else None
        if gone:
            return
        self._recorder.failed_scheduling(pod, message)
        self._conditions.pending(pod, SCHEDULER_ERROR if error else UNSCHEDULABLE, message, nomination=told)

    def hand_back(
        self,
        queued: QueuedPodInfo,
        *,
        rejectors: frozenset[str] = NO_PLUGINS,
        error: bool = False,
        retry_after: float | None = None,
    ) -> None:
        """Give the pod back to the queue and say nothing."""
        retry_at = None if retry_after is None else self._clock() + retry_after
        self._queue.add_unschedulable(queued, rejector_plugins=rejectors, error=error, retry_at=retry_at)

    async def nominated(self, queued: QueuedPodInfo, message: str, node_name: str, started: float) -> bool:
        """Tell the user why the pod waits and where room is made for it; whether the API server knows.

        The pod stays in flight.
        """
        pod = queued.pod_info
        self._observer.attempt(queued.profile, "unschedulable", self._clock() - started)
        self._recorder.failed_scheduling(pod, message)
        return await self._conditions.nominated(pod, UNSCHEDULABLE, message, node_name)

    def preemption_failed(self, queued: QueuedPodInfo, message: str, node_name: str) -> None:
        """Withdraw the nomination, if it is still to that node, and let the pod back off."""
        uid = queued.uid
        gone = self._queue.get(uid) is None
        ours = self._queue.nominator.nominated_node(uid) == node_name
        self.hand_back(queued, error=True)
        if not gone and ours:
            self._queue.withdraw(uid)
            self._conditions.pending(queued.pod_info, UNSCHEDULABLE, message, nomination="")

    def nomination_ended(self, pod: PodInfo) -> None:
        """Tell the API that a pod waiting in the queue is nominated no more."""
        self._conditions.nomination_ended(pod)

    def _end_nomination(self, pod: PodInfo) -> str | None:
        """Withdraw the pod's nomination; what is to be written about it."""
        if self._queue.nominator.nominated_node(pod.uid) is None and not pod.pod.status.nominated_node_name:
            return None
        self._queue.withdraw(pod.uid)
        return ""
