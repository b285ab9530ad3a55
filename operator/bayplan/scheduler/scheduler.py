"""The scheduling loop: run attempts one after the other, and start what follows from each."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial

from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.filter_round import FilterError
from bayplan.framework.runtime import Framework
from bayplan.groups.pod_groups import PodGroup
from bayplan.metrics.table import Metrics
from bayplan.queue.queued_pod_group import QueuedPodGroup
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.attempt import Attempt, AttemptRunner, Failed, Nominated, Reserved, Result, Skipped
from bayplan.scheduler.attempt_log import note_scores
from bayplan.scheduler.binding_cycle import BindingCycle
from bayplan.scheduler.cancellation import is_being_cancelled
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.engines import Engine
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.extender.cycle import ExtendedCycle
from bayplan.scheduler.extender.wire import ExtenderError
from bayplan.scheduler.failure_reporter import FailureReporter
from bayplan.scheduler.group_attempts import GroupRounds
from bayplan.scheduler.pod_conditions import PodConditions
from bayplan.scheduler.pod_group_round import RoundResult
from bayplan.scheduler.pre_bind import LaterExchanges
from bayplan.scheduler.preemption import PreemptionExecutor
from bayplan.scheduler.recent_decisions import RecentDecisions
from bayplan.scheduler.refused_victims import Unended

logger = logging.getLogger(__name__)

# How long the loop decides before it lets watches, binds and probes run, and how many binds may be outstanding.
_SLICE_SECONDS = 0.01
_MAX_BINDS_IN_FLIGHT = 32768
# While no more pods wait, each bind leaves before the next decision: a hostile pod can make that one ten times a slice.
_FEW_PODS = 64
# How long decisions wait for the moves of waiting pods, if events come faster than their pods can be moved.
_LONGEST_HOLD_SECONDS = 0.5
_SWEEP_SECONDS = 1.0
# What no attempt needed between two releases is let go of. An idle loop wakes as often.
_RELEASE_SECONDS = 10.0
# How long the loop waits after an error that may come again at once.
_REST_SECONDS = 1.0


class Scheduler:
    """Takes pods from the queue, one decision at a time, and sees each through to a bind or back to the queue.

    Decisions are serial and pure; binds run at the same time. Everything happens on one event loop, so cache and queue
    need no locks. Whoever changes cache or queue sets `news`, which ends the loop's sleep. `clock` is the queue's, in
    seconds. `victim_gone` receives the UID of victims that were gone with the API server's answer, `writes_node` is
    BindingCycle's and `on_round` that of GroupRounds.
    """

    def __init__(
        self,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        engine: Engine,
        dispatcher: Dispatcher,
        recorder: EventRecorder,
        metrics: Metrics,
        news: asyncio.Event,
        victim_gone: Callable[[str], None],
        writes_node: bool = True,
        on_round: Callable[[PodGroup, RoundResult], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cache = cache
        self.queue = queue
        self.dispatcher = dispatcher
        self.news = news
        self._recorder = recorder
        self._extended = engine.extended
        self._successor: tuple[Engine, Collection[str], asyncio.Future[None]] | None = None
        self._calls_extenders = False
        self._clock = clock
        self._stopping = False
        self._resting = False
        self._held_since: float | None = None
        self._attempts = AttemptRunner(
            cache,
            queue,
            engine.cycle,
            engine.frameworks,
            clock,
            metrics,
            decides_by_kind=engine.extended is None,
            decided=note_scores,
        )
        conditions = PodConditions(dispatcher.patch, queue.newest, clock)
        self.decisions = RecentDecisions()
        """What was decided last, for whoever asks."""
        self._failures = FailureReporter(recorder, conditions, metrics, clock, self.decisions)
        self._binding = BindingCycle(
            cache, queue, engine.binder, recorder, self._failures, metrics, dispatcher, clock, writes_node
        )
        self.later = LaterExchanges(dispatcher)
        self.preemption = PreemptionExecutor(
            cache=cache,
            queue=queue,
            dispatcher=dispatcher,
            recorder=recorder,
            failures=self._failures,
            metrics=metrics,
            reject_waiting=self._binding.reject,
            victim_gone=victim_gone,
        )
        self.rounds = GroupRounds(
            self._attempts, self._follow_up, self._adopt, self.preemption.start_for_group, on_round
        )

    @property
    def frameworks(self) -> Mapping[str, Framework]:
        """The profiles that it schedules by at the moment, by schedulerName."""
        return self._attempts.frameworks

    def stop(self) -> None:
        """Pop no more pods; binds under way are the dispatcher's to finish."""
        self._stopping = True
        self._binding.stop()
        self.later.stop()
        self.news.set()

    def tasks(self) -> dict[str, int]:
        """How much goes on beside the decisions, by the work it does, under the labels of scheduler_goroutines."""
        return {"binding": self._binding.under_way(), **self.dispatcher.tasks()}

    def is_binding(self, uid: str) -> bool:
        """Return whether the pod waits for its bind, or is being bound."""
        return self._binding.holds(uid)

    def never_bound(self, pod: PodInfo) -> None:
        """Free the room of an assumed pod that certainly has no node and that nobody binds any more."""
        self._binding.never_bound(pod, self._attempts.frameworks[pod.pod.spec.scheduler_name])

    def pod_gone(self, uid: str) -> None:
        """Have a pod whose deletion has begun, or that is pending no more, wait for nothing and repeat no Event."""
        self._recorder.forget(uid)
        self._binding.pod_gone(uid)
        self._failures.conditions.forget_text(uid)

    async def take_over(self, engine: Engine, changed: Collection[str]) -> None:
        """Decide and bind with `engine` from now on; the queue tries the pods of the `changed` profiles again.

        At once, unless extenders are being asked or a pod group is tried: that is concluded as it was begun. What is
        reserved already finishes with the plugins that reserved it. One engine is taken over at a time.
        """
        adopted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._successor = engine, changed, adopted
        if not self._calls_extenders and not self.rounds.is_under_way:
            self._adopt()
        await adopted

    def _adopt(self) -> None:
        if self._successor is None:
            return
        (engine, changed, adopted), self._successor = self._successor, None
        self._attempts.cycle, self._attempts.frameworks = engine.cycle, engine.frameworks
        self._attempts.decides_by_kind = engine.extended is None
        self._binding.binder = engine.binder
        self._extended = engine.extended
        self.queue.take_over(engine.queue, changed)
        if not adopted.done():
            adopted.set_result(None)
        self.news.set()

    async def run(self) -> None:
        """Schedule until `stop` is called."""
        swept = released = self._clock()
        while not self._stopping:
            if self._clock() - released >= _RELEASE_SECONDS:
                released = self._clock()
                _attend_to(self._attempts.release_unused)
            self.news.clear()
            _attend_to(self._recorder.sweep)
            _attend_to(partial(self.write_texts, self._clock()))
            if not self._move_slice():
                await asyncio.sleep(0)
                continue
            if self.dispatcher.jobs_in_flight < _MAX_BINDS_IN_FLIGHT and (
                not self.rounds.go_on(_SLICE_SECONDS)
                or (self._schedule_slice() if self._extended is None else await self._schedule_extended(self._extended))
            ):
                # Enough for now, with more to do: everything else on the loop gets its turn.
                if self._clock() - swept >= _SWEEP_SECONDS:
                    swept = self._clock()
                    _attend_to(self.preemption.sweep)
                await asyncio.sleep(0)
                continue
            await self._sleep()
        self.rounds.abandon()

    def write_texts(self, due: float) -> None:
        """Write the texts of conditions that are due by then, in seconds of the clock."""
        self._failures.write_texts(due)

    def schedule_one(self) -> Attempt | QueuedPodGroup | None:
        """Run one attempt and start what follows from it; returns what happened, None when no pod is ready.

        What raises costs its pod this attempt and no other pod anything. The round of a group is begun.
        """
        try:
            attempt = self._attempts.run()
        except Exception as error:  # noqa: BLE001  reported there
            self._not_popped(error)
            return None
        if attempt is not None:
            self._take_up(attempt)
        return attempt

    def _take_up(self, attempt: Result | QueuedPodGroup) -> None:
        if isinstance(attempt, QueuedPodGroup):
            self.rounds.begin(attempt)
        else:
            self._follow_up(attempt)

    def _move_slice(self) -> bool:
        """Have the queue move pods for a short while; True if all are where they belong, or decisions waited long."""
        now = self._clock()
        until = now + _SLICE_SECONDS
        while self.queue.flush(now):
            now = self._clock()
            if self._held_since is None:
                self._held_since = now
            if now >= self._held_since + _LONGEST_HOLD_SECONDS:
                break
            if now >= until:
                return False
        self._held_since = None
        return True

    def _schedule_slice(self) -> bool:
        """Decide pods for a short while; True if pods are left that could be decided now."""
        until = self._clock() + _SLICE_SECONDS
        # What a decision itself has moved comes before the next one.
        was_moving = self.queue.is_moving
        while not self._stopping and self.dispatcher.jobs_in_flight < _MAX_BINDS_IN_FLIGHT:
            if self.queue.is_moving and not was_moving:
                return True
            attempt = self.schedule_one()
            if attempt is None:
                return False
            if self.rounds.is_under_way:
                return True
            if self._clock() >= until or (isinstance(attempt, Reserved) and self.queue.has_at_most(_FEW_PODS)):
                return self.queue.has_ready()
        return False

    async def _schedule_extended(self, extended: ExtendedCycle) -> bool:
        """Decide one pod with the extenders' help; True if pods are left that could be decided now."""
        try:
            attempt = self._attempts.pop()
        except Exception as error:  # noqa: BLE001  reported there
            self._not_popped(error)
            return False
        if attempt is None:
            return False
        if isinstance(attempt, Skipped | Failed | QueuedPodGroup):
            self._take_up(attempt)
            return self.rounds.is_under_way or self.queue.has_ready()
        uid = attempt.queued.uid
        self._calls_extenders = True
        try:
            decision = await extended.schedule(attempt.pod, attempt.framework)
        except (Exception, asyncio.CancelledError) as error:
            if is_being_cancelled():
                raise
            self._follow_up(self._attempts.fail(attempt, error))
        else:
            # While extenders were called all may have to end, or the pod may have been deleted, or bound by others.
            if self._stopping:
                return False
            if self.queue.get(uid) is None or self.cache.node_of(uid) is not None:
                self.queue.done(uid)
            else:
                self._follow_up(self._attempts.conclude(attempt, decision))
        finally:
            self._calls_extenders = False
            self._adopt()
        return self.queue.has_ready()

    def _follow_up(self, attempt: Result) -> None:
        """Perform the effects of an attempt; whatever raises, the pod is given back if it was not yet."""
        try:
            self._perform(attempt)
        except Exception as error:
            if isinstance(attempt, Reserved):
                self._binding.abandon(attempt, error)
                return
            logger.exception("what follows from an attempt failed pod=%r", attempt.pod.key)
            if isinstance(attempt, Nominated):
                self.preemption.give_up(attempt, Unended(repr(error), ""), is_written=False)

    def _perform(self, attempt: Result) -> None:
        """Perform the effects of an attempt: the bind, the end of victims, or the report of a failure."""
        if isinstance(attempt, Reserved):
            self._failures.reserved(attempt, self.cache.nodes.node_count)
            self._binding.start(attempt)
        elif isinstance(attempt, Nominated):
            self.preemption.start(attempt)
        elif isinstance(attempt, Failed):
            if attempt.exception is not None and not isinstance(attempt.exception, (ExtenderError, FilterError)):
                logger.error("scheduling cycle failed pod=%r", attempt.pod.key, exc_info=attempt.exception)
            self._failures.report(attempt)
        elif attempt.message:
            self._recorder.failed_scheduling(attempt.pod, attempt.message)

    def _not_popped(self, error: Exception) -> None:
        """Report that the queue gave no pod, and have the loop wait rather than ask it over and over."""
        logger.error("no pod could be taken from the queue", exc_info=error)
        self._resting = True

    async def _sleep(self) -> None:
        _attend_to(self.preemption.sweep)
        longest, self._resting = _REST_SECONDS if self._resting else _RELEASE_SECONDS, False
        deadlines = (self.queue.next_deadline(), self._failures.conditions.next_deadline())
        wanted = [deadline - self._clock() for deadline in deadlines if deadline is not None]
        seconds = min([*wanted, longest])
        alarm = asyncio.get_running_loop().call_later(max(seconds, 0.0), self.news.set)
        try:
            await self.news.wait()
        finally:
            alarm.cancel()


def _attend_to(sweep: Callable[[], None]) -> None:
    """Have a part look after what is due; one that fails is logged, and everything else goes on."""
    try:
        sweep()
    except Exception:
        logger.exception("what was due was not done")
