"""Makes what depends on the configuration on top of what lives as long as the process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from bayplan.api.client import ApiClient
from bayplan.cache.cache import Cache
from bayplan.config.types import SchedulerConfiguration
from bayplan.framework.nominator import Nominator
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Afterwards
from bayplan.framework.waiting_pods import WaitingPods
from bayplan.groups.pod_groups import PodGroups
from bayplan.metrics.table import Metrics
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.queue_settings import QueueSettings, queue_settings
from bayplan.scheduler.binder import Binder
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.extender.client import ExtenderClient, make_clients
from bayplan.scheduler.extender.cycle import ExtendedCycle, ExtenderBinder, pod_from_api


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """Decides and binds as one configuration says; the scheduler has one at a time.

    Cache, nominations, what plugins assume and the pods that wait for Permit plugins are the process's: another engine
    on the same ones goes on where this one was. Without `extended` no extender is called for decisions; `extenders` are
    closed by whoever replaces it.
    """

    frameworks: Mapping[str, Framework]
    cycle: SchedulingCycle
    binder: Binder
    queue: QueueSettings
    extended: ExtendedCycle | None = None
    extenders: Sequence[ExtenderClient] = ()


@dataclass(eq=False, kw_only=True)
class EngineBuilder:
    """Makes engines that share cache, nominations and waiting pods; nothing of an engine that is not used stays.

    `admit` is asked at the moment before a write, as in ApiClient; `clock` is the queue's, `afterwards` a Handle's.
    """

    cache: Cache
    nominator: Nominator
    client: ApiClient
    admit: Callable[[], float] | None
    metrics: Metrics
    clock: Callable[[], float]
    afterwards: Afterwards
    groups: PodGroups
    waiting_pods: WaitingPods = field(default_factory=WaitingPods, init=False)

    def build(self, configuration: SchedulerConfiguration) -> Engine:
        """Make the engine of a configuration; what its plugins look up becomes wanted of the cache's listers.

        Raises:
            ConfigurationError: its plugin sets do not work out, or a plugin from outside is no good.
            CredentialsError: an extender's certificates cannot be used.
        """
        cache = self.cache
        frameworks = build_frameworks(
            configuration,
            cache.nodes,
            cache.listers,
            self.nominator,
            waiting_pods=self.waiting_pods,
            afterwards=self.afterwards,
            metrics=self.metrics,
            groups=self.groups,
        )
        cycle = SchedulingCycle(cache.nodes, self.nominator, frameworks.values())
        extenders = make_clients(configuration.extenders, self.admit)
        binds = next((each for each in extenders if each.spec.bind_verb), None)
        make_binder = Binder if binds is None else partial(ExtenderBinder, extender=binds, assumed=cache.pod)
        binder = make_binder(
            self.client,
            node_exists=cache.has_node,
            confirmed_node=cache.confirmed_node,
            on_ambiguous=self.metrics.ambiguous_binds.add,
            on_conflict=self.metrics.bind_conflicts.add,
            clock=self.clock,
        )
        backoffs = configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds
        queue = queue_settings(frameworks, *backoffs)
        extended = ExtendedCycle(cycle, cache.nodes, extenders, pod_from_api(self.client)) if extenders else None
        return Engine(frameworks, cycle, binder, queue, extended, extenders)
