"""Reports attempts that failed: to the user by Events and conditions, to the metrics by their result."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from weakref import WeakKeyDictionary

from bayplan.cache.pod_info import PodInfo
from bayplan.metrics.table import Metrics
from bayplan.queue.queued_pod import release_time
from bayplan.scheduler.api_calls import (
    ApiCall,
    WrittenCondition,
    condition_message,
    nomination_call,
    pod_scheduled_call,
    shown_condition,
    utc_now,
)
from bayplan.scheduler.attempt import UNSCHEDULABLE, Failed, Nominated
from bayplan.scheduler.attempt_log import VerdictLog
from bayplan.scheduler.condition_texts import ConditionTexts
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.recent_decisions import RecentDecisions

logger = logging.getLogger(__name__)


class Patch(Protocol):
    """Sends a pod's patch, and calls `ended` with whether it was done."""

    def __call__(
        self, uid: str, call: ApiCall, ended: Callable[[bool], None], *, urgent: bool = False, patient: bool = False
    ) -> None:
        """Send the patch `call` of the pod `uid`: an `urgent` one before all others, a `patient` one for minutes."""


@dataclass(eq=False)
class PodConditions:
    """Keeps PodScheduled=False and nominations up to date; the scheduling loop relies on it never raising.

    A pod may fail again before the watch shows what was written, so that is remembered with the version of the pod it
    was written for; a newer version speaks for itself. A write that was given up is forgotten, so that the next
    attempt makes up for it.
    """

    patch: Patch
    now: Callable[[], datetime] = utc_now
    _written: WeakKeyDictionary[PodInfo, WrittenCondition] = field(default_factory=WeakKeyDictionary, init=False)

    def pending(self, pod: PodInfo, reason: str, message: str, *, nomination: str | None = None) -> None:
        """Write why the pod is pending, unless that is written already; `nomination` as in `pod_scheduled_call`."""
        self._write(pod, (reason, message), nomination, lambda done: None)

    def told(self, pod: PodInfo) -> WrittenCondition | None:
        """Return what was written on this version of the pod, or the condition that it shows; None if there is none."""
        return self._written.get(pod) or shown_condition(pod)

    async def nominated(self, pod: PodInfo, reason: str, message: str, node_name: str) -> bool:
        """Write the nomination and the condition in one request; whether the API server took it.

        Victims end only then, so it goes before all that may wait.
        """
        ended, end = _awaited()
        self._write(pod, (reason, message), node_name, end, urgent=True)
        return await ended

    async def expected_on(self, pod: PodInfo, node_name: str) -> bool:
        """Write the node that the pod is about to be bound to, and nothing else; whether the API server took it."""
        ended, end = _awaited()
        self.patch(pod.uid, nomination_call(pod, node_name), end, urgent=True)
        return await ended

    def nomination_ended(self, pod: PodInfo) -> None:
        """Take back the pod's nomination, and nothing else."""
        try:
            self.patch(pod.uid, nomination_call(pod, ""), lambda done: None, patient=True)
        except ValueError as error:
            logger.warning("nomination cannot be taken back pod=%r error=%s", pod.key, error)

    def _write(
        self,
        pod: PodInfo,
        condition: WrittenCondition,
        nomination: str | None,
        ended: Callable[[bool], None],
        *,
        urgent: bool = False,
    ) -> None:
        reason, message = condition[0], condition_message(condition[1])
        try:
            call = pod_scheduled_call(
                pod, reason, message, self.now(), written=self._written.get(pod), nomination=nomination
            )
        except ValueError as error:
            logger.warning("condition cannot be written pod=%r error=%s", pod.key, error)
            ended(False)
            return
        if call is None:
            ended(True)
            return
        condition = self._written[pod] = (reason, message)

        def end(done: bool) -> None:
            if not done and self._written.get(pod) == condition:
                del self._written[pod]
            ended(done)

        self.patch(pod.uid, call, end, urgent=urgent, patient=not urgent)


def _awaited() -> tuple[asyncio.Future[bool], Callable[[bool], None]]:
    """A future, and what a patch is to call at its end to set it."""
    ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def end(done: bool) -> None:
        if not ended.done():
            ended.set_result(done)

    return ended, end


@dataclass(eq=False)
class FailureReporter:
    """Writes why a pod is still pending; the loop, binding and preemption rely on it for every failed attempt.

    Condition and Event say the same: while a text waits, attempts are only counted on the Event that there is. The pod
    is in the queue already: what cannot be written is logged, and the others go on.
    """

    recorder: EventRecorder
    conditions: PodConditions
    metrics: Metrics
    clock: Callable[[], float]
    newest: Callable[[str], PodInfo | None]
    decisions: RecentDecisions = field(default_factory=RecentDecisions)
    texts: ConditionTexts = field(init=False)
    verdicts: VerdictLog = field(default_factory=VerdictLog, init=False)

    def __post_init__(self) -> None:
        self.texts = ConditionTexts(self.newest, self.conditions.told, self._write, self._write_late, self.clock)

    def report(self, failed: Failed) -> None:
        """Report an attempt whose pod is back in the queue; nothing is written on a pod that was deleted."""
        seconds = self.clock() - failed.started
        self.metrics.attempt(failed.queued.profile, "error" if failed.error else "unschedulable", seconds)
        if failed.gone:
            return
        self.verdicts.tell(failed, failed.message)
        rejection = failed.fit_error
        evaluated = 0 if rejection is None else rejection.diagnosis.node_count
        self.decisions.failed(failed.pod, failed.message, seconds, evaluated=evaluated)
        expiration = failed.queued.backoff_expiration
        # Each round tells all members anew, and the next one is as far as the back-off of their group.
        backs_off_until = self.clock() if failed.in_round else None if expiration is None else release_time(expiration)
        waits = self.texts.failed(
            failed.pod,
            (failed.reason, failed.message),
            failed.nomination,
            backs_off_until,
        )
        self._record(failed.pod, failed.message, told_later=waits)

    async def nominated(self, nominated: Nominated) -> bool:
        """Report why the pod waits and on which node; returns whether the API server took the nomination."""
        pod, fit_error = nominated.pod, nominated.fit_error
        message, seconds = fit_error.message, self.clock() - nominated.started
        self.texts.forget(pod.uid)
        self.verdicts.tell(nominated, message)
        self.metrics.attempt(nominated.queued.profile, "unschedulable", seconds)
        evaluated = fit_error.diagnosis.node_count
        self.decisions.failed(pod, message, seconds, evaluated=evaluated, preempted=fit_error.victims)
        self._record(pod, message)
        return await self.conditions.nominated(pod, UNSCHEDULABLE, message, nominated.node_name)

    def _record(self, pod: PodInfo, message: str, *, told_later: bool = False) -> None:
        try:
            self.recorder.failed_scheduling(pod, message, told_later=told_later)
        except Exception:
            logger.exception("event of a failed attempt failed pod=%r", pod.key)

    def _write(self, pod: PodInfo, condition: WrittenCondition, nomination: str | None) -> None:
        try:
            self.conditions.pending(pod, *condition, nomination=nomination)
        except Exception:
            logger.exception("condition cannot be written pod=%r", pod.key)

    def _write_late(self, pod: PodInfo, condition: WrittenCondition) -> None:
        self._write(pod, condition, None)
        try:
            self.recorder.told(pod, condition[1])
        except Exception:
            logger.exception("event of a failed attempt failed pod=%r", pod.key)
