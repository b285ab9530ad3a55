"""Exports how full the cluster is, how well it is packed and what waits, as it is at the moment of the scrape."""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from bayplan import __version__
from bayplan.cache.cache import Cache
from bayplan.cache.packing import AllocationSummary, Packing
from bayplan.cache.resources import CPU, PODS
from bayplan.config.feature_gates import KUBERNETES, FeatureGates, Stage
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.scheduler import Scheduler
from bayplan.scheduler.shadow import Shadow
from bayplan.server.metrics import counter, gauge

NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
MAX_EXTENDED_RESOURCES = 32

QUEUES = ("active", "backoff", "unschedulable", "gated")


@dataclass(frozen=True, slots=True)
class WatchState:
    """How fresh one watch is: seconds since its last event or bookmark, and how often it listed again."""

    last_event_age_seconds: float
    relists: int


def state_metrics(
    cache: Cache, queue: SchedulingQueue, scheduler: Scheduler, watches: Mapping[str, WatchState]
) -> Iterator[Metric]:
    """Yield the state of queue, cache, calls and watches, metric by metric; `watches` by resource (nodes, ...)."""
    pending = queue.pending()
    yield gauge(
        "scheduler_pending_pods",
        "Number of pending pods, by queue: 'active' is ready to be tried, 'backoff' waits after a "
        "failure, 'unschedulable' waits for a change in the cluster, 'gated' is held back by a gate.",
        ("queue",),
        {queue: pending.get(queue, 0) for queue in QUEUES},
    )
    yield gauge(
        "scheduler_queued_entities",
        "Number of what is tried in one go and waits, by queue: a pod without a group, or a pod group.",
        ("queue", "type"),
        queue.entities(),
    )
    yield gauge(
        "bayplan_oldest_pending_pod_age_seconds",
        "Seconds since the first attempt of the pod that waits longest for a node; 0 without any.",
        (),
        {(): queue.oldest_age()},
    )
    yield gauge(
        "bayplan_oldest_pod_group_age_seconds",
        "Seconds since the first round of the pod group that waits longest for room; 0 without any.",
        (),
        {(): queue.oldest_group_age()},
    )
    yield gauge(
        "scheduler_cache_size",
        "Number of nodes, pods, and assumed (bound, not yet confirmed) pods in the cache.",
        ("type",),
        asdict(cache.sizes()),
    )
    nominations = {(): queue.nominator.count()}
    yield gauge("bayplan_nominations", "Number of pods that room on a node is kept for.", (), nominations)
    yield gauge(
        "bayplan_oldest_nomination_age_seconds",
        "Seconds since the oldest nomination that still lasts was made or seen first; 0 without any.",
        (),
        {(): queue.nominator.oldest_age()},
    )
    yield gauge(
        "scheduler_inflight_events",
        "Number of events currently tracked in the scheduling queue.",
        ("event",),
        queue.in_flight_events(),
    )
    yield gauge(
        "scheduler_goroutines",
        "Number of tasks under way split by the work they do such as binding.",
        ("operation",),
        scheduler.tasks(),
    )
    yield gauge(
        "scheduler_pending_async_api_calls",
        "Number of API calls currently pending in the async queue.",
        ("call_type",),
        scheduler.dispatcher.waiting_calls(),
    )
    yield gauge(
        "bayplan_watch_last_event_age_seconds",
        "Seconds since the last event or bookmark of a watch.",
        ("resource",),
        {resource: state.last_event_age_seconds for resource, state in watches.items()},
    )
    yield counter(
        "bayplan_watch_relists_total",
        "Number of times a watch had to list again.",
        ("resource",),
        {resource: state.relists for resource, state in watches.items()},
    )


@dataclass(eq=False)
class PackingCollector(Collector):
    """Exports how full the nodes are, and what is of no use on them, as it is at the moment of the scrape.

    `packing` receives the resources to look at. `devices` gives by driver what is left of devices taken in part.
    """

    allocation: Callable[[], AllocationSummary]
    packing: Callable[[Sequence[str]], Packing]
    devices: Callable[[], Mapping[str, float]] = dict
    _extended: set[str] = field(default_factory=set, init=False)

    def collect(self) -> Iterable[Metric]:
        """All of it, metric by metric."""
        summary = self.allocation()
        yield gauge("bayplan_nodes", "Number of nodes known.", (), {(): summary.nodes})
        yield gauge(
            "bayplan_nodes_in_use",
            "Number of nodes with a pod that could run elsewhere.",
            (),
            {(): summary.nodes_in_use},
        )
        resources = list(self._admitted(summary.allocatable))
        yield gauge(
            "bayplan_allocation_ratio",
            "Requested over allocatable on the nodes in use.",
            ("resource",),
            {r: _ratio(summary.requested_in_use.get(r, 0), summary.allocatable_in_use.get(r, 0)) for r in resources},
        )
        yield gauge(
            "bayplan_cluster_allocation_ratio",
            "Requested over allocatable on all nodes.",
            ("resource",),
            {r: _ratio(summary.requested.get(r, 0), summary.allocatable.get(r, 0)) for r in resources},
        )
        packing = self.packing([name for name in resources if name != PODS])
        yield gauge(
            "bayplan_stranded_capacity",
            "Free capacity of nodes that is of no use because another resource is full there; cpu in cores.",
            ("resource",),
            {name: _in_base_units(name, amount) for name, amount in packing.stranded().items()},
        )
        yield gauge(
            "bayplan_stranded_devices",
            "What is left of devices that are taken in part, in devices.",
            ("driver",),
            self.devices(),
        )
        yield gauge(
            "bayplan_largest_schedulable_pod",
            "Largest amount of a resource that is free on one node which takes another pod; cpu in cores.",
            ("resource",),
            {name: _in_base_units(name, amount) for name, amount in packing.largest().items()},
        )
        yield gauge(
            "bayplan_nodes_lower_bound",
            "Fewest nodes that have room for all pods that could run elsewhere, by the sum of requests.",
            (),
            {(): packing.lower_bound()},
        )
        yield gauge(
            "bayplan_emptiable_nodes",
            "Nodes in use that could be emptied into what is free on the others in use, by the sum of requests.",
            (),
            {(): packing.emptiable()},
        )

    def _admitted(self, allocatable: Mapping[str, int]) -> Iterator[str]:
        # Node owners choose the names of extended resources. The first ones seen keep their place, so that
        # series neither grow without bound nor come and go.
        for resource in sorted(allocatable):
            if allocatable[resource] <= 0:
                continue
            if resource not in NATIVE_RESOURCES and resource not in self._extended:
                if len(self._extended) >= MAX_EXTENDED_RESOURCES:
                    continue
                self._extended.add(resource)
            yield resource


def _ratio(requested: int, allocatable: int) -> float:
    return requested / allocatable if allocatable else 0.0


def _in_base_units(resource: str, amount: int) -> float:
    return amount / 1000 if resource == CPU else amount


def leader_election_metrics(name: str, *, is_leading: bool, slow_paths: int) -> Iterator[Metric]:
    """Yield what the election on the Lease `name` says (component-base metrics/prometheus/clientgo/leaderelection)."""
    yield gauge(
        "leader_election_master_status",
        "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.",
        ("name",),
        {name: float(is_leading)},
    )
    yield counter(
        "leader_election_slowpath_total",
        "Number of renewals that had to read the lease first.",
        ("name",),
        {name: slow_paths},
    )


def shadow_metrics(shadow: Shadow) -> Iterator[Metric]:
    """Yield what a shadow found so far."""
    yield counter(
        "bayplan_shadow_decisions_total",
        "Number of decisions of the other scheduler, by how ours on the same state compares.",
        ("outcome",),
        shadow.decisions,
    )
    yield gauge(
        "bayplan_shadow_nodes_in_use",
        "Number of nodes with a pod that could run elsewhere, as it is and by our choices.",
        ("world",),
        shadow.nodes_in_use(),
    )
    yield counter(
        "bayplan_shadow_node_seconds_total",
        "Seconds for which nodes were in use, summed over nodes, as it is and by our choices.",
        ("world",),
        shadow.node_seconds,
    )
    yield counter(
        "bayplan_shadow_returned_pods_total",
        "Number of pods put where they are, as our choices left them no node or their node went.",
        ("reason",),
        shadow.returned,
    )


def build_metrics(gates: FeatureGates) -> Iterator[Metric]:
    """Yield which build runs, and the gates that are looked at (component-base: prometheus/version and feature)."""
    yield gauge(
        "bayplan_build_info",
        "Always 1; its labels say which build runs.",
        ("version", "python_version"),
        {(__version__, platform.python_version()): 1},
    )
    # Whose scheduler it decides as: dashboards compare it between components.
    major, minor = KUBERNETES.split(".")
    values = {
        "build_date": "",
        "compiler": platform.python_implementation(),
        "git_commit": "",
        "git_tree_state": "",
        "git_version": f"v{major}.{minor}.0+bayplan.{__version__}",
        "go_version": "",
        "major": major,
        "minor": minor,
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
    yield gauge(
        "kubernetes_build_info",
        "Always 1; its labels say which version of Kubernetes decisions are those of.",
        tuple(values),
        {tuple(values.values()): 1},
    )
    yield gauge(
        "kubernetes_feature_enabled",
        "Stage and enablement of the features that are looked at.",
        ("name", "stage"),
        # As in kube-scheduler, where what is stable has no stage.
        {(name, "" if stage is Stage.GA else stage.value): float(enabled) for name, stage, enabled in gates.switched()},
    )
