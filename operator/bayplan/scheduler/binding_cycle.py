"""What follows once a node is chosen: assume, reserve, bind, and undo all of it if the bind fails."""

import logging
from collections.abc import Callable, Sequence

import msgspec

from bayplan.cache.cache import Cache
from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE
from bayplan.framework.interface import Binding, ReservePlugin
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Status
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.binder import Binder, BindError, BindResult
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.failure import FailureHandler
from bayplan.scheduler.observer import SchedulerObserver
from bayplan.scheduler.pre_bind import PreBinder, pre_bind_steps

logger = logging.getLogger(__name__)


class _WaitingBind(msgspec.Struct, frozen=True, eq=False):
    queued: QueuedPodInfo
    framework: Framework
    binding: Binding
    started: float


class BindingCycle:
    """Sees a placement through to a bound pod, or gives the room and the pod back.

    The decision's own part runs at once, so that the next decision counts the pod; the bind runs beside the loop.
    """

    def __init__(
        self,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        binder: Binder,
        recorder: EventRecorder,
        failures: FailureHandler,
        observer: SchedulerObserver,
        dispatcher: Dispatcher,
        wake: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._binder = binder
        self._recorder = recorder
        self._failures = failures
        self._observer = observer
        self._dispatcher = dispatcher
        self._wake = wake
        self._clock = clock
        self._waiting: dict[str, _WaitingBind] = {}
        self._pre_binder = PreBinder(dispatcher)

    def start(self, queued: QueuedPodInfo, framework: Framework, node_name: str, started: float) -> None:
        """Assume the pod on the node, reserve what plugins reserve, and hand the bind to the workers.

        Raises:
            Exception: whatever a plugin raised; the pod is forgotten again and still in flight.
        """
        pod = queued.pod_info
        self._cache.assume_pod(pod, node_name)
        try:
            rejection = self._reserve(framework, queued, node_name)
            if rejection is not None:
                self._cache.forget_pod(pod.uid)
                if rejection.code is Code.ERROR:
                    self._failures.fail(queued, f"{rejection.plugin}: {rejection.message}", started, error=True)
                else:
                    message = f"0/1 nodes are available: {rejection.message}."
                    self._failures.fail(queued, message, started, rejectors=frozenset({rejection.plugin}))
                return
            binding = framework.binds[0].bind(pod, node_name)
            steps = pre_bind_steps(framework, pod, node_name)
        except Exception:
            self._unreserve(framework.reserves, queued, node_name, Status())
            self._cache.forget_pod(pod.uid)
            raise
        self._queue.placed(pod.uid, node_name)
        waiting = self._waiting[pod.uid] = _WaitingBind(queued, framework, binding, started)
        if not steps:
            self._submit(waiting)
            return
        self._pre_binder.start(
            steps,
            is_wanted=lambda: self._waiting.get(pod.uid) is waiting and self._queue.get(pod.uid) is not None,
            done=lambda: self._submit(waiting),
            failed=lambda message: self._pre_bind_failed(waiting, message),
        )

    def stop(self) -> None:
        """End the waits before binds; the pods stay unbound, for whoever schedules next."""
        self._pre_binder.stop()

    def _submit(self, waiting: _WaitingBind) -> None:
        self._dispatcher.submit(lambda: self._run(waiting))

    def _pre_bind_failed(self, waiting: _WaitingBind, message: str) -> None:
        if self._waiting.get(waiting.queued.uid) is waiting:
            del self._waiting[waiting.queued.uid]
            self._bind_failed(waiting.queued, waiting.framework, waiting.binding, waiting.started, message)
            self._wake()

    def reject(self, uid: str) -> bool:
        """Take back a bind that was not posted yet, for a pod of higher priority; False if it is too late for that.

        The room is free at once, and the pod backs off.
        """
        waiting = self._waiting.pop(uid, None)
        if waiting is None:
            return False
        queued = waiting.queued
        self._unreserve(waiting.framework.reserves, queued, waiting.binding.node_name, Status())
        self._release(queued)
        self._failures.fail(queued, "0/1 nodes are available: preempted.", waiting.started)
        return True

    async def _run(self, waiting: _WaitingBind) -> None:
        uid = waiting.queued.uid
        # Rejected meanwhile, and perhaps placed anew since.
        if self._waiting.get(uid) is waiting:
            del self._waiting[uid]
            await self._bind(waiting.queued, waiting.framework, waiting.binding, waiting.started)

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
            message = f'running Bind plugin "{framework.binds[0].name}": {error}'
            self._bind_failed(queued, framework, binding, started, message)
            return
        finally:
            self._wake()
        if result is BindResult.BOUND:
            self._bound(queued, framework, binding, started)
        else:
            logger.info("pod is no longer ours to bind pod=%r", pod.key)
            self._unreserve(framework.reserves, queued, binding.node_name, Status())
            self._release(queued)
            self._queue.done(pod.uid)

    def _bind_failed(
        self, queued: QueuedPodInfo, framework: Framework, binding: Binding, started: float, message: str
    ) -> None:
        """Give back the room of a pod that was not bound, and the pod to the queue."""
        self._unreserve(framework.reserves, queued, binding.node_name, Status())
        self._release(queued)
        if self._cache.node_of(queued.uid) is not None:
            # The watch has shown it on a node after all.
            self._queue.done(queued.uid)
            return
        self._failures.fail(queued, message, started, error=True)

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
