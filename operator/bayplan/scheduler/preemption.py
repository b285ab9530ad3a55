"""Carries out a preemption: nominates the pod, ends the victims, and gives the pod back to the queue."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import msgspec

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.quantity import QuantityError
from bayplan.api.response import ApiResponse
from bayplan.api.watch_event import Identity, read_pod
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.metrics.table import POD_GROUP_PREEMPTOR, POD_PREEMPTOR, Metrics
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.api_calls import delete_call, disruption_target_call, eviction_call, utc_now
from bayplan.scheduler.attempt import UNSCHEDULABLE, Nominated, return_to_queue
from bayplan.scheduler.cancellation import is_being_cancelled
from bayplan.scheduler.decision import FitError
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.failure_reporter import FailureReporter
from bayplan.scheduler.group_attempts import GroupNominated
from bayplan.scheduler.refused_victims import RefusedVictims, Unended, is_gone, several_at_once

logger = logging.getLogger(__name__)

_VICTIMS_AT_ONCE = 8


class _End(Identity, rename="camel"):
    """The fields that distinguish a pod that is gone from one that is terminating."""

    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None


class _Ending(msgspec.Struct):
    metadata: _End


_end_decoder = msgspec.json.Decoder(_Ending)


@dataclass(frozen=True, slots=True, eq=False)
class _Cause:
    """For whom victims end: a pod and its node, or a group, for which a member stands and the whole cluster.

    None ends any more once it is not `is_wanted`. With `evicts` they end through the Eviction API. `nominate` writes
    what has to be there before, and `conclude` is told the problem, if there was one.
    """

    preemptor: PodInfo
    node_name: str
    is_wanted: Callable[[], bool]
    evicts: bool
    conclude: Callable[[Unended | None], None]
    nominate: Callable[[], Awaitable[Unended | None]] | None = None
    group_uid: str = ""


@dataclass(kw_only=True, eq=False)
class PreemptionExecutor:
    """Makes the room that a decision found (upstream: framework/preemption/executor.go).

    The scheduling loop relies on this order: the nomination counts since the attempt; victims whose end the API server
    may well refuse are asked for by dry run, and if it refuses one nothing is done at all; nomination and condition are
    written in one request; only then victims end, those that may be refused first. The pod stays in flight until all
    calls are made, so it is not tried again meanwhile and misses no event; then it waits for its victims like any
    rejected pod. If a victim cannot be ended the nomination is withdrawn, no further victim ends, and the pod backs
    off. `reject_waiting` takes back a bind that was not posted yet. `victim_gone` receives the UIDs of victims without
    a grace period, which are gone with the API server's answer. An outcome that `evicts` ends its victims through the
    Eviction API, one by one, so that a PodDisruptionBudget can refuse.
    """

    cache: Cache
    queue: SchedulingQueue
    dispatcher: Dispatcher
    recorder: EventRecorder
    failures: FailureReporter
    metrics: Metrics
    reject_waiting: Callable[[str], bool]
    victim_gone: Callable[[str], None]
    refused: RefusedVictims = field(init=False)
    _ending: dict[str, asyncio.Task[Unended | None]] = field(default_factory=dict, init=False)
    _seen: set[str] = field(default_factory=set, init=False)
    """Nodes with nominations that were there once: others may be nominated to before they come."""

    def __post_init__(self) -> None:
        self.refused = RefusedVictims(self.dispatcher.request)

    def start(self, nominated: Nominated) -> None:
        """End the victims of a nominated pod while the loop goes on."""
        result = nominated.fit_error.post_filter
        # Thousands may wait for their turn, and nobody asks any more what else was compared.
        fit_error = nominated.fit_error = FitError(nominated.fit_error.diagnosis, replace(result, candidates=()))
        is_written = False

        async def nominate() -> Unended | None:
            nonlocal is_written
            if not self._has_its_node(nominated):
                return Unended("another pod has the node", "")
            is_written = True
            return None if await self.failures.nominated(nominated) else Unended("the nomination was not written", "")

        def conclude(problem: Unended | None) -> None:
            if problem:
                self.give_up(nominated, problem, is_written=is_written)
            else:
                return_to_queue(self.queue, nominated, fit_error, ends_nomination=False)

        self._seen.add(nominated.node_name)
        if any(not victim.is_terminating for victim in result.victims):
            self.metrics.preemption_victims.observe(len(result.victims))
            violations = [each.pdb_violations for each in result.candidates if each.victims == result.victims]
            if violations and violations[0]:
                self.metrics.budget_violations.add(POD_PREEMPTOR, by=violations[0])
        cause = _Cause(
            nominated.pod,
            nominated.node_name,
            lambda: self._has_its_node(nominated),
            result.evicts,
            conclude,
            nominate,
        )
        self._begin(cause, result.victims, nominated.displaced)

    def start_for_group(self, nominated: GroupNominated) -> None:
        """End the victims of a group that was nominated while the loop goes on; the queue holds the group meanwhile."""
        preemption, nominator = nominated.preemption, self.queue.nominator

        def is_wanted() -> bool:
            return any(nominator.nominated_node(uid) == node for uid, node in nominated.nodes.items())

        def conclude(problem: Unended | None) -> None:
            if problem:
                logger.warning("preemption given up podGroup=%r problem=%s", str(nominated.group.key), problem.text)
                for uid, node_name in nominated.nodes.items():
                    pod = self.queue.newest(uid)
                    if pod is not None and nominator.nominated_node(uid) == node_name:
                        self.queue.withdraw(uid)
                        self.failures.conditions.nomination_ended(pod)
            self.queue.preempting.end(nominated.group.key)

        self._seen.update(nominated.nodes.values())
        if preemption.violations:
            self.metrics.budget_violations.add(POD_GROUP_PREEMPTOR, by=preemption.violations)
        cause = _Cause(nominated.lead, "cluster", is_wanted, preemption.evicts, conclude, group_uid=nominated.group.uid)
        self._begin(cause, preemption.victims, nominated.displaced)

    def _begin(self, cause: _Cause, victims: Sequence[PodInfo], displaced: Sequence[PodInfo]) -> None:
        for other in displaced:
            self.failures.conditions.nomination_ended(other)
        # A bind not posted yet is taken back now: soon it would be too late, and the victim would have to be deleted.
        uids = [each.uid for each in victims if not each.is_terminating and not self._rejected(each.uid, cause)]
        pod = cause.preemptor
        self.dispatcher.preempt(lambda: self._carry_out(cause, uids), pod.namespace, pod.priority)

    async def _carry_out(self, cause: _Cause, uids: Collection[str]) -> None:
        started = perf_counter()
        try:
            likely, victims = self.refused.first([each for each in map(self.cache.pod, uids) if each is not None])
            problem = await self.refused.ask(likely, evicts=cause.evicts) if likely else None
            if problem is None and cause.nominate is not None:
                problem = await cause.nominate()
            problem = problem or await self._end_all(victims, cause)
        except (Exception, asyncio.CancelledError) as error:
            if is_being_cancelled():
                raise
            logger.exception("preemption failed pod=%r", cause.preemptor.key)
            problem = Unended(repr(error), "")
        kind = POD_GROUP_PREEMPTOR if cause.group_uid else POD_PREEMPTOR
        self.metrics.preemption_executed("error" if problem else "success", perf_counter() - started, kind)
        cause.conclude(problem)
        self.queue.wake()

    def sweep(self) -> None:
        """Withdraw nominations to nodes that are gone, of pods in flight once they are back in the queue."""
        nominator = self.queue.nominator
        names = set(nominator.nodes())
        there = {name for name in names if self.cache.has_node(name)}
        gone = (names & self._seen) - there
        self._seen = there
        for node_name in gone:
            for pod in nominator.nominated_pods_for_node(node_name):
                queued = self.queue.get(pod.uid)
                if queued is None or queued.sub_queue is None:
                    # Its attempt or the end of its victims is under way: the next sweep looks again.
                    self._seen.add(node_name)
                    continue
                logger.info("nomination to a node that is gone pod=%r node=%r", pod.key, node_name)
                self.queue.withdraw(pod.uid, wake=True)
                self.failures.conditions.nomination_ended(pod)

    def _rejected(self, uid: str, cause: _Cause) -> bool:
        victim = self.cache.pod(uid)
        if victim is None or not self.cache.is_assumed(uid) or not self.reject_waiting(uid):
            return False
        self.recorder.preempted(victim, cause.preemptor, cause.node_name, group_uid=cause.group_uid, in_memory=True)
        return True

    def _has_its_node(self, nominated: Nominated) -> bool:
        """Whether the room is still kept for the pod: it may have ended, or a pod of higher priority taken the node."""
        return self.queue.nominator.nominated_node(nominated.pod.uid) == nominated.node_name

    def give_up(self, nominated: Nominated, problem: Unended, *, is_written: bool) -> None:
        """Let the pod back off, and withdraw its nomination unless it is to another node by now.

        The pod is told what the victims' end came to. A nomination that was never written is not taken back either, so
        that a pod whose victims are always refused is not written on at each attempt.
        """
        pod, node_name = nominated.pod, nominated.node_name
        logger.warning("preemption given up pod=%r node=%r problem=%s", pod.key, node_name, problem.text)
        ours = self._has_its_node(nominated)
        message = nominated.fit_error.message
        if problem.told:
            message = f"{message} preemption: {problem.told} on node {node_name}."
        failed = return_to_queue(self.queue, nominated, message, error=is_written, ends_nomination=ours)
        if not is_written:
            if not failed.pod.pod.status.nominated_node_name:
                failed.nomination = None
            self.failures.report(failed)
        elif ours and not failed.gone:
            self.failures.conditions.pending(failed.pod, UNSCHEDULABLE, message, nomination="")

    async def _end_all(self, victims: list[PodInfo], cause: _Cause) -> Unended | None:
        """End the victims, several at once; the first problem spares those not begun.

        So does the preemptor's end, or a pod of higher priority that took the node from it.
        """
        return await several_at_once(
            victims, lambda victim: self._end(victim.uid, cause), at_most=1 if cause.evicts else _VICTIMS_AT_ONCE
        )

    async def _end(self, uid: str, cause: _Cause) -> Unended | None:
        """End one victim unless it ends already, also for another preemptor; what went wrong, or None."""
        if not cause.is_wanted():
            return None
        running = self._ending.get(uid)
        if running is not None:
            return await running
        victim = self.cache.pod(uid)
        if victim is None or victim.is_terminating:
            return None
        task = self._ending[uid] = asyncio.create_task(self._end_now(victim, cause))
        try:
            return await task
        finally:
            del self._ending[uid]

    async def _end_now(self, victim: PodInfo, cause: _Cause) -> Unended | None:
        """Eviction comes before the condition: a pod that may stay must not be marked as ending."""
        preemptor, node_name, evicts = cause.preemptor, cause.node_name, cause.evicts
        scheduler = preemptor.pod.spec.scheduler_name
        condition = disruption_target_call(victim, scheduler, utc_now(), "podgroup" if cause.group_uid else "pod")
        answer: ApiResponse | None = None
        for call in (eviction_call(victim),) if evicts else (condition, delete_call(victim)):
            if call is None:
                continue
            answer = await self.dispatcher.request(call)
            if answer is not None and is_gone(call, answer):
                return None
            if problem := self.refused.problem(victim, call, answer):
                return problem
        if evicts:
            answer = None if condition is None else await self.dispatcher.request(condition)
        logger.info("preempted victim=%r pod=%r node=%r", victim.key, preemptor.key, node_name)
        self.recorder.preempted(victim, preemptor, node_name, group_uid=cause.group_uid)
        self._apply_answer(victim.uid, answer)
        return None

    def _apply_answer(self, uid: str, answer: ApiResponse | None) -> None:
        """Count the victim as terminating, or gone, as soon as the API server answers that; nobody preempts it again.

        The watch may be ahead of the answer, and then it is right.
        """
        held = self.cache.pod(uid)
        if held is None or answer is None or answer.status >= 400:
            return
        try:
            end = _end_decoder.decode(answer.body).metadata
        except DECODE_ERRORS:
            return
        if end.uid != uid or end.deletion_timestamp is None:
            return
        if end.deletion_grace_period_seconds == 0 and not end.finalizers:
            self.victim_gone(uid)
            return
        newest = None if held.is_terminating else read_pod(answer.body)
        if newest is None or not newest.spec.node_name:
            return
        try:
            self.cache.set_pod(PodInfo(newest), shown=False)
        except QuantityError as error:
            logger.debug("answer about a victim cannot be read pod=%r error=%s", held.key, error)
