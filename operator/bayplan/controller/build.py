"""Makes every part of the running scheduler once and wires them together; nothing is started, asked or listened to."""

import asyncio
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from bayplan.api.backoff import ServerContact
from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.api.errors import UnreachableError
from bayplan.api.kinds import PODS
from bayplan.api.reflector import Reflector
from bayplan.api.response import Refusals
from bayplan.api.watch_source import WatchSource
from bayplan.cache.cache import Cache
from bayplan.config.types import SchedulerConfiguration
from bayplan.controller.assumed_pods import AssumedPods
from bayplan.controller.intake_list import LIST_SECONDS, IntakeList
from bayplan.controller.leadership import Leadership
from bayplan.controller.operator_thread import KopfSessions, OperatorThread
from bayplan.controller.recovery import Recovery
from bayplan.controller.reload import ConfigurationReload, ConfigurationSource
from bayplan.controller.serving import Serving, build_serving
from bayplan.controller.watches import Watches
from bayplan.framework.nominator import Nominator
from bayplan.framework.status import Exchange
from bayplan.groups.pod_groups import PodGroups
from bayplan.metrics.table import Metrics
from bayplan.queue.in_flight import STEP_PODS
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.api_calls import namespace_of, resource_of, utc_now
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.engines import Engine, EngineBuilder
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.pending_pods import PendingPodEvents
from bayplan.scheduler.pod_group_reporter import PodGroupReporter
from bayplan.scheduler.scheduler import Scheduler
from bayplan.scheduler.shadow import Shadow, World
from bayplan.server.health import HealthChecks
from bayplan.server.metrics import AtScrape, SchedulerMetrics
from bayplan.server.options import ServingOptions
from bayplan.server.state import shadow_metrics


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
    shadow: Shadow | None = None
    """What decides in place of the scheduler, which then gets no pods."""


def _writes_nothing() -> float:
    raise UnreachableError("a shadow writes nothing")


def build(
    configuration: SchedulerConfiguration,
    credentials: Credentials,
    source: ConfigurationSource | None = None,
    *,
    serving: ServingOptions | None = None,
    heeds_other_leases: bool = False,
    rejection_backoff_seconds: float = 0.0,
    unschedulable_seconds: float = 300.0,
    is_shadow: bool = False,
    clock: Callable[[], float] = time.monotonic,
    make_client: Callable[..., ApiClient] = ApiClient,
    make_reflector: Callable[..., Reflector[Any]] = Reflector,
    open_source: Callable[..., WatchSource] = WatchSource,
) -> Parts:
    """Make the parts of a scheduler that reaches its API server by `credentials`.

    From `source`, if there is one, a changed configuration is taken over later on. Without `serving` there is no port
    until one is opened. A node whose kubelet had no room for a pod gets none for `rejection_backoff_seconds`, and a pod
    that no event woke is tried again after `unschedulable_seconds`. With `heeds_other_leases` the process first looks
    for a Lease of a scheduler for the same pods. A shadow decides for pods of other schedulers, by a
    `shadow_configuration`: no pod enters its queue, and no write of it passes the gate.

    Tests pass a virtual `clock` (monotonic, in seconds) and an API server in memory, as makers of clients, reflectors
    and the intake's source.
    """
    names = frozenset(profile.scheduler_name for profile in configuration.profiles)
    metrics = SchedulerMetrics(profiles=sorted(names))
    contact = ServerContact(credentials.server)
    election, leadership = configuration.leader_election, None
    if election.leader_elect or heeds_other_leases:
        leadership = Leadership(election, credentials, names, metrics, heeds_other_leases=heeds_other_leases)
    admit = _writes_nothing if is_shadow else None if leadership is None else leadership.admit
    connect = partial(_client, make_client, credentials, configuration, metrics=metrics, contact=contact, admit=admit)
    # Events have a client of their own, as in kube-scheduler, and binds have their connections.
    client, events_client = connect(), connect()
    binds_client = client.twin()
    cache, nominator, news = Cache(), Nominator(), asyncio.Event()

    def afterwards(exchange: Exchange) -> None:
        # The scheduler is made later, of engines.
        scheduler.later.perform(exchange)

    engines = EngineBuilder(
        cache=cache,
        nominator=nominator,
        client=binds_client,
        admit=admit,
        metrics=metrics,
        clock=clock,
        afterwards=afterwards,
        groups=PodGroups(cache),
    )
    engine = engines.build(configuration)
    shadow = _shadow(engines, engine, configuration, metrics) if is_shadow else None
    queue = SchedulingQueue(
        clock=clock,
        settings=engine.queue,
        max_in_unschedulable_seconds=unschedulable_seconds,
        metrics=metrics,
        nominator=nominator,
        step=STEP_PODS,
        groups=engines.groups,
        wake=news.set,
    )
    pending = PendingPodEvents(cache, queue, metrics, names)
    dispatcher = Dispatcher(client, events_client, on_patched=pending.written, on_call=metrics.api_call, wake=news.set)
    recorder = EventRecorder(
        emit=dispatcher.send, now=utc_now, hostname=socket.gethostname(), waiting=lambda: dispatcher.events_waiting
    )
    group_reporter = PodGroupReporter(dispatcher.patch, metrics, clock)
    recovery = Recovery()
    watches = Watches(
        credentials,
        cache,
        queue,
        metrics,
        on_gone=recorder.forget,
        on_recovered=recovery.recovered,
        on_went_back=recovery.went_back,
        scheduler_names=() if is_shadow else names,
        shadow=shadow,
        shared=pending.shared.of,
        on_group_gone=None if is_shadow else group_reporter.forget,
        rejection_backoff_seconds=rejection_backoff_seconds,
        make_reflector=partial(make_reflector, contact=contact),
    )
    scheduler = Scheduler(
        cache=cache,
        queue=queue,
        engine=engine,
        dispatcher=dispatcher,
        recorder=recorder,
        metrics=metrics,
        victim_gone=watches.assigned.gone_by_answer,
        writes_node=configuration.feature_gates.enabled("NominatedNodeNameForExpectation"),
        on_round=group_reporter.report,
        news=news,
        clock=clock,
    )
    intake_list = IntakeList(
        client,
        partial(open_source, credentials, PODS.path, list_timeout=LIST_SECONDS, inactivity=LIST_SECONDS),
        names,
        pending,
        on_went_back=recovery.went_back,
        contact=contact,
    )
    operator = OperatorThread(names, KopfSessions(credentials), take=pending.watched, on_list=intake_list.ask_for_fill)
    # These are connected late, because they call parts that are made after them.
    pending.on_gone = scheduler.pod_gone
    recovery.connect(watches, intake_list, operator, pending)
    reload = ConfigurationReload(
        source=source,
        configuration=configuration,
        engine=engine,
        engines=engines,
        scheduler=scheduler,
        watches=watches,
        recorder=recorder,
        metrics=metrics,
        leadership=leadership,
    )
    intake = {"kopf": operator.problem, "intake": intake_list.problem}
    health = _health(watches, intake if shadow is None else {"shadow": shadow.problem}, leadership)
    return Parts(
        scheduler=scheduler,
        watches=watches,
        operator=operator,
        intake_list=intake_list,
        assumed_pods=AssumedPods(client, cache, scheduler, pending, remove=watches.assigned.on_delete),
        leadership=leadership,
        reload=reload,
        clients=(client, binds_client, events_client),
        contact=contact,
        health=health,
        serving=build_serving(
            credentials,
            serving or ServingOptions(secure_port=None),
            scheduler=scheduler,
            watches=watches,
            metrics=metrics,
            health=health,
            reload=reload,
            leadership=leadership,
            make_client=make_client,
        ),
        shadow=shadow,
    )


def _client(
    make_client: Callable[..., ApiClient],
    credentials: Credentials,
    configuration: SchedulerConfiguration,
    *,
    metrics: SchedulerMetrics,
    contact: ServerContact,
    admit: Callable[[], float] | None,
) -> ApiClient:
    """Return a client with a rate limit of its own that tells of each request and of each wait for the limit."""
    host = urlsplit(credentials.server).netloc

    def on_request(method: str, code: str, seconds: float) -> None:
        metrics.rest_request(method, code, host, seconds)
        contact.requested(method, code, seconds)

    def on_refused(method: str, path: str) -> None:
        resource, namespace = resource_of(path), namespace_of(path)
        metrics.admission_refused(method, resource, namespace)
        by_admission(resource, namespace)

    # Each remembers its own: namespaces that admission refuses do not keep a missing right from being told.
    by_admission = Refusals().by_admission
    return make_client(
        credentials,
        qps=configuration.client_connection.qps,
        burst=configuration.client_connection.burst,
        on_request=on_request,
        on_throttle=lambda method, seconds: metrics.throttle_seconds.observe(seconds, method, host),
        on_forbidden=Refusals().forbidden,
        on_refused=on_refused,
        has_unread_roles=contact.has_unread_roles,
        admit=admit,
    )


def _health(
    watches: Watches, checks: Mapping[str, Callable[[], str | None]], leadership: Leadership | None
) -> HealthChecks:
    """Return what `/readyz` and `/livez` tell: of each watch, of these checks by name, and of the election."""
    health = HealthChecks()
    watches.add_readiness(health)
    for name, problem in checks.items():
        health.add_readiness(name, problem)
    if leadership is not None:
        leadership.add_checks(health)
    return health


def _shadow(
    engines: EngineBuilder, engine: Engine, configuration: SchedulerConfiguration, metrics: SchedulerMetrics
) -> Shadow:
    """Return what decides in two worlds: the one that is watched, and one where its own choices count."""
    elsewhere = Cache()
    elsewhere.listers = engines.cache.listers
    others = replace(
        engines, cache=elsewhere, nominator=Nominator(), metrics=Metrics(), afterwards=lambda exchange: None
    )
    other = others.build(configuration)
    worlds = World(engines.cache, engine), World(elsewhere, other)
    shadow = Shadow(*worlds, engines.nominator, metrics, engines.clock)
    metrics.registry.register(AtScrape(lambda: shadow_metrics(shadow)))
    return shadow
