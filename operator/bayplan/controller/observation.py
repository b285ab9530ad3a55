"""What the running scheduler is looked at by: the ports that serve health, metrics and answers."""

import socket
from collections.abc import Callable
from urllib.parse import urlsplit

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.cache.packing import Packing, allocation_summary
from bayplan.config.convert import to_effective
from bayplan.config.feature_gates import KUBERNETES
from bayplan.controller.leadership import Leadership
from bayplan.controller.reload import ConfigurationReload
from bayplan.controller.serving import Serving
from bayplan.controller.watches import Watches
from bayplan.live.inspector import LiveInspector
from bayplan.live.simulation import PriorityClassList
from bayplan.scheduler.debugger.cache_debugger import CacheDebugger
from bayplan.scheduler.scheduler import Scheduler
from bayplan.server.debug import cache_route, configz_route, flagz_route, profile_route, statusz_route
from bayplan.server.health import HealthChecks
from bayplan.server.http import PUBLIC_PATHS, HttpServer
from bayplan.server.live import live_routes
from bayplan.server.metrics import Reading, SchedulerMetrics
from bayplan.server.options import ServingOptions
from bayplan.server.resource_metrics import resource_metrics_route
from bayplan.server.state import PackingCollector, build_metrics, state_metrics


def build_serving(
    credentials: Credentials,
    options: ServingOptions,
    *,
    scheduler: Scheduler,
    watches: Watches,
    metrics: SchedulerMetrics,
    health: HealthChecks,
    reload: ConfigurationReload,
    leadership: Leadership | None,
    make_client: Callable[..., ApiClient],
) -> Serving:
    """Make the ports; their metrics read queue, cache and watches at each scrape, so that scheduling sets no gauge.

    Where profiling is enabled they also compare the cache with the API server's content, and take profiles, when asked
    to.

    Raises:
        CredentialsError: a certificate or a kubeconfig that `options` name does not work.
    """
    cache, queue = scheduler.cache, scheduler.queue
    configuration = reload.configuration
    gates = configuration.feature_gates
    packing = PackingCollector(
        lambda: allocation_summary(cache.nodes), lambda resources: Packing(cache.nodes, resources)
    )
    metrics.registry.register(Reading(lambda: state_metrics(cache, queue, scheduler, watches.states())))
    metrics.registry.register(packing)
    metrics.registry.register(Reading(lambda: build_metrics(gates)))
    is_leading = leadership.is_leading if leadership is not None else lambda: True
    inspector = LiveInspector(
        cache=cache,
        queue=queue,
        frameworks=lambda: scheduler.frameworks,
        recent=scheduler.decisions,
        configuration=lambda: reload.configuration,
        is_leading=is_leading,
        is_synced=lambda: watches.synced,
        identity=socket.gethostname() if leadership is None else leadership.identity,
        read_classes=PriorityClassList(credentials).read,
    )
    routes = [
        configz_route(lambda: to_effective(reload.configuration)),
        resource_metrics_route(cache, queue, is_leading),
        *live_routes(inspector),
    ]
    if configuration.enable_profiling:
        profiles = frozenset(profile.scheduler_name for profile in configuration.profiles)
        debugger = CacheDebugger(credentials, cache, queue, profiles, on_compared=metrics.cache_compared)
        routes += [cache_route(debugger.compare), profile_route()]
    if gates.enabled("ComponentFlagz"):
        routes.append(flagz_route(options.flags))
    if gates.enabled("ComponentStatusz"):
        routes.append(statusz_route([*PUBLIC_PATHS, *(route.path for route in routes)], KUBERNETES))
    server = HttpServer(metrics.registry, health, routes=routes, disabled_metrics=options.disabled_metrics)

    def connect(asked: Credentials, qps: float) -> ApiClient:
        host = urlsplit(asked.server).netloc

        def on_request(method: str, code: str, seconds: float) -> None:
            metrics.rest_request(method, code, host, seconds)

        # Without a gate: it asks who clients are and what they may, and a standby has to know its own as well.
        return make_client(asked, qps=qps, burst=int(qps), on_request=on_request)

    return Serving(server, options, credentials, connect)
