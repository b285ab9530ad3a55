"""What the running scheduler is looked at by: its health, and the HTTP port that serves health and metrics."""

from bayplan.api.credentials import Credentials
from bayplan.cache.cache import Cache
from bayplan.config.types import SchedulerConfiguration
from bayplan.controller.cache_debugger import CacheDebugger
from bayplan.controller.intake_list import IntakeList
from bayplan.controller.leadership import Leadership
from bayplan.controller.operator_thread import OperatorThread
from bayplan.controller.watches import Watches
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.allocation import allocation_summary
from bayplan.scheduler.packing import Packing
from bayplan.scheduler.scheduler import Scheduler
from bayplan.server.build_info import BuildInfoCollector
from bayplan.server.debug import debug_routes
from bayplan.server.health import HealthChecks
from bayplan.server.http import HttpServer
from bayplan.server.metrics import SchedulerMetrics
from bayplan.server.packing import PackingCollector
from bayplan.server.state import StateCollector, StateSources


def build_health(
    watches: Watches, operator: OperatorThread, intake_list: IntakeList, leadership: Leadership | None
) -> HealthChecks:
    """Make the checks behind the probes: what is listed and watched, whether kopf runs, and the election if any."""
    health = HealthChecks()
    watches.add_readiness(health)
    health.add_readiness("kopf", operator.problem)
    health.add_readiness("intake", intake_list.problem)
    if leadership is not None:
        leadership.add_checks(health)
    return health


def build_server(
    configuration: SchedulerConfiguration,
    credentials: Credentials,
    *,
    cache: Cache,
    queue: SchedulingQueue,
    scheduler: Scheduler,
    watches: Watches,
    metrics: SchedulerMetrics,
    health: HealthChecks,
) -> HttpServer:
    """Make the HTTP port; its metrics read queue, cache and watches at each scrape, so that scheduling sets no gauge.

    Where profiling is enabled it also compares the cache with the API server's content when asked to.
    """
    state = StateSources(
        pending=queue.pending,
        in_flight_events=queue.in_flight_events,
        nominations=lambda: (queue.nominator.count(), queue.nominator.oldest_age()),
        cache=cache.sizes,
        allocation=lambda: allocation_summary(cache.nodes),
        packing=lambda resources: Packing(cache.nodes, resources),
        tasks=scheduler.tasks,
        waiting_calls=scheduler.dispatcher.waiting_calls,
        watches=watches.states,
    )
    gates = configuration.feature_gates
    for collector in (StateCollector(state), PackingCollector(state), BuildInfoCollector(gates)):
        metrics.registry.register(collector)
    profiles = frozenset(profile.scheduler_name for profile in configuration.profiles)
    debugger = CacheDebugger(credentials, cache, queue, profiles, on_compared=metrics.cache_compared)
    return HttpServer(
        metrics.registry, health, routes=debug_routes(debugger.compare) if configuration.enable_profiling else ()
    )
