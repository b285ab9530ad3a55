"""Reports what attempts came to: to the user by Events and conditions, to the metrics by their result."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from bayplan.cache.pod_info import PodInfo
from bayplan.metrics.table import Metrics
from bayplan.scheduler.attempt import UNSCHEDULABLE, Failed, Nominated, Reserved
from bayplan.scheduler.attempt_log import VerdictLog
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.pod_conditions import PodConditions
from bayplan.scheduler.recent_decisions import RecentDecisions

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class FailureReporter:
    """Writes why a pod is still pending; the loop, binding and preemption rely on it for every failed attempt.

    Condition and Event say the same: while a text waits, attempts are only counted on the Event that there is. The pod
    is in the queue already: what cannot be written is logged, and the others go on. `clock` is the loop's, in seconds.
    """

    recorder: EventRecorder
    conditions: PodConditions
    metrics: Metrics
    clock: Callable[[], float]
    decisions: RecentDecisions = field(default_factory=RecentDecisions)
    verdicts: VerdictLog = field(default_factory=VerdictLog, init=False)

    def report(self, failed: Failed) -> None:
        """Report an attempt whose pod is back in the queue; nothing is written on a pod that was deleted."""
        seconds = self.clock() - failed.started
        self.metrics.attempt(failed.queued.profile, "error" if failed.error else "unschedulable", seconds)
        if failed.gone:
            return
        pod, message, rejection = failed.pod, failed.message, failed.fit_error
        self.verdicts.tell(failed, message)
        evaluated = 0 if rejection is None else rejection.diagnosis.node_count
        self.decisions.failed(pod, message, seconds, evaluated=evaluated)
        # Each round tells all members anew, and the next one is as far as the back-off of their group.
        backs_off_until = self.clock() if failed.in_round else failed.queued.backs_off_until
        waits = self.conditions.failed(
            pod, failed.reason, message, nomination=failed.nomination, backs_off_until=backs_off_until
        )
        self._record(pod, partial(self.recorder.failed_scheduling, pod, message, told_later=waits))

    async def nominated(self, nominated: Nominated) -> bool:
        """Report why the pod waits and on which node; returns whether the API server took the nomination."""
        pod, fit_error = nominated.pod, nominated.fit_error
        message, seconds = fit_error.message, self.clock() - nominated.started
        self.verdicts.tell(nominated, message)
        self.metrics.attempt(nominated.queued.profile, "unschedulable", seconds)
        evaluated = fit_error.diagnosis.node_count
        self.decisions.failed(pod, message, seconds, evaluated=evaluated, preempted=fit_error.post_filter.victims)
        self._record(pod, partial(self.recorder.failed_scheduling, pod, message))
        return await self.conditions.nominated(pod, UNSCHEDULABLE, message, nominated.node_name)

    def reserved(self, reserved: Reserved, evaluated: int) -> None:
        """Take note that the pod has a node, of so many that were `evaluated`: no text about it waits any more."""
        self.conditions.forget_text(reserved.queued.uid)
        self.decisions.placed(reserved.pod, reserved.placement, self.clock() - reserved.started, evaluated)

    def write_texts(self, due: float) -> None:
        """Write the texts of conditions that are due by then, and their Events."""
        for pod, message in self.conditions.flush(due):
            self._record(pod, partial(self.recorder.told, pod, message))

    def _record(self, pod: PodInfo, record: Callable[[], None]) -> None:
        try:
            record()
        except Exception:
            logger.exception("event of a failed attempt failed pod=%r", pod.key)
