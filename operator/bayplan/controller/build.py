"""Makes every part of the running scheduler once and wires them together; nothing is started, asked or listened to."""

import asyncio
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.cache.cache import Cache
from bayplan.config.types import SchedulerConfiguration
from bayplan.controller.api_access import KopfSessions, measured_client
from bayplan.controller.assumed_pods import AssumedPods
from bayplan.controller.intake_list import IntakeList
from bayplan.controller.operator_thread import OperatorThread
from bayplan.controller.watches import Watches
from bayplan.framework.runtime import Framework
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.nominator import Nominator
from bayplan.queue.queue_profile import queue_profile
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.sub_queues import QueueObserver
from bayplan.scheduler.allocation import allocation_summary
from bayplan.scheduler.binder import Binder
from bayplan.scheduler.build_scheduler import build_scheduler
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.extender.binder import ExtenderBinder
from bayplan.scheduler.extender.client import ExtenderClient, make_clients
from bayplan.scheduler.extender.cycle import ExtendedCycle, pod_from_api
from bayplan.scheduler.pending_pods import PendingPodEvents
from bayplan.scheduler.scheduler import Scheduler
from bayplan.server.health import HealthChecks
from bayplan.server.http import HttpServer
from bayplan.server.metrics import SchedulerMetrics
from bayplan.server.state import StateCollector, StateSources


class Notice:
    """Passes a pod's UID on to its subscriber.

    It is made before the parts on both of its sides, which need one another: the dispatcher, what feeds the queue by
    the dispatcher's answers, and the recorder of Events that the dispatcher sends.
    """

    def __init__(self) -> None:
        self.subscriber: Callable[[str], None] = lambda uid: None

    def __call__(self, uid: str) -> None:
        """Call the subscriber."""
        self.subscriber(uid)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the process starts and stops, and what it is looked at by."""

    cache: Cache
    queue: SchedulingQueue
    scheduler: Scheduler
    dispatcher: Dispatcher
    watches: Watches
    operator: OperatorThread
    intake_list: IntakeList
    assumed_pods: AssumedPods
    clients: tuple[ApiClient, ...]
    extenders: tuple[ExtenderClient, ...]
    metrics: SchedulerMetrics
    health: HealthChecks
    server: HttpServer


def build(configuration: SchedulerConfiguration, credentials: Credentials) -> Parts:
    """Make the parts of a scheduler that reaches its API server by `credentials`."""
    names = frozenset(profile.scheduler_name for profile in configuration.profiles)
    connection = configuration.client_connection
    news, pod_gone = asyncio.Event(), Notice()

    cache, nominator = Cache(), Nominator()
    frameworks = build_frameworks(configuration, cache.nodes, cache.listers, nominator)
    metrics = SchedulerMetrics(profiles=sorted(names))
    queue = _queue(configuration, frameworks, nominator, metrics)
    pending = PendingPodEvents(cache, queue, news.set, metrics, profiles=names, on_gone=pod_gone)
    watches = Watches(credentials, cache, queue, metrics, wake=news.set, on_gone=pod_gone, scheduler_names=names)

    client = measured_client(credentials, connection.qps, connection.burst, metrics)
    # Events have a rate limit of their own, as in kube-scheduler, so that they never hold up a bind.
    events_client = measured_client(credentials, connection.qps, connection.burst, metrics)
    dispatcher = Dispatcher(client, events_client, on_patched=pending.written)
    recorder = EventRecorder(emit=dispatcher.send, now=lambda: datetime.now(UTC), hostname=socket.gethostname())
    pod_gone.subscriber = recorder.forget

    extenders = make_clients(configuration.extenders)
    cycle = SchedulingCycle(cache.nodes, nominator, observe=metrics.extension_point)
    binds = next((each for each in extenders if each.spec.bind_verb), None)
    make_binder = Binder if binds is None else partial(ExtenderBinder, extender=binds, assumed=cache.pod)
    scheduler = build_scheduler(
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
        news=news,
    )

    intake_list = IntakeList(client, names, pending)
    operator = OperatorThread(
        names, KopfSessions(credentials), take=pending.watched, on_restart=intake_list.ask_for_fill
    )
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
        cache=cache,
        queue=queue,
        scheduler=scheduler,
        dispatcher=dispatcher,
        watches=watches,
        operator=operator,
        intake_list=intake_list,
        assumed_pods=assumed_pods,
        clients=(client, events_client),
        extenders=tuple(extenders),
        metrics=metrics,
        health=health,
        server=HttpServer(metrics.registry, health),
    )


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
