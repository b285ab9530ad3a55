"""The scheduling loop: pop a pod, decide, assume, hand the bind to the dispatcher, and deal with failures."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from bayplan.cache.cache import Cache
from bayplan.framework.interface import Binding, ReservePlugin
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Status
from bayplan.queue.cluster_event import ASSIGNED_POD_DELETE
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.binder import Binder, BindError, BindResult
from bayplan.scheduler.cycle import Placement, SchedulingCycle
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.observer import SchedulerObserver
from bayplan.scheduler.pod_conditions import PodConditions

logger = logging.getLogger(__name__)

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"

# How long the loop decides before it lets watches, binds and probes run, and how many binds may be outstanding.
_SLICE_SECONDS = 0.01
_MAX_BINDS_IN_FLIGHT = 256
_MAX_SLEEP_SECONDS = 30.0


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
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._cycle = cycle
        self._frameworks = frameworks
        self._dispatcher = dispatcher
        self._binder = binder
        self._recorder = recorder
        self._observer = observer
        self._clock = clock
        self._conditions = PodConditions(dispatcher.patch, now=lambda: datetime.now(UTC))
        self._news = asyncio.Event()
        self._stopping = False

    def wake(self) -> None:
        """Something changed: look at the queue again."""
        self._news.set()

    def stop(self) -> None:
        """Pop no more pods; binds under way are the dispatcher's to finish."""
        self._stopping = True
        self._news.set()

    async def run(self) -> None:
        """Schedule until `stop` is called."""
        while not self._stopping:
            self._news.clear()
            self._queue.flush(self._clock())
            self._recorder.sweep()
            if self._dispatcher.jobs_in_flight < _MAX_BINDS_IN_FLIGHT and self._schedule_slice():
                # Enough for now, with more to do: everything else on the loop gets its turn.
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

    async def _sleep(self) -> None:
        deadline = self._queue.next_deadline()
        seconds = _MAX_SLEEP_SECONDS if deadline is None else min(deadline - self._clock(), _MAX_SLEEP_SECONDS)
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._news.wait()
        except TimeoutError:
            return

    def schedule_one(self, queued: QueuedPodInfo) -> None:
        """Run one scheduling cycle for a popped pod and start what follows from it."""
        pod = queued.pod_info
        started = self._clock()
        if pod.pod.metadata.deletion_timestamp is not None:
            self._recorder.failed_scheduling(pod, f"skip schedule deleting pod: {pod.key}")
            self._queue.done(pod.uid)
            return
        if self._cache.node_of(pod.uid) is not None:
            self._queue.done(pod.uid)
            return
        framework = self._frameworks[queued.profile]
        try:
            outcome = self._cycle.schedule(pod, framework)
            self._observer.algorithm(self._clock() - started)
            if isinstance(outcome, Placement):
                self._assume(queued, framework, outcome, started)
                return
        except Exception as error:
            # Whatever a hostile pod makes a plugin do must not take the other pods down with it.
            logger.exception("scheduling cycle failed pod=%r", pod.key)
            self._fail(queued, str(error) or type(error).__name__, started, error=True)
            return
        self._fail(queued, outcome.message, started, rejectors=outcome.diagnosis.rejector_plugins)

    def _assume(self, queued: QueuedPodInfo, framework: Framework, placement: Placement, started: float) -> None:
        pod, node_name = queued.pod_info, placement.node_name
        self._cache.assume_pod(pod, node_name)
        try:
            rejection = self._reserve(framework, queued, node_name)
            if rejection is not None:
                self._cache.forget_pod(pod.uid)
                if rejection.code is Code.ERROR:
                    self._fail(queued, f"{rejection.plugin}: {rejection.message}", started, error=True)
                else:
                    message = f"0/1 nodes are available: {rejection.message}."
                    self._fail(queued, message, started, rejectors=frozenset({rejection.plugin}))
                return
            binding = framework.binds[0].bind(pod, node_name)
        except Exception:
            self._unreserve(framework.reserves, queued, node_name, Status())
            self._cache.forget_pod(pod.uid)
            raise
        self._dispatcher.submit(lambda: self._bind(queued, framework, binding, started))

    def _reserve(self, framework: Framework, queued: QueuedPodInfo, node_name: str) -> Status | None:
        """Run Reserve and Permit; the first rejection undoes what was reserved."""
        done: list[ReservePlugin] = []
        for plugin in framework.reserves:
            done.append(plugin)
            status = plugin.reserve({}, queued.pod_info, node_name)
            if not status.ok:
                return self._unreserve(done, queued, node_name, Status(status.code, status.reasons, plugin.name))
        for permit in framework.permits:
            status = permit.permit({}, queued.pod_info, node_name)
            if not status.ok:
                return self._unreserve(done, queued, node_name, Status(status.code, status.reasons, permit.name))
        return None

    @staticmethod
    def _unreserve(plugins: Sequence[ReservePlugin], queued: QueuedPodInfo, node_name: str, status: Status) -> Status:
        for plugin in reversed(plugins):
            plugin.unreserve({}, queued.pod_info, node_name)
        return status

    async def _bind(self, queued: QueuedPodInfo, framework: Framework, binding: Binding, started: float) -> None:
        pod = queued.pod_info
        try:
            # Deleted while the bind waited for its turn: nothing is left to post.
            gone = self._queue.get(pod.uid) is None
            result = BindResult.GONE if gone else await self._run_bind(queued.profile, binding)
        except Exception as error:
            if not isinstance(error, BindError):
                logger.exception("bind failed unexpectedly pod=%r", pod.key)
            self._unreserve(framework.reserves, queued, binding.node_name, Status())
            self._release(queued)
            if self._cache.node_of(pod.uid) is not None:
                # The watch has shown it on a node after all.
                self._queue.done(pod.uid)
                return
            message = f'running Bind plugin "{framework.binds[0].name}": {error}'
            self._fail(queued, message, started, error=True)
            return
        finally:
            self.wake()
        if result is BindResult.BOUND:
            self._bound(queued, framework, binding, started)
        else:
            logger.info("pod is no longer ours to bind pod=%r", pod.key)
            self._unreserve(framework.reserves, queued, binding.node_name, Status())
            self._release(queued)
            self._queue.done(pod.uid)

    async def _run_bind(self, profile: str, binding: Binding) -> BindResult:
        """Bind, and tell how long that took, doubts and their resolution included."""
        posted = self._clock()
        status = "Error"
        try:
            result = await self._binder.bind(binding)
            if result is BindResult.BOUND:
                status = "Success"
            return result
        finally:
            self._observer.extension_point("Bind", status, profile, self._clock() - posted)

    def _bound(self, queued: QueuedPodInfo, framework: Framework, binding: Binding, started: float) -> None:
        pod = queued.pod_info
        now = self._clock()
        self._queue.done(pod.uid)
        self._recorder.forget(pod.uid)
        self._recorder.scheduled(pod, binding.node_name)
        for plugin in framework.post_binds:
            plugin.post_bind(pod, binding.node_name)
        self._observer.attempt(queued.profile, "scheduled", now - started)
        if queued.flushed:
            self._observer.flushed()
        first = queued.initial_attempt_timestamp
        self._observer.bound(queued.attempts, now - (started if first is None else first))

    def _release(self, queued: QueuedPodInfo) -> None:
        """Give back the room of an assumed pod, and wake pods that may use it."""
        pod = queued.pod_info
        if self._cache.is_assumed(pod.uid):
            self._cache.forget_pod(pod.uid)
            self._queue.move_all(ASSIGNED_POD_DELETE, pod, None)

    def _fail(
        self,
        queued: QueuedPodInfo,
        message: str,
        started: float,
        *,
        error: bool = False,
        rejectors: frozenset[str] = frozenset(),
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
