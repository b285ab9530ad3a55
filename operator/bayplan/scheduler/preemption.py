"""Carries out a preemption: nominates the pod, ends the victims, and gives the pod back to the queue."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

import msgspec

from bayplan.api.client import ApiResponse
from bayplan.api.quantity import QuantityError
from bayplan.api.watch_event import UNREADABLE, Identity, read_pod
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.api_calls import ApiCall, delete_call, disruption_target_call, eviction_call
from bayplan.scheduler.cycle import FitError
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.failure import FailureHandler
from bayplan.scheduler.observer import SchedulerObserver

logger = logging.getLogger(__name__)

_VICTIMS_AT_ONCE = 8
_GONE = frozenset({404, 409, 422})
"""What a pod that is deleted, or recreated under its name, answers to calls with its UID."""


class _End(Identity, rename="camel"):
    """What tells a pod that is gone from one that is going."""

    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None


class _Ending(msgspec.Struct):
    metadata: _End


_end_decoder = msgspec.json.Decoder(_Ending)


class PreemptionExecutor:
    """Makes the room that a decision found (upstream: framework/preemption/executor.go).

    The scheduling loop relies on this order: the nomination counts at once, for decisions about other pods; then the
    API learns of nomination and condition in one request; only then victims end. The pod stays in flight until all
    calls are made, so it is not tried again meanwhile and misses no event; then it waits for its victims like any
    rejected pod. If a victim cannot be ended the nomination is withdrawn, no further victim ends, and the pod backs
    off. `reject_waiting` takes back a bind that was not posted yet; `victim_gone` is told of victims without a grace
    period, which are gone with the API server's answer. An outcome that `evicts` ends its victims through the Eviction
    API, one by one, so that a PodDisruptionBudget can refuse.
    """

    def __init__(
        self,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        dispatcher: Dispatcher,
        recorder: EventRecorder,
        failures: FailureHandler,
        observer: SchedulerObserver,
        reject_waiting: Callable[[str], bool],
        victim_gone: Callable[[str], None],
        now: Callable[[], datetime],
        wake: Callable[[], None],
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._dispatcher = dispatcher
        self._recorder = recorder
        self._failures = failures
        self._observer = observer
        self._reject_waiting = reject_waiting
        self._victim_gone = victim_gone
        self._now = now
        self._wake = wake
        self._ending: dict[str, asyncio.Task[str]] = {}

    def start(self, queued: QueuedPodInfo, outcome: FitError, node_name: str, started: float) -> None:
        """Nominate the popped pod to the node now, and see to the rest beside the loop."""
        pod = queued.pod_info
        self._queue.nominate(pod, node_name)
        for other in self._queue.nominator.nominated_pods_for_node(node_name):
            # Pods of other schedulers are theirs to move.
            if other.priority < pod.priority and self._queue.get(other.uid) is not None:
                self._queue.withdraw(other.uid, wake=True)
                self._failures.nomination_ended(other)
        victims = [victim.uid for victim in outcome.victims if not _is_terminating(victim)]
        if victims:
            self._observer.preemption_victims(len(outcome.victims))
        # A bind not posted yet is taken back now: soon it would be too late, and the victim would have to be deleted.
        victims = [uid for uid in victims if not self._rejected(uid, pod, node_name)]
        self._dispatcher.preempt(lambda: self._carry_out(queued, outcome, node_name, victims, started))

    def sweep(self) -> None:
        """Withdraw nominations to nodes that are gone; pods in flight are left to their attempt."""
        nominator = self._queue.nominator
        for node_name in [name for name in nominator.nodes() if not self._cache.has_node(name)]:
            for pod in nominator.nominated_pods_for_node(node_name):
                queued = self._queue.get(pod.uid)
                if queued is not None and queued.sub_queue is not None:
                    logger.info("nomination to a node that is gone pod=%r node=%r", pod.key, node_name)
                    self._queue.withdraw(pod.uid, wake=True)
                    self._failures.nomination_ended(pod)

    def _rejected(self, uid: str, preemptor: PodInfo, node_name: str) -> bool:
        victim = self._cache.pod(uid)
        if victim is None or not self._cache.is_assumed(uid) or not self._reject_waiting(uid):
            return False
        self._recorder.preempted(victim, preemptor, node_name, in_memory=True)
        return True

    async def _carry_out(
        self, queued: QueuedPodInfo, outcome: FitError, node_name: str, victims: list[str], started: float
    ) -> None:
        pod = queued.pod_info
        try:
            if await self._failures.nominated(queued, outcome.message, node_name, started):
                problem = await self._end_all(pod, node_name, victims, evicts=outcome.evicts)
            else:
                problem = "the nomination was not written"
        except Exception as error:
            logger.exception("preemption failed pod=%r", pod.key)
            problem = repr(error)
        if problem:
            logger.warning("preemption given up pod=%r node=%r problem=%s", pod.key, node_name, problem)
            self._failures.preemption_failed(queued, outcome.message, node_name)
        else:
            self._failures.hand_back(queued, rejectors=outcome.diagnosis.rejector_plugins)
        self._wake()

    async def _end_all(self, preemptor: PodInfo, node_name: str, victims: list[str], *, evicts: bool) -> str:
        """End the victims, several at once; the first problem, which spares those not begun, or "".

        So does the preemptor's end, or a pod of higher priority that took the node from it.
        """
        problems: list[str] = []
        left = iter(victims)

        async def worker() -> None:
            for uid in left:
                if problems or self._queue.nominator.nominated_node(preemptor.uid) != node_name:
                    return
                if problem := await self._end(uid, preemptor, node_name, evicts=evicts):
                    problems.append(problem)

        await asyncio.gather(*(worker() for _ in range(1 if evicts else min(_VICTIMS_AT_ONCE, len(victims)))))
        return problems[0] if problems else ""

    async def _end(self, uid: str, preemptor: PodInfo, node_name: str, *, evicts: bool) -> str:
        """End one victim unless it ends already, also for another preemptor; what went wrong, or ""."""
        running = self._ending.get(uid)
        if running is not None:
            return await running
        victim = self._cache.pod(uid)
        if victim is None or _is_terminating(victim):
            return ""
        work = self._evict if evicts else self._delete
        task = self._ending[uid] = asyncio.create_task(work(victim, preemptor, node_name))
        try:
            return await task
        finally:
            del self._ending[uid]

    async def _delete(self, victim: PodInfo, preemptor: PodInfo, node_name: str) -> str:
        condition = disruption_target_call(victim, preemptor.pod.spec.scheduler_name, self._now())
        for call in (condition, delete_call(victim)):
            if call is None:
                continue
            answer = await self._dispatcher.request(call)
            if answer is not None and answer.status in _GONE:
                return ""
            if problem := _problem(call, answer):
                return problem
        self._ended(victim, preemptor, node_name, answer)
        return ""

    async def _evict(self, victim: PodInfo, preemptor: PodInfo, node_name: str) -> str:
        """Eviction comes before the condition: a pod that may stay must not say that it ends."""
        call = eviction_call(victim)
        answer = await self._dispatcher.request(call)
        if answer is not None and answer.status in _GONE:
            return ""
        if problem := _problem(call, answer):
            return problem
        condition = disruption_target_call(victim, preemptor.pod.spec.scheduler_name, self._now())
        answer = None if condition is None else await self._dispatcher.request(condition)
        self._ended(victim, preemptor, node_name, answer)
        return ""

    def _ended(self, victim: PodInfo, preemptor: PodInfo, node_name: str, answer: ApiResponse | None) -> None:
        logger.info("preempted victim=%r pod=%r node=%r", victim.key, preemptor.key, node_name)
        self._recorder.preempted(victim, preemptor, node_name)
        self._learn(victim.uid, answer)

    def _learn(self, uid: str, answer: ApiResponse | None) -> None:
        """Count the victim as terminating, or gone, as soon as the API server says so; nobody preempts it again.

        The watch may be ahead of the answer: it is right where it already knows as much.
        """
        held = self._cache.pod(uid)
        if held is None or answer is None or answer.status >= 400:
            return
        try:
            end = _end_decoder.decode(answer.body).metadata
        except UNREADABLE:
            return
        if end.uid != uid or end.deletion_timestamp is None:
            return
        if end.deletion_grace_period_seconds == 0 and not end.finalizers:
            self._victim_gone(uid)
            return
        told = None if _is_terminating(held) else read_pod(answer.body)
        if told is None or not told.spec.node_name:
            return
        try:
            self._cache.set_pod(PodInfo(told))
        except QuantityError as error:
            logger.debug("answer about a victim cannot be read pod=%r error=%s", held.key, error)


def _is_terminating(pod: PodInfo) -> bool:
    return pod.pod.metadata.deletion_timestamp is not None


def _problem(call: ApiCall, answer: ApiResponse | None) -> str:
    if answer is None:
        return f"{call.method} of {call.about!r} had no answer"
    return "" if answer.status < 400 else f"{call.method} of {call.about!r} answered {answer.status}"
