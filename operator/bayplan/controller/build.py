"""Makes every part of the running scheduler once and wires them together; nothing is started, asked or listened to."""

import asyncio
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from bayplan.api.backoff import ServerContact
from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.api.kinds import PODS
from bayplan.api.missing_rights import MissingRights
from bayplan.api.reflector import Reflector
from bayplan.api.watch_source import WatchSource
from bayplan.cache.cache import Cache
from bayplan.config.connections import ClientConnection
from bayplan.config.types import SchedulerConfiguration
from bayplan.controller.assumed_pods import AssumedPods, build_assumed_pods
from bayplan.controller.intake_list import LIST_SECONDS, IntakeList
from bayplan.controller.leadership import Leadership, build_leadership
from bayplan.controller.observation import build_health, build_serving
from bayplan.controller.operator_thread import KopfSessions, OperatorThread
from bayplan.controller.recovery import Recovery
from bayplan.controller.reload import ConfigurationReload, ConfigurationSource, build_reload
from bayplan.controller.serving import Serving
from bayplan.controller.watches import Watches
from bayplan.metrics.table import Metrics
from bayplan.queue.in_flight import STEP_PODS
from bayplan.queue.nominator import Nominator
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.api_calls import namespace_of, resource_of, utc_now
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.engines import Engine, EngineBuilder
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.pending_pods import PendingPodEvents
from bayplan.scheduler.scheduler import Scheduler
from bayplan.server.health import HealthChecks
from bayplan.server.metrics import SchedulerMetrics
from bayplan.server.options import ServingOptions


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
    contact: ServerContact
    health: HealthChecks
    serving: Serving


def build(
    configuration: SchedulerConfiguration,
    credentials: Credentials,
    source: ConfigurationSource | None = None,
    *,
    serving: ServingOptions | None = None,
    heeds_other_leases: bool = False,
    rejection_backoff_seconds: float = 0.0,
    unschedulable_seconds: float = 300.0,
    clock: Callable[[], float] = time.monotonic,
    make_client: Callable[..., ApiClient] = ApiClient,
    make_reflector: Callable[..., Reflector[Any]] = Reflector,
    open_source: Callable[..., WatchSource] = WatchSource,
) -> Parts:
    """Make the parts of a scheduler that reaches its API server by `credentials`.

    From `source`, if there is one, a changed configuration is taken over later on. Without `serving` there is no port
    until one is opened. A node whose kubelet had no room for a pod gets none for `rejection_backoff_seconds`, and a pod
    that no event woke is tried again after `unschedulable_seconds`. With `heeds_other_leases` and nothing
    said about leader election, the process first looks for a Lease of a scheduler for the same pods.

    Tests pass a virtual `clock` (monotonic, in seconds) and an API server in memory, as makers of clients, reflectors
    and the intake's source.
    """
    foundation = _foundation(configuration, credentials, clock, make_client, heeds_other_leases=heeds_other_leases)
    client, events_client = foundation.client(), foundation.client()
    binds_client = client.twin()
    core = _core(foundation, binds_client, unschedulable_seconds)
    dispatcher, recorder = _writers(foundation, core, client, events_client)
    recovery = Recovery()
    watches = Watches(
        credentials,
        core.cache,
        core.queue,
        foundation.metrics,
        wake=core.news.set,
        on_gone=recorder.forget,
        on_recovered=recovery.recovered,
        on_went_back=recovery.went_back,
        scheduler_names=foundation.names,
        rejection_backoff_seconds=rejection_backoff_seconds,
        make_reflector=partial(make_reflector, contact=foundation.contact),
    )
    scheduler = Scheduler(
        cache=core.cache,
        queue=core.queue,
        engine=core.engine,
        dispatcher=dispatcher,
        recorder=recorder,
        metrics=foundation.metrics,
        victim_gone=watches.assigned.ended,
        announces=configuration.feature_gates.enabled("NominatedNodeNameForExpectation"),
        news=core.news,
        clock=clock,
    )
    pending = core.pending
    intake_list = IntakeList(
        client,
        partial(open_source, credentials, PODS.path, list_timeout=LIST_SECONDS, inactivity=LIST_SECONDS),
        foundation.names,
        pending,
        on_went_back=recovery.went_back,
        contact=foundation.contact,
    )
    operator = OperatorThread(
        foundation.names, KopfSessions(credentials), take=pending.watched, on_list=intake_list.ask_for_fill
    )
    # These two are connected late, because they call parts that are made after them.
    pending.on_gone = scheduler.pod_gone
    recovery.connect(watches, intake_list, operator, pending)

    reload = build_reload(
        source,
        configuration,
        core.engine,
        build_engine=core.engines.build,
        scheduler=scheduler,
        watches=watches,
        recorder=recorder,
        metrics=foundation.metrics,
        leadership=foundation.leadership,
    )
    health = build_health(watches, operator, intake_list, foundation.leadership)
    return Parts(
        scheduler=scheduler,
        watches=watches,
        operator=operator,
        intake_list=intake_list,
        assumed_pods=build_assumed_pods(client, core.cache, scheduler, watches, pending),
        leadership=foundation.leadership,
        reload=reload,
        clients=(client, binds_client, events_client),
        contact=foundation.contact,
        health=health,
        serving=build_serving(
            configuration,
            credentials,
            serving or ServingOptions(secure_port=None),
            cache=core.cache,
            queue=core.queue,
            scheduler=scheduler,
            watches=watches,
            metrics=foundation.metrics,
            health=health,
            current=lambda: reload.configuration,
            leadership=foundation.leadership,
            make_client=make_client,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Foundation:
    """What all parts are given: the first configuration, the way to the API server, the metrics and the clock."""

    configuration: SchedulerConfiguration
    names: frozenset[str]
    metrics: SchedulerMetrics
    leadership: Leadership | None
    admit: Callable[[], float] | None
    contact: ServerContact
    client: Callable[[], ApiClient]
    """Makes a client with a rate limit of its own."""
    clock: Callable[[], float]


def _foundation(
    configuration: SchedulerConfiguration,
    credentials: Credentials,
    clock: Callable[[], float],
    make_client: Callable[..., ApiClient],
    *,
    heeds_other_leases: bool,
) -> _Foundation:
    names = frozenset(profile.scheduler_name for profile in configuration.profiles)
    metrics = SchedulerMetrics(profiles=sorted(names))
    leadership = build_leadership(
        configuration.leader_election, credentials, metrics, names, heeds_other_leases=heeds_other_leases
    )
    admit = leadership.admit if leadership is not None else None
    contact = ServerContact(credentials.server)
    client = partial(
        _measured_client,
        make_client,
        credentials,
        configuration.client_connection,
        metrics=metrics,
        contact=contact,
        admit=admit,
    )
    return _Foundation(configuration, names, metrics, leadership, admit, contact, client, clock)


@dataclass(frozen=True, slots=True)
class _Core:
    """The cache, the queue and the engine that decides on them."""

    cache: Cache
    queue: SchedulingQueue
    pending: PendingPodEvents
    engines: EngineBuilder
    engine: Engine
    news: asyncio.Event
    """Set when there may be something to do."""


def _core(foundation: _Foundation, client: ApiClient, unschedulable_seconds: float) -> _Core:
    cache, nominator, news = Cache(), Nominator(), asyncio.Event()
    engines = EngineBuilder(
        cache=cache,
        nominator=nominator,
        client=client,
        admit=foundation.admit,
        metrics=foundation.metrics,
        clock=foundation.clock,
    )
    engine = engines.build(foundation.configuration)
    queue = SchedulingQueue(
        clock=foundation.clock,
        profiles=engine.queue.profiles,
        initial_backoff_seconds=engine.queue.initial_backoff_seconds,
        max_backoff_seconds=engine.queue.max_backoff_seconds,
        max_in_unschedulable_seconds=unschedulable_seconds,
        sort_key=engine.queue.sort_key,
        metrics=foundation.metrics,
        nominator=nominator,
        step=STEP_PODS,
    )
    pending = PendingPodEvents(cache, queue, news.set, foundation.metrics, foundation.names)
    return _Core(cache, queue, pending, engines, engine, news)


def _writers(
    foundation: _Foundation, core: _Core, client: ApiClient, events_client: ApiClient
) -> tuple[Dispatcher, EventRecorder]:
    """Make what writes; Events have a client of their own, as in kube-scheduler, and binds have their connections."""
    dispatcher = Dispatcher(
        client,
        events_client,
        on_patched=core.pending.written,
        on_call=foundation.metrics.api_call,
        wake=core.news.set,
    )
    recorder = EventRecorder(
        emit=dispatcher.send, now=utc_now, hostname=socket.gethostname(), waiting=lambda: dispatcher.events_waiting
    )
    return dispatcher, recorder


def _measured_client(
    make_client: Callable[..., ApiClient],
    credentials: Credentials,
    connection: ClientConnection,
    *,
    metrics: Metrics,
    contact: ServerContact,
    admit: Callable[[], float] | None,
) -> ApiClient:
    """A client with a rate limit of its own that tells of each request and of each wait for the limit."""
    host = urlsplit(credentials.server).netloc

    def on_request(method: str, code: str, seconds: float) -> None:
        metrics.rest_request(method, code, host, seconds)
        contact.requested(method, code, seconds)

    def on_throttle(method: str, seconds: float) -> None:
        metrics.throttle_seconds.observe(seconds, method, host)

    return make_client(
        credentials,
        qps=connection.qps,
        burst=connection.burst,
        on_request=on_request,
        on_throttle=on_throttle,
        on_forbidden=MissingRights().refused,
        on_refused=lambda method, path: metrics.admission_refused(method, resource_of(path), namespace_of(path)),
        admit=admit,
    )
