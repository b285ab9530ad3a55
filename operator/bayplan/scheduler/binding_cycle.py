"""Sees pods through their bind while the loop goes on; gives room and pod back on failure."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE
from bayplan.framework.plugin_calls import ERROR_LABEL, SUCCESS_LABEL
from bayplan.framework.runtime import Framework
from bayplan.framework.status import EffectError, Notice, Status
from bayplan.metrics.table import Metrics
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.api_calls import BINDING
from bayplan.scheduler.attempt import Reserved, rejection_of_node, return_to_queue
from bayplan.scheduler.attempt_log import tell_bound
from bayplan.scheduler.binder import Binder, BindError, BindResult
from bayplan.scheduler.cancellation import is_being_cancelled
from bayplan.scheduler.decision import FitError
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.failure_reporter import FailureReporter
from bayplan.scheduler.pre_bind import PermitWaits, perform_effects
from bayplan.scheduler.turns import Turn

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class BindingCycle:
    """Sees a reserved pod through PreBind, Bind and PostBind, or gives the room and the pod back.

    The loop and preemption rely on it: every pod that it is given is either bound or back in the queue at the end,
    whatever raises or is cancelled on the way. If it `writes_node`, the node of a pod whose bind takes a while is
    written on the pod first (upstream: NominatedNodeNameForExpectation).
    """

    cache: Cache
    queue: SchedulingQueue
    binder: Binder
    recorder: EventRecorder
    failures: FailureReporter
    metrics: Metrics
    dispatcher: Dispatcher
    clock: Callable[[], float]
    writes_node: bool = True
    _permits: PermitWaits = field(init=False)
    _waiting: dict[str, Reserved] = field(default_factory=dict, init=False)
    _binding: set[str] = field(default_factory=set, init=False)
    _pre_binding: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._permits = PermitWaits(self._permit_ended, self.metrics.permit_wait_seconds, self.clock)

    def start(self, reserved: Reserved) -> None:
        """Have the pod wait for Permit plugins if it must, and then the bind performed with the steps before it."""
        self._waiting[reserved.queued.uid] = reserved
        if reserved.permit_waits:
            self._permits.start(reserved)
        else:
            self._begin(reserved)

    def _begin(self, reserved: Reserved) -> None:
        """Have the steps before the bind performed, if there are any, and then the bind by the dispatcher."""
        self.queue.begin_bind(reserved.queued.uid)
        if not reserved.steps:
            self._submit(reserved)
            return
        # It has no turn of the dispatcher's: a claim may take minutes to be bound.
        task = asyncio.create_task(self._pre_bind(reserved), name="pre-bind")
        self._pre_binding.add(task)
        task.add_done_callback(lambda _: self._pre_bind_ended(task, reserved))

    def abandon(self, reserved: Reserved, error: BaseException) -> None:
        """Give a pod back that an unexpected error keeps from being bound, and its room; it backs off."""
        logger.error("a pod was not bound because of an error pod=%r", reserved.pod.key, exc_info=error)
        if self._take(reserved):
            self._permits.forget(reserved)
            self._bind_failed(reserved, str(error) or type(error).__name__)
            self.queue.wake()

    def stop(self) -> None:
        """End the waits before binds; the pods stay unbound, for whoever schedules next, and the writes done or not."""
        self._stopped = True
        self._permits.stop()
        for task in self._pre_binding:
            task.cancel()

    def reject(self, uid: str) -> bool:
        """Take back a bind that was not posted yet, for a pod of higher priority; False if it is too late for that.

        The room is free at once, and the pod backs off, as after an error.
        """
        reserved = self._waiting.pop(uid, None)
        if reserved is None:
            return False
        waited = self._permits.forget(reserved)
        self._give_back(reserved)
        message = "waiting on permit for pod: preempted" if waited else "preempted by DefaultPreemption"
        self.failures.report(return_to_queue(self.queue, reserved, message, error=True))
        return True

    def under_way(self) -> int:
        """How many pods it sees through, those that wait for Permit plugins, volumes or their turn included."""
        return len(self._waiting) + len(self._binding)

    def holds(self, uid: str) -> bool:
        """Return whether it sees the pod through, which then is not to be taken from it."""
        return uid in self._waiting or uid in self._binding

    def never_bound(self, pod: PodInfo, framework: Framework) -> None:
        """Free the room of an assumed pod that certainly has no node and whose bind is over.

        The state that its attempt left for the plugins is gone, so Unreserve finds an empty one.
        """
        self.queue.done(pod.uid)
        node_name = self.cache.node_of(pod.uid)
        if node_name is not None and self.cache.is_assumed(pod.uid):
            self._free(pod, lambda: framework.run_unreserve({}, pod, node_name))
        self.queue.wake()

    def pod_gone(self, uid: str) -> None:
        """End a pod's wait for Permit plugins or for its bind, as its deletion has begun; its room is free at once.

        Upstream: handleAssumedPodDeletion.
        """
        reserved = self._waiting.get(uid)
        if reserved is None:
            return
        waiting = reserved.framework.waiting_pods.get(uid)
        if waiting is not None:
            waiting.reject("", "removed")
        elif self._take(reserved):
            self._give_back(reserved)
            self.queue.done(uid)
            self.queue.wake()

    def _permit_ended(self, reserved: Reserved, status: Status) -> None:
        """Bind a pod that its Permit plugins allow; one that they reject waits for an event that may help it."""
        try:
            if status.ok and self._waiting.get(reserved.pod.uid) is reserved:
                self._begin(reserved)
            elif self._take(reserved):
                self._give_back(reserved, wakes_itself=False)
                self._return(reserved, rejection_of_node(status))
                self.queue.wake()
        except Exception as error:  # noqa: BLE001  the event loop, which calls this, would only log it
            self.abandon(reserved, error)

    def _submit(self, reserved: Reserved) -> None:
        pod = reserved.pod
        if self.dispatcher.takes(pod.namespace):
            of_many, bind = self.queue.group_of(pod) is not None, partial(self._bind, reserved)
            self.dispatcher.submit(pod.uid, pod.namespace, bind, pod.priority, of_many=of_many)
        elif self._take(reserved):
            self._bind_failed(reserved, "too many binds of the namespace wait for an answer of the API server")
            self.queue.wake()

    async def _pre_bind(self, reserved: Reserved) -> None:
        uid = reserved.queued.uid

        def is_wanted() -> bool:
            return self._waiting.get(uid) is reserved and self.queue.is_alive(uid)

        try:
            await self._write_node(reserved)
            await self._perform_effects(reserved, is_wanted)
            self._submit(reserved)
        except EffectError as error:
            if self._take(reserved):
                self._bind_failed(reserved, str(error))
                self.queue.wake()
        except Exception as error:  # noqa: BLE001  a plugin's condition may raise anything
            self.abandon(reserved, error)

    async def _perform_effects(self, reserved: Reserved, is_wanted: Callable[[], bool]) -> None:
        calls = reserved.framework.calls

        def performed(plugin: str, status: str, seconds: float) -> None:
            if status == ERROR_LABEL:
                calls.failed(plugin, "PreBind")
            if reserved.sampled:
                calls.executed(plugin, "PreBind", status, seconds)

        started, status = self.clock(), ERROR_LABEL
        try:
            notify = partial(self._notify, reserved.pod)
            await perform_effects(self.dispatcher, reserved.steps, is_wanted, performed, notify)
            status = SUCCESS_LABEL
        finally:
            calls.report("PreBind", status, self.clock() - started)
            if self._waiting.get(reserved.pod.uid) is not reserved:
                # It was given up meanwhile. What it kept while requests were under way is free only now.
                self.queue.move_all(ASSIGNED_POD_DELETE, reserved.pod, None)
                self.queue.wake()

    def _notify(self, pod: PodInfo, notice: Notice) -> None:
        self.metrics.pre_bind_notices.add(notice.reason)
        self.recorder.noticed(pod, notice)

    def _pre_bind_ended(self, task: asyncio.Task[None], reserved: Reserved) -> None:
        self._pre_binding.discard(task)
        if task.cancelled() and not self._stopped:
            self.abandon(reserved, asyncio.CancelledError("cancelled"))

    async def _write_node(self, reserved: Reserved) -> None:
        """Tell autoscalers the node of a pod whose bind takes a while, and whoever schedules after a restart.

        It goes on without, as it can (upstream: schedule_one.go bindingCycle).
        """
        pod, node_name = reserved.pod, reserved.binding.node_name
        waits = any(exchange.waits for _, exchange in reserved.steps)
        if not (waits and self.writes_node) or pod.pod.status.nominated_node_name == node_name:
            return
        reserved.has_expected_node = True
        if not await self.failures.conditions.expected_on(pod, node_name):
            logger.info("the node a pod will be bound to was not written pod=%r node=%r", pod.key, node_name)

    def _take(self, reserved: Reserved) -> bool:
        """End the wait for a bind; False if it was rejected meanwhile, and the pod perhaps reserved anew since."""
        if self._waiting.get(reserved.pod.uid) is not reserved:
            return False
        del self._waiting[reserved.pod.uid]
        return True

    async def _bind(self, reserved: Reserved, turn: Turn) -> None:
        if not self._take(reserved):
            return
        pod = reserved.pod
        self._binding.add(pod.uid)
        try:
            # Its deletion may have begun while the bind waited for its turn: the API server would refuse it.
            result = await self._run_bind(reserved, turn) if self.queue.is_alive(pod.uid) else BindResult.GONE
        except (Exception, asyncio.CancelledError) as error:
            if is_being_cancelled():
                raise
            if not isinstance(error, BindError):
                logger.exception("bind failed unexpectedly pod=%r", pod.key)
            self._bind_failed(reserved, f'running Bind plugin "{reserved.framework.binds[0].name}": {error}')
            return
        finally:
            self._binding.discard(pod.uid)
            self.queue.wake()
        if result is BindResult.BOUND:
            self._bound(reserved)
        elif result is BindResult.TAKEN:
            # Its room stays taken until the watch shows where it is.
            self._unreserve(pod, reserved.unreserve)
            self.queue.done(pod.uid)
            self.recorder.taken(pod)
        else:
            logger.info("pod is no longer ours to bind pod=%r", pod.key)
            self._give_back(reserved)
            self.queue.done(pod.uid)

    async def _run_bind(self, reserved: Reserved, turn: Turn) -> BindResult:
        """Bind, and report how long that took, doubts and their resolution included."""
        posted, status, ended = self.clock(), ERROR_LABEL, "error"
        try:
            result = await self.binder.bind(reserved.binding, turn)
            if result is BindResult.BOUND:
                status, ended = SUCCESS_LABEL, "success"
            return result
        finally:
            framework, seconds = reserved.framework, self.clock() - posted
            framework.calls.report("Bind", status, seconds)
            if reserved.sampled:
                framework.calls.executed(framework.binds[0].name, "Bind", status, seconds)
            self.metrics.api_call(BINDING, ended, seconds)

    def _bound(self, reserved: Reserved) -> None:
        queued, pod, node_name = reserved.queued, reserved.pod, reserved.binding.node_name
        now = self.clock()
        self.queue.done(pod.uid)
        try:
            self.recorder.forget(pod.uid)
            self.recorder.scheduled(pod, node_name)
        except Exception:
            logger.exception("event of a bound pod failed pod=%r", pod.key)
        if reserved.framework.post_binds:
            self._post_bind(reserved)
        self.metrics.attempt(queued.profile, "scheduled", now - reserved.started)
        tell_bound(reserved, now - reserved.started)
        if queued.flushed:
            self.metrics.scheduled_after_flush.add()
        first = queued.initial_attempt_timestamp
        self.metrics.bound(queued.attempts, now - (reserved.started if first is None else first))

    def _post_bind(self, reserved: Reserved) -> None:
        """Run the PostBind plugins; none can undo the bind (upstream: framework.go RunPostBindPlugins)."""
        framework, pod, node_name = reserved.framework, reserved.pod, reserved.binding.node_name
        started = perf_counter()
        for plugin in framework.post_binds:
            began = perf_counter()
            try:
                plugin.post_bind(pod, node_name)
            except Exception:
                logger.exception("PostBind plugin failed plugin=%r pod=%r", plugin.name, pod.key)
            if reserved.sampled:
                framework.calls.executed(plugin.name, "PostBind", SUCCESS_LABEL, perf_counter() - began)
        framework.calls.report("PostBind", SUCCESS_LABEL, perf_counter() - started)

    def _bind_failed(self, reserved: Reserved, message: str) -> None:
        """Give back the room of a pod that was not bound, and the pod to the queue."""
        self._give_back(reserved)
        self._return(reserved, message, error=True)
        pod, groups = reserved.pod, self.queue.groups
        group = groups.object_of(pod)
        is_short = group is not None and len(groups.placed(group.key)) < group.least
        if is_short and self.queue.is_alive(pod.uid):
            # Others of its group may run already: who takes this room would leave the group in part.
            self.queue.nominate(pod, reserved.placement.node_name)

    def _return(self, reserved: Reserved, why: FitError | str, *, error: bool = False) -> None:
        if self.cache.node_of(reserved.pod.uid) is not None:
            # The watch has shown it on a node after all.
            self.queue.done(reserved.pod.uid)
        else:
            self.failures.report(return_to_queue(self.queue, reserved, why, error=error))

    def _give_back(self, reserved: Reserved, *, wakes_itself: bool = True) -> None:
        """Give back what the pod reserved and its room if it is still assumed, and wake pods that may use it."""
        self._free(reserved.pod, reserved.unreserve, wakes_itself=wakes_itself)

    def _free(self, pod: PodInfo, unreserve: Callable[[], None], *, wakes_itself: bool = True) -> None:
        self._unreserve(pod, unreserve)
        if self.cache.is_assumed(pod.uid):
            self.cache.forget_pod(pod.uid)
            self.queue.move_all(ASSIGNED_POD_DELETE, pod, None, except_uid=None if wakes_itself else pod.uid)

    @staticmethod
    def _unreserve(pod: PodInfo, unreserve: Callable[[], None]) -> None:
        try:
            unreserve()
        except Exception:
            logger.exception("a Reserve plugin did not give back what it took pod=%r", pod.key)
