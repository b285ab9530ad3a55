"""The running scheduler: every part made once, wired together, started in order and stopped in order."""

import asyncio
import gc
import logging
import signal
import socket
import time
from collections.abc import Awaitable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from bayplan.api.credentials import Credentials
from bayplan.cache.cache import Cache
from bayplan.config.types import SchedulerConfiguration
from bayplan.controller.api_access import KopfSessions, measured_client
from bayplan.controller.assumed_pods import AssumedPods
from bayplan.controller.intake import Access, PendingPod, build_registry, field_selector, operator_settings, unfailing
from bayplan.controller.list_intake import ListIntake
from bayplan.controller.operator_task import OperatorTask
from bayplan.controller.resync import IntakeResync
from bayplan.controller.watch_filter import WatchFilter
from bayplan.controller.watches import Watches
from bayplan.framework.runtime import Framework
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.nominator import Nominator
from bayplan.queue.queue_profile import queue_profile
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.sub_queues import QueueObserver
from bayplan.scheduler.allocation import allocation_summary
from bayplan.scheduler.binder import Binder
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.extender.binder import ExtenderBinder
from bayplan.scheduler.extender.client import make_clients
from bayplan.scheduler.extender.extended_cycle import ExtendedCycle, pod_from_api
from bayplan.scheduler.observer import WatchState
from bayplan.scheduler.pending_pods import PendingPodEvents
from bayplan.scheduler.scheduler import Scheduler
from bayplan.server.health import HealthChecks
from bayplan.server.http import HttpServer
from bayplan.server.metrics import SchedulerMetrics
from bayplan.server.state import StateSources

logger = logging.getLogger(__name__)

_RESYNC_SECONDS = 60.0
# Room held for a pod that is gone is worth more than the few reads a late watch costs.
_ASSUMED_CHECK_SECONDS = 15.0
_YOUNG_OBJECTS = 20_000
_INTAKE_PATIENCE_SECONDS = 3.0
# Together under ten seconds, API server or not: a Deployment's grace period is thirty.
_DRAIN_BINDS_SECONDS = 7.0
_DRAIN_CALLS_SECONDS = 2.0
_OPERATOR_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Where metrics and health are served; port 0 picks a free one."""

    bind_address: str
    http_port: int


class App:
    """One scheduler process, from its configuration to its exit code."""

    def __init__(self, configuration: SchedulerConfiguration, credentials: Credentials, options: ServeOptions) -> None:
        self._credentials = credentials
        self._options = options
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._failed: BaseException | None = None
        names = frozenset(profile.scheduler_name for profile in configuration.profiles)

        self.cache = Cache()
        nominator = Nominator()
        frameworks = build_frameworks(configuration, self.cache.nodes, self.cache.listers, nominator)
        self.metrics = SchedulerMetrics(profiles=sorted(names), sources=self._sources())
        self.queue = _queue(configuration, frameworks, nominator, self.metrics)
        connection = configuration.client_connection
        self._client = measured_client(credentials, connection.qps, connection.burst, self.metrics)
        # Events have a rate limit of their own, as in kube-scheduler, so that they never hold up a bind.
        self._events_client = measured_client(credentials, connection.qps, connection.burst, self.metrics)
        self._extenders = make_clients(configuration.extenders)
        self._dispatcher = Dispatcher(self._client, self._events_client, on_patched=self._patched)
        recorder = EventRecorder(
            emit=self._dispatcher.send, now=lambda: datetime.now(UTC), hostname=socket.gethostname()
        )
        self.scheduler = self._scheduler(frameworks, recorder)
        wake, forget = self.scheduler.wake, recorder.forget
        self._watches = Watches(
            credentials, self.cache, self.queue, self.metrics, wake=wake, on_gone=forget, scheduler_names=names
        )
        self._pending = PendingPodEvents(self.cache, self.queue, wake, self.metrics, profiles=names, on_gone=forget)
        self._resync = self._intake_resync(names)
        self._assumed = AssumedPods(
            self._client,
            # A pod in flight is its bind's to look after.
            assumed=lambda: [pod for pod in self.cache.assumed_pods() if self.queue.get(pod.uid) is None],
            ended=self._watches.assigned.on_delete,
        )
        self._listed = ListIntake(unfailing(self._take))
        left_out = WatchFilter(departed=self._pending.departed, knows=self._pending.knows)
        sessions = KopfSessions(credentials, self._listed, left_out)
        access = Access(credentials.server, sessions.open)
        self._operator = OperatorTask(
            lambda: build_registry(access, self._take),
            lambda: operator_settings(names),
            keep_signals=self._heed_signals,
        )
        self._health = HealthChecks()
        self._watches.add_readiness(self._health)
        self._health.add_readiness("intake", self._intake_problem)
        self._server = HttpServer(self.metrics.registry, self._health)

    def _sources(self) -> StateSources:
        return StateSources(
            pending=self._pending_counts,
            cache=self.cache.sizes,
            allocation=lambda: allocation_summary(self.cache.nodes),
            watches=self._watch_states,
        )

    # The metrics come before the queue and the watches, which report to them.
    def _pending_counts(self) -> dict[str, int]:
        return self.queue.pending()

    def _watch_states(self) -> dict[str, WatchState]:
        return self._watches.states()

    def _intake_problem(self) -> str | None:
        if not self._operator.ready:
            return "kopf has not started"
        return None if self._listed.complete else "pending pods are not listed yet"

    def _scheduler(self, frameworks: Mapping[str, Framework], recorder: EventRecorder) -> Scheduler:
        binds = next((each for each in self._extenders if each.spec.bind_verb), None)
        make_binder = Binder if binds is None else partial(ExtenderBinder, extender=binds, assumed=self.cache.pod)
        binder = make_binder(
            self._client,
            node_exists=self.cache.has_node,
            confirmed_node=self.cache.confirmed_node,
            on_ambiguous=self.metrics.bind_ambiguous,
        )
        cycle = SchedulingCycle(self.cache.nodes, self.queue.nominator, observe=self.metrics.extension_point)
        return Scheduler(
            cache=self.cache,
            queue=self.queue,
            cycle=cycle,
            frameworks=frameworks,
            dispatcher=self._dispatcher,
            binder=binder,
            recorder=recorder,
            observer=self.metrics,
            extended=self._extended(cycle),
            victim_gone=self._victim_gone,
        )

    def _extended(self, cycle: SchedulingCycle) -> ExtendedCycle | None:
        if not self._extenders:
            return None
        return ExtendedCycle(cycle, self.cache.nodes, self._extenders, pod_from_api(self._client))

    def _intake_resync(self, names: Collection[str]) -> IntakeResync:
        return IntakeResync(
            self._client,
            [field_selector({name}) for name in sorted(names)],
            queued=self.queue.uids,
            known=lambda uid: self.queue.get(uid) is not None or self.cache.node_of(uid) is not None,
            gone=self._pending.gone,
            changed=self._pending.changed,
        )

    async def run(self) -> int:
        """Schedule until told to stop; 0 after a signal, 1 if a part that must not end did."""
        self._heed_signals()
        # Most of what a pod makes dies by reference count before a collection this rare would look at it.
        gc.set_threshold(_YOUNG_OBJECTS, 20, 50)
        await self._server.start(self._options.bind_address, self._options.http_port)
        self._dispatcher.start()
        for name, work in self._watches.work().items():
            self._spawn(name, work)
        try:
            if await self._synced():
                logger.info("caches synced nodes=%d pods=%d", len(self.cache.nodes), self.cache.sizes().pods)
                # What was listed stays: keep the collector from walking it at every full collection.
                gc.collect()
                gc.freeze()
                self._operator.start()
                self._spawn("scheduler", self._schedule())
                self._spawn("resync", self._resync.run(_RESYNC_SECONDS))
                self._spawn("assumed", self._assumed.run(_ASSUMED_CHECK_SECONDS))
                await self._stop.wait()
        finally:
            await self._shut_down()
        if self._failed is not None:
            logger.critical("ending because a part failed error=%r", self._failed)
            return 1
        return 0

    def _heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, self._stop.set)

    async def _synced(self) -> bool:
        """Wait for the first list of every kind; False if told to stop first."""
        while not self._watches.synced:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.02):
                    await self._stop.wait()
            if self._stop.is_set():
                return False
        return True

    async def _schedule(self) -> None:
        """Schedule once all pods that waited for us are in the queue, so that they go in order of priority."""
        await self._listed.first_list(_INTAKE_PATIENCE_SECONDS)
        await self.scheduler.run()

    async def _shut_down(self) -> None:
        """Stop deciding, let binds under way finish, then end everything else."""
        self._health.begin_shutdown()
        self._operator.stop()
        self.scheduler.stop()
        await self._dispatcher.drain(binds_seconds=_DRAIN_BINDS_SECONDS, calls_seconds=_DRAIN_CALLS_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._operator.join(_OPERATOR_SECONDS)
        await self._client.close()
        await self._events_client.close()
        for extender in self._extenders:
            await extender.close()
        await self._server.stop()

    def _spawn(self, name: str, work: Awaitable[None]) -> None:
        """Run a part that must not end; if it does, the process ends with it rather than go on half alive."""

        async def guarded() -> None:
            try:
                await work
            except Exception as error:  # noqa: BLE001  reported by run, which exits with it
                self._failed = self._failed or error
            else:
                if not self._stop.is_set():
                    self._failed = RuntimeError(f"{name} ended")
            self._stop.set()

        self._tasks.append(asyncio.create_task(guarded(), name=name))

    # The scheduler comes before what feeds it.
    def _victim_gone(self, uid: str) -> None:
        self._watches.assigned.ended(uid)

    def _patched(self, body: bytes) -> None:
        self._pending.written(body)

    def _take(self, told: PendingPod) -> None:
        """One message of the intake."""
        if told.pod is not None:
            self._pending.changed(told.pod)
            return
        if told.error:
            logger.warning("pod left out pod=%r error=%s", told.key, told.error)
            self.metrics.undecodable("Pod")
        self._pending.gone(told.uid)


def _queue(
    configuration: SchedulerConfiguration,
    frameworks: Mapping[str, Framework],
    nominator: Nominator,
    observer: QueueObserver,
) -> SchedulingQueue:
    return SchedulingQueue(
        clock=time.monotonic,
        profiles={name: queue_profile(framework) for name, framework in frameworks.items()},
        initial_backoff_seconds=configuration.pod_initial_backoff_seconds,
        max_backoff_seconds=configuration.pod_max_backoff_seconds,
        sort_key=next(iter(frameworks.values())).queue_sort.sort_key,
        observer=observer,
        nominator=nominator,
    )
