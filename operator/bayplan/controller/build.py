"""Makes every part of the running scheduler once and wires them together; nothing is started, asked or listened to."""

import asyncio
import socket
import time
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.cache.cache import Cache
from bayplan.config.connections import ClientConnection
from bayplan.config.types import SchedulerConfiguration
from bayplan.controller.assumed_pods import AssumedPods
from bayplan.controller.intake_list import IntakeList
from bayplan.controller.operator_thread import KopfSessions, OperatorThread
from bayplan.controller.recovery import Recovery
from bayplan.controller.watches import Watches
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.nominator import Nominator
from bayplan.queue.queue_profile import queue_profile
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.allocation import allocation_summary
from bayplan.scheduler.api_calls import utc_now
from bayplan.scheduler.binder import Binder
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.extender.binder import ExtenderBinder
from bayplan.scheduler.extender.client import ExtenderClient, make_clients
from bayplan.scheduler.extender.cycle import ExtendedCycle, pod_from_api
from bayplan.scheduler.observer import SchedulerObserver
from bayplan.scheduler.pending_pods import PendingPodEvents
from bayplan.scheduler.scheduler import Scheduler
from bayplan.server.health import HealthChecks
from bayplan.server.http import HttpServer
from bayplan.server.metrics import SchedulerMetrics
from bayplan.server.state import StateCollector, StateSources


@dataclass(frozen=True, slots=True)
class Parts:
    """What the process starts and stops, and what it is looked at by."""

    scheduler: Scheduler
    watches: Watches
    operator: OperatorThread
    intake_list: IntakeList
    assumed_pods: AssumedPods
    clients: tuple[ApiClient | ExtenderClient, ...]
    health: HealthChecks
    server: HttpServer


def build(configuration: SchedulerConfiguration, credentials: Credentials) -> Parts:
    """Make the parts of a scheduler that reaches its API server by `credentials`."""
    names = frozenset(profile.scheduler_name for profile in configuration.profiles)
    connection = configuration.client_connection
    news = asyncio.Event()

    cache, nominator = Cache(), Nominator()
    frameworks = build_frameworks(configuration, cache.nodes, cache.listers, nominator)
    metrics = SchedulerMetrics(profiles=sorted(names))
    queue = SchedulingQueue(
        clock=time.monotonic,
        profiles={name: queue_profile(framework) for name, framework in frameworks.items()},
        initial_backoff_seconds=configuration.pod_initial_backoff_seconds,
        max_backoff_seconds=configuration.pod_max_backoff_seconds,
        sort_key=next(iter(frameworks.values())).queue_sort.sort_key,
        observer=metrics,
        nominator=nominator,
    )

    client = _measured_client(credentials, connection, metrics)
    # Events have a rate limit of their own, as in kube-scheduler, so that they never hold up a bind.
    events_client = _measured_client(credentials, connection, metrics)

    # These need one another: answers to the dispatcher's calls feed the queue, and the dispatcher sends the Events.
    def pod_gone(uid: str) -> None:
        recorder.forget(uid)
        scheduler.pod_gone(uid)

    def recovered() -> None:
        recovery.recovered()

    def went_back() -> None:
        recovery.went_back()

    pending = PendingPodEvents(cache, queue, news.set, metrics, names, pod_gone)
    dispatcher = Dispatcher(client, events_client, on_patched=pending.written)
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
    )

    extenders = make_clients(configuration.extenders)
    cycle = SchedulingCycle(cache.nodes, nominator, frameworks.values(), observe=metrics.extension_point)
    binds = next((each for each in extenders if each.spec.bind_verb), None)
    make_binder = Binder if binds is None else partial(ExtenderBinder, extender=binds, assumed=cache.pod)
    scheduler = Scheduler(
        cache=cache,
        queue=queue,
        cycle=cycle,
        frameworks=frameworks,
        dispatcher=dispatcher,
        binder=make_binder(
            client,
            node_exists=cache.has_node,
            confirmed_node=cache.confirmed_node,
            on_ambiguous=metrics.bind_ambiguous,
        ),
        recorder=recorder,
        observer=metrics,
        extended=ExtendedCycle(cycle, cache.nodes, extenders, pod_from_api(client)) if extenders else None,
        victim_gone=watches.assigned.ended,
        announces=configuration.feature_gates.enabled("NominatedNodeNameForExpectation"),
        news=news,
    )

    intake_list = IntakeList(client, names, pending, on_went_back=went_back)
    operator = OperatorThread(
        names, KopfSessions(credentials), take=pending.watched, on_restart=intake_list.ask_for_fill
    )
    recovery = Recovery(watches, intake_list, operator, pending)
    assumed_pods = AssumedPods(
        client,
        # A pod in flight is its bind's to look after.
        assumed=lambda: [pod for pod in cache.assumed_pods() if queue.get(pod.uid) is None],
        ended=watches.assigned.on_delete,
    )

    state = StateSources(
        pending=queue.pending,
        cache=cache.sizes,
        allocation=lambda: allocation_summary(cache.nodes),
        watches=watches.states,
    )
    metrics.registry.register(StateCollector(state))
    health = HealthChecks()
    watches.add_readiness(health)
    health.add_readiness("kopf", operator.problem)
    health.add_readiness("intake", intake_list.problem)
    return Parts(
        scheduler=scheduler,
        watches=watches,
        operator=operator,
        intake_list=intake_list,
        assumed_pods=assumed_pods,
        clients=(client, events_client, *extenders),
        health=health,
        server=HttpServer(metrics.registry, health),
    )


def _measured_client(credentials: Credentials, connection: ClientConnection, observer: SchedulerObserver) -> ApiClient:
    """A client with a rate limit of its own that tells the observer of each request and each wait for the limit."""
    host = urlsplit(credentials.server).netloc

    def on_request(method: str, code: str, seconds: float) -> None:
        observer.rest_request(method, code, host, seconds)

    def on_throttle(method: str, seconds: float) -> None:
        observer.throttled(method, host, seconds)

    return ApiClient(
        credentials, qps=connection.qps, burst=connection.burst, on_request=on_request, on_throttle=on_throttle
    )
