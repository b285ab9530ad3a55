"""Makes every part of the running scheduler once and wires them together; nothing is started, asked or listened to."""

import asyncio
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.api.objects import Pod
from bayplan.api.reflector import Reflector
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.config.connections import ClientConnection
from bayplan.config.types import SchedulerConfiguration
from bayplan.controller.assumed_pods import AssumedPods
from bayplan.controller.cache_debugger import CacheDebugger
from bayplan.controller.engines import EngineBuilder
from bayplan.controller.intake_list import IntakeList
from bayplan.controller.leadership import Leadership
from bayplan.controller.operator_thread import KopfSessions, OperatorThread
from bayplan.controller.recovery import Recovery
from bayplan.controller.reload import ConfigurationReload, ConfigurationSource
from bayplan.controller.watches import Watches
from bayplan.queue.nominator import Nominator
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.allocation import allocation_summary
from bayplan.scheduler.api_calls import utc_now
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.observer import SchedulerObserver
from bayplan.scheduler.pending_pods import PendingPodEvents
from bayplan.scheduler.scheduler import Scheduler
from bayplan.server.configuration import ConfigurationCollector
from bayplan.server.debug import debug_routes
from bayplan.server.health import HealthChecks
from bayplan.server.http import HttpServer
from bayplan.server.leader_election import LeaderElectionCollector
from bayplan.server.metrics import SchedulerMetrics
from bayplan.server.state import StateCollector, StateSources


@dataclass(frozen=True, slots=True)
class Parts:
    """What the process starts and stops, and what it is looked at by.

    Without `leadership` there is no election, and it schedules as soon as it can.
    """

    scheduler: Scheduler
    watches: Watches
    operator: OperatorThread
    intake_list: IntakeList
    assumed_pods: AssumedPods
    leadership: Leadership | None
    reload: ConfigurationReload
    clients: tuple[ApiClient, ...]
    health: HealthChecks
    server: HttpServer


def build(
    configuration: SchedulerConfiguration,
    credentials: Credentials,
    source: ConfigurationSource | None = None,
    *,
    rejection_backoff_seconds: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
    make_client: Callable[..., ApiClient] = ApiClient,
    make_reflector: Callable[..., Reflector[Any]] = Reflector,
) -> Parts:
    """Make the parts of a scheduler that reaches its API server by `credentials`.

    From `source`, if there is one, a changed configuration is taken over later on. A node whose kubelet had no room for
    a pod gets none for `rejection_backoff_seconds`.

    `clock`, monotonic and in seconds, and what makes clients and reflectors are given by who has time and API server in
    memory.
    """
    names = frozenset(profile.scheduler_name for profile in configuration.profiles)
    connection = configuration.client_connection
    news = asyncio.Event()

    cache, nominator = Cache(), Nominator()
    metrics = SchedulerMetrics(profiles=sorted(names))
    leadership = _leadership(configuration, credentials, metrics)
    admit = leadership.admit if leadership is not None else None
    client = _measured_client(make_client, credentials, connection, metrics, admit)
    # Events have a rate limit of their own, as in kube-scheduler, so that they never hold up a bind.
    events_client = _measured_client(make_client, credentials, connection, metrics, admit)

    engines = EngineBuilder(cache=cache, nominator=nominator, client=client, admit=admit, observer=metrics, clock=clock)
    engine = engines.build(configuration)
    queue = SchedulingQueue(
        clock=clock,
        profiles=engine.queue.profiles,
        initial_backoff_seconds=engine.queue.initial_backoff_seconds,
        max_backoff_seconds=engine.queue.max_backoff_seconds,
        sort_key=engine.queue.sort_key,
        observer=metrics,
        nominator=nominator,
    )

    # These need one another: answers to the dispatcher's calls feed the queue, and the dispatcher sends the Events.
    def pod_gone(uid: str) -> None:
        recorder.forget(uid)
        scheduler.pod_gone(uid)

    def recovered() -> None:
        recovery.recovered()

    def went_back() -> None:
        recovery.went_back()

    pending = PendingPodEvents(cache, queue, news.set, metrics, names, pod_gone)
    dispatcher = Dispatcher(client, events_client, on_patched=pending.written, wake=news.set)
    recorder = EventRecorder(emit=dispatcher.send, now=utc_now, hostname=socket.gethostname())
    watches = Watches(
        credentials,
        cache,
        queue,
        metrics,
        wake=news.set,
        on_gone=recorder.forget,
        on_recovered=recovered,
        on_went_back=went_back,
        scheduler_names=names,
        rejection_backoff_seconds=rejection_backoff_seconds,
        make_reflector=make_reflector,
    )

    scheduler = Scheduler(
        cache=cache,
        queue=queue,
        engine=engine,
        dispatcher=dispatcher,
        recorder=recorder,
        observer=metrics,
        victim_gone=watches.assigned.ended,
        announces=configuration.feature_gates.enabled("NominatedNodeNameForExpectation"),
        news=news,
        clock=clock,
    )

    intake_list = IntakeList(client, names, pending, on_went_back=went_back)
    operator = OperatorThread(
        names, KopfSessions(credentials), take=pending.watched, on_restart=intake_list.ask_for_fill
    )
    recovery = Recovery(watches, intake_list, operator, pending)

    def never_bound(pod: Pod) -> None:
        scheduler.never_bound(PodInfo(pod))
        pending.changed(pod)
        news.set()

    assumed_pods = AssumedPods(
        client,
        # Others are their bind's to look after.
        assumed=lambda: [pod for pod in cache.assumed_pods() if not scheduler.is_binding(pod.uid)],
        ended=watches.assigned.on_delete,
        unbound=never_bound,
    )

    own = None if source is None or source.own_pod is None else PodInfo(source.own_pod)

    def tell(kind: Literal["Normal", "Warning"], reason: str, note: str) -> None:
        # Replicas that do not lead may write nothing; log and metric say the same.
        if own is not None and (leadership is None or leadership.is_leading()):
            recorder.own(own, kind, reason, note)

    collector = ConfigurationCollector()
    metrics.registry.register(collector)
    reload = ConfigurationReload(
        source,
        configuration,
        engine,
        build=engines.build,
        take_over=scheduler.take_over,
        forget_unwatched=watches.forget_unwatched,
        collector=collector,
        tell=tell,
    )

    state = StateSources(
        pending=queue.pending,
        cache=cache.sizes,
        allocation=lambda: allocation_summary(cache.nodes),
        watches=watches.states,
    )
    metrics.registry.register(StateCollector(state))
    debugger = CacheDebugger(credentials, cache, queue, names, on_compared=metrics.cache_compared)
    health = HealthChecks()
    watches.add_readiness(health)
    health.add_readiness("kopf", operator.problem)
    health.add_readiness("intake", intake_list.problem)
    if leadership is not None:
        leadership.add_checks(health)
    return Parts(
        scheduler=scheduler,
        watches=watches,
        operator=operator,
        intake_list=intake_list,
        assumed_pods=assumed_pods,
        leadership=leadership,
        reload=reload,
        clients=(client, events_client),
        health=health,
        server=HttpServer(
            metrics.registry,
            health,
            routes=debug_routes(debugger.compare) if configuration.enable_profiling else (),
        ),
    )


def _leadership(
    configuration: SchedulerConfiguration, credentials: Credentials, metrics: SchedulerMetrics
) -> Leadership | None:
    """The part in the election that the configuration asks for, if it does."""
    settings = configuration.leader_election
    if not settings.leader_elect:
        return None
    leadership = Leadership(
        settings, credentials, hostname=socket.gethostname(), host=urlsplit(credentials.server).netloc, observer=metrics
    )
    metrics.registry.register(
        LeaderElectionCollector(
            settings.resource_name, is_leading=leadership.is_leading, slow_paths=leadership.slow_paths
        )
    )
    return leadership


def _measured_client(
    make_client: Callable[..., ApiClient],
    credentials: Credentials,
    connection: ClientConnection,
    observer: SchedulerObserver,
    admit: Callable[[], float] | None,
) -> ApiClient:
    """A client with a rate limit of its own that tells the observer of each request and each wait for the limit."""
    host = urlsplit(credentials.server).netloc

    def on_request(method: str, code: str, seconds: float) -> None:
        observer.rest_request(method, code, host, seconds)

    def on_throttle(method: str, seconds: float) -> None:
        observer.throttled(method, host, seconds)

    return make_client(
        credentials,
        qps=connection.qps,
        burst=connection.burst,
        on_request=on_request,
        on_throttle=on_throttle,
        admit=admit,
    )
