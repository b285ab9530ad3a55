"""The scheduling loop: pop a pod, decide, and start what follows from the decision."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from bayplan.cache.cache import Cache
from bayplan.framework.runtime import Framework
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.binder import Binder
from bayplan.scheduler.binding_cycle import BindingCycle
from bayplan.scheduler.cycle import FitError, Placement, SchedulingCycle
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.extender.extended_cycle import ExtendedCycle
from bayplan.scheduler.extender.wire import ExtenderError
from bayplan.scheduler.failure import FailureHandler
from bayplan.scheduler.observer import SchedulerObserver
from bayplan.scheduler.pod_conditions import PodConditions
from bayplan.scheduler.preemption import PreemptionExecutor

logger = logging.getLogger(__name__)

# How long the loop decides before it lets watches, binds and probes run, and how many binds may be outstanding.
_SLICE_SECONDS = 0.01
_MAX_BINDS_IN_FLIGHT = 256
_MAX_SLEEP_SECONDS = 30.0
_SWEEP_SECONDS = 1.0


class Scheduler:
    """Takes pods from the queue, one decision at a time, and sees each through to a bind or back to the queue.

    Decisions are serial and pure; binds run beside them. Everything happens on one event loop, so cache and queue
    need no locks.
    """

    def __init__(
        self,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        cycle: SchedulingCycle,
        frameworks: Mapping[str, Framework],
        dispatcher: Dispatcher,
        binder: Binder,
        recorder: EventRecorder,
        observer: SchedulerObserver,
        clock: Callable[[], float] = time.monotonic,
        extended: ExtendedCycle | None = None,
        victim_gone: Callable[[str], None] = lambda uid: None,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._cycle = cycle
        self._extended = extended
        self._frameworks = frameworks
        self._dispatcher = dispatcher
        self._recorder = recorder
        self._observer = observer
        self._clock = clock
        self._failures = FailureHandler(
            queue=queue,
            recorder=recorder,
            conditions=PodConditions(dispatcher.patch, now=lambda: datetime.now(UTC)),
            observer=observer,
            clock=clock,
        )
        self._binding = BindingCycle(
            cache=cache,
            queue=queue,
            binder=binder,
            recorder=recorder,
            failures=self._failures,
            observer=observer,
            dispatcher=dispatcher,
            wake=self.wake,
            clock=clock,
        )
        self._preemption = PreemptionExecutor(
            cache=cache,
            queue=queue,
            dispatcher=dispatcher,
            recorder=recorder,
            failures=self._failures,
            observer=observer,
            reject_waiting=self._binding.reject,
            victim_gone=victim_gone,
            now=lambda: datetime.now(UTC),
            wake=self.wake,
        )
        self._news = asyncio.Event()
        self._stopping = False

    def wake(self) -> None:
        """Something changed: look at the queue again."""
        self._news.set()

    def stop(self) -> None:
        """Pop no more pods; binds under way are the dispatcher's to finish."""
        self._stopping = True
        self._binding.stop()
        self._news.set()

    async def run(self) -> None:
        """Schedule until `stop` is called."""
        swept = self._clock()
        while not self._stopping:
            self._news.clear()
            self._queue.flush(self._clock())
            self._recorder.sweep()
            if self._dispatcher.jobs_in_flight < _MAX_BINDS_IN_FLIGHT and (
                self._schedule_slice() if self._extended is None else await self._schedule_extended(self._extended)
            ):
                # Enough for now, with more to do: everything else on the loop gets its turn.
                if self._clock() - swept >= _SWEEP_SECONDS:
                    swept = self._clock()
                    self._preemption.sweep()
                await asyncio.sleep(0)
                continue
            await self._sleep()

    def _schedule_slice(self) -> bool:
        """Decide pods for a short while; True if pods are left that could be decided now."""
        until = self._clock() + _SLICE_SECONDS
        while not self._stopping and self._dispatcher.jobs_in_flight < _MAX_BINDS_IN_FLIGHT:
            queued = self._queue.pop()
            if queued is None:
                return False
            self.schedule_one(queued)
            if self._clock() >= until:
                return self._queue.has_ready()
        return False

    async def _schedule_extended(self, extended: ExtendedCycle) -> bool:
        """Decide one pod with the extenders' help; True if pods are left that could be decided now."""
        queued = self._queue.pop()
        if queued is None:
            return False
        if self._skips(queued):
            return self._queue.has_ready()
        started = self._clock()
        framework = self._frameworks[queued.profile]
        try:
            outcome = await extended.schedule(queued.pod_info, framework)
        except ExtenderError as error:
            self._failures.fail(queued, str(error), started, error=True)
        except Exception as error:  # noqa: BLE001  logged and told by _broke
            self._broke(queued, error, started)
        else:
            # While extenders were asked all may have to end, or the pod may have been deleted, or bound by others.
            if self._stopping:
                return False
            if self._queue.get(queued.uid) is None or self._cache.node_of(queued.uid) is not None:
                self._queue.done(queued.uid)
            else:
                self._follow_up(queued, framework, outcome, started)
        return self._queue.has_ready()

    async def _sleep(self) -> None:
        self._preemption.sweep()
        deadline = self._queue.next_deadline()
        seconds = _MAX_SLEEP_SECONDS if deadline is None else min(deadline - self._clock(), _MAX_SLEEP_SECONDS)
        alarm = asyncio.get_running_loop().call_later(max(seconds, 0.0), self._news.set)
        try:
            await self._news.wait()
        finally:
            alarm.cancel()

    def schedule_one(self, queued: QueuedPodInfo) -> None:
        """Run one scheduling cycle for a popped pod and start what follows from it."""
        if self._skips(queued):
            return
        started = self._clock()
        framework = self._frameworks[queued.profile]
        try:
            outcome = self._cycle.schedule(queued.pod_info, framework)
        except Exception as error:  # noqa: BLE001  logged and told by _broke
            self._broke(queued, error, started)
            return
        self._follow_up(queued, framework, outcome, started)

    def _skips(self, queued: QueuedPodInfo) -> bool:
        """Whether the pod is not to be scheduled after all: it is going away, or on a node already."""
        pod = queued.pod_info
        if pod.pod.metadata.deletion_timestamp is not None:
            self._recorder.failed_scheduling(pod, f"skip schedule deleting pod: {pod.key}")
            self._queue.done(pod.uid)
            return True
        if self._cache.node_of(pod.uid) is not None:
            self._queue.done(pod.uid)
            return True
        return False

    def _follow_up(
        self, queued: QueuedPodInfo, framework: Framework, outcome: Placement | FitError, started: float
    ) -> None:
        """Start the bind, or make room, or let the pod wait."""
        self._observer.algorithm(self._clock() - started)
        if isinstance(outcome, FitError):
            self._no_fit(queued, framework, outcome, started)
            return
        try:
            self._binding.start(queued, framework, outcome.node_name, started)
        except Exception as error:  # noqa: BLE001  logged and told by _broke
            self._broke(queued, error, started)

    def _broke(self, queued: QueuedPodInfo, error: Exception, started: float) -> None:
        """Whatever a hostile pod makes a plugin do must not take the other pods down with it."""
        logger.error("scheduling cycle failed pod=%r", queued.pod_info.key, exc_info=error)
        self._failures.fail(queued, str(error) or type(error).__name__, started, error=True)

    def _no_fit(self, queued: QueuedPodInfo, framework: Framework, outcome: FitError, started: float) -> None:
        """Make room for the pod where that was found possible; otherwise it waits for an event."""
        if outcome.diagnosis.node_count and any(
            plugin.name == "DefaultPreemption" for plugin in framework.post_filters
        ):
            self._observer.preemption_attempt()
        node_name = outcome.nominated_node_name
        if node_name:
            self._preemption.start(queued, outcome, node_name, started)
            return
        rejectors = outcome.diagnosis.rejector_plugins
        self._failures.fail(
            queued,
            outcome.message,
            started,
            rejectors=rejectors,
            nomination_ends=node_name is not None,
            retry_after=outcome.retry_after,
        )
