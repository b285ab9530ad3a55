"""The ports of the running process: what it is looked at by, and who is let in."""

import logging
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials, load_credentials
from bayplan.api.kubeconfig import PemSource
from bayplan.api.trust import ReloadedFiles
from bayplan.cache.packing import Packing, allocation_summary
from bayplan.config.convert import to_effective
from bayplan.config.feature_gates import KUBERNETES
from bayplan.controller.leadership import Leadership
from bayplan.controller.reload import ConfigurationReload
from bayplan.controller.watches import Watches
from bayplan.live.inspector import LiveInspector
from bayplan.live.simulation import PriorityClassList
from bayplan.plugins.dynamic_resources.claim_cache import StrandedDevices
from bayplan.scheduler.cache_debugger import CacheDebugger
from bayplan.scheduler.scheduler import Scheduler
from bayplan.server.access import ClusterAuthorities, Security
from bayplan.server.client_authorities import checked_authorities
from bayplan.server.debug import cache_route, configz_route, flagz_route, profile_route, statusz_route
from bayplan.server.health import HealthChecks
from bayplan.server.http import PUBLIC_PATHS, HttpServer
from bayplan.server.live import live_routes
from bayplan.server.metrics import AtScrape, SchedulerMetrics
from bayplan.server.options import ServingOptions
from bayplan.server.resource_metrics import resource_metrics_route
from bayplan.server.reviews import Reviews
from bayplan.server.state import PackingCollector, build_metrics, state_metrics

logger = logging.getLogger(__name__)

# What strangers with made-up tokens can have the API server asked is bounded by the port's rate; this only is more.
REVIEWS_PER_SECOND = 50.0
LOCAL = "127.0.0.1"

MakeClient = Callable[[Credentials, float], ApiClient]
"""Makes a client that passes no gate, with so many requests a second."""


class Serving:
    """Opens the ports, in the order in which they can be used, and closes them.

    The process relies on it. `port` is that of plain HTTP and `secure_port` that of HTTPS, 0 while there is none.
    Certificates are read when it is made, and nobody is asked.

    Raises:
        CredentialsError: a certificate or a kubeconfig does not work.
    """

    def __init__(
        self, server: HttpServer, options: ServingOptions, credentials: Credentials, make_client: MakeClient
    ) -> None:
        self.server = server
        self.port = self.secure_port = 0
        self._options = options
        self._reviews: Reviews | None = None
        self._authorities: ClusterAuthorities | None = None
        self._security = None if options.secure_port is None else self._secured(credentials, make_client)

    async def start(self) -> None:
        """Listen at both ports.

        Raises:
            OSError: a port is taken; its file name is the flag with the address.
            CredentialsError: the cluster's authorities cannot be looked up, and have to be.
        """
        options, authorities = self._options, self._authorities
        if authorities is not None and not options.authentication.tolerates_failed_lookup:
            await authorities.look_up()
        if options.secure_port is not None:
            with _named("--secure-port", options.bind_address, options.secure_port):
                self.secure_port = await self.server.start(
                    options.bind_address, options.secure_port, self._security, shares_port=options.shares_port
                )
        if options.http_port is not None:
            with _named("--http-port", LOCAL, options.http_port):
                self.port = await self.server.start(LOCAL, options.http_port)

    def work(self) -> dict[str, Coroutine[Any, Any, None]]:
        """What has to run while the ports are open, by name."""
        return {} if self._authorities is None else {"client authorities": self._authorities.run()}

    async def stop(self) -> None:
        """Close the ports, then the connections that told who asks."""
        await self.server.stop()
        if self._reviews is not None:
            await self._reviews.close()

    def _secured(self, credentials: Credentials, make_client: MakeClient) -> Security:
        from bayplan.server import serving_tls  # noqa: PLC0415  what reads certificates takes eight megabytes

        authentication, authorization = self._options.authentication, self._options.authorization
        asked, also_asked = (
            make_client(credentials if each is None else load_credentials(each), REVIEWS_PER_SECOND)
            for each in (authentication.kubeconfig, authorization.kubeconfig)
        )
        self._reviews = reviews = Reviews(asked, also_asked)
        client_pem: Callable[[], bytes | None] = _nobody
        if authentication.client_authorities is not None:
            client_pem = _reloaded([authentication.client_authorities], checked_authorities)
        elif not authentication.skips_lookup:
            self._authorities = ClusterAuthorities(asked)
            client_pem = self._authorities.pem
        pair = serving_tls.serving_pair(self._options)

        def identity_of(certificate: bytes, key: bytes) -> bytes:
            made = serving_tls.checked_identity(certificate, key)
            if (expired := serving_tls.expired_since(certificate, datetime.now(UTC))) is not None:
                text = "serving with a certificate that has expired certificate=%s expired=%s"
                logger.warning(text, pair[0].name, expired.isoformat())
            return made

        tls = serving_tls.ServingTls(_reloaded(pair, identity_of), client_pem, self._options.tls)
        return Security(tls, reviews, authentication, authorization)


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
    stranded_devices = StrandedDevices(cache.listers).by_driver
    packing = PackingCollector(
        lambda: allocation_summary(cache.nodes), lambda resources: Packing(cache.nodes, resources), stranded_devices
    )
    metrics.registry.register(AtScrape(lambda: state_metrics(cache, queue, scheduler, watches.states())))
    metrics.registry.register(packing)
    metrics.registry.register(AtScrape(lambda: build_metrics(gates)))
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
        stranded_devices=stranded_devices,
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


def _reloaded(sources: Sequence[PemSource], make: Callable[..., bytes]) -> Callable[[], bytes]:
    def tell(error: Exception | None) -> None:
        if error is None:
            logger.info("certificate reloaded flags=%s", ", ".join(each.label for each in sources))
        else:
            logger.warning("certificate not reloaded, the last one stays in use reason=%s", error)

    return ReloadedFiles(sources, make, tell).current


def _nobody() -> None:
    return None


@contextmanager
def _named(flag: str, address: str, port: int) -> Iterator[None]:
    """Have an error say which of the two ports it is about, and by which flag there is another."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), f"{flag}: {address or '*'}:{port}") from error
