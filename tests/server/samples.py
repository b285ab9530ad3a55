"""A cluster's state and a scheduler's day in small, for tests of what is exported."""

from tests.builders import make_node, make_pod_info

from bayplan.cache.allocation import AllocationSummary
from bayplan.cache.cache import Cache, CacheSizes
from bayplan.cache.node_table import NodeTable
from bayplan.cache.packing import Packing
from bayplan.config.feature_gates import DEFAULT_FEATURE_GATES
from bayplan.scheduler.observer import SchedulerObserver, WatchState
from bayplan.server.build_info import BuildInfoCollector
from bayplan.server.configuration import ConfigurationCollector
from bayplan.server.leader_election import LeaderElectionCollector
from bayplan.server.metrics import SchedulerMetrics
from bayplan.server.packing import PackingCollector
from bayplan.server.state import StateCollector, StateSources

GIB = 1024**3
HOST = "10.0.0.1:6443"
PROFILE = "bayplan"
POINTS = ("PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit", "PreBind", "Bind", "PostBind")

PACKED = AllocationSummary(
    nodes=10,
    nodes_in_use=4,
    requested={"cpu": 14_000, "memory": 24 * GIB, "pods": 50},
    requested_in_use={"cpu": 12_000, "memory": 24 * GIB, "pods": 40},
    allocatable_in_use={"cpu": 16_000, "memory": 64 * GIB, "pods": 440},
    allocatable={"cpu": 40_000, "memory": 160 * GIB, "pods": 1100, "nvidia.com/gpu": 8},
)


def packed_nodes() -> NodeTable:
    """Two nodes: one full of cpu with memory left over, the other with a small pod."""
    cache = Cache()
    for name in ("full", "open"):
        cache.set_node(make_node(name, cpu="4", memory="16Gi"))
    cache.set_pod(make_pod_info("large", node="full", cpu="4", memory="4Gi"))
    cache.set_pod(make_pod_info("small", node="open", cpu="1", memory="1Gi"))
    return cache.nodes


def sources(*, allocation=PACKED, pending=None, watches=None, table=None) -> StateSources:
    return StateSources(
        pending=lambda: {"active": 3, "backoff": 2} if pending is None else pending,
        in_flight_events=lambda: {"PodPopped": 1, "NodeAdd": 2},
        nominations=lambda: (2, 7.5),
        cache=lambda: CacheSizes(nodes=10, pods=40, assumed_pods=1),
        allocation=lambda: allocation,
        packing=lambda resources: Packing(packed_nodes() if table is None else table, resources),
        tasks=lambda: {"binding": 3, "DefaultPreemption": 0},
        waiting_calls=lambda: {"pod_binding": 1, "pod_status_patch": 4},
        watches=lambda: {"pods": WatchState(1.5, 0), "nodes": WatchState(30.0, 2)} if watches is None else watches,
    )


def metrics(**state) -> SchedulerMetrics:
    made = SchedulerMetrics(profiles=[PROFILE])
    made.registry.register(StateCollector(sources(**state)))
    made.registry.register(PackingCollector(sources(**state)))
    made.registry.register(BuildInfoCollector(DEFAULT_FEATURE_GATES))
    made.registry.register(ConfigurationCollector())
    made.registry.register(LeaderElectionCollector(lambda: "bayplan", is_leading=lambda: True, slow_paths=lambda: 0))
    return made


def observed() -> SchedulerMetrics:
    """Metrics after each call of the observer."""
    subject = metrics()
    observe_everything(subject)
    return subject


def observe_a_bound_pod(observer: SchedulerObserver, *, attempts: int = 1, host: str = HOST) -> None:
    """Every call the engine makes for a pod from its arrival to its confirmed binding."""
    observer.event_handled("UnscheduledPodAdd", 0.0002)
    observer.incoming("active", "UnscheduledPodAdd")
    for point in POINTS:
        observer.of_point(point, "Success", PROFILE).observe(0.0003)
    observer.of_plugin("NodeResourcesFit", "Filter", "Success").observe(0.00002)
    observer.evaluations(("NodeResourcesFit", "TaintToleration"), "Filter", PROFILE).value += 1
    observer.algorithm(0.0008)
    observer.throttled("POST", host, 0.0)
    observer.rest_request("POST", "201", host, 0.004)
    observer.api_call("pod_binding", "success", 0.004)
    observer.attempt(PROFILE, "scheduled", 0.006)
    observer.bound(attempts, 0.02 * attempts)
    observer.event_handled("AssignedPodAdd", 0.0001)
    observer.watch_lagged("pods", 0.0002)


def observe_a_rejected_pod(observer: SchedulerObserver) -> None:
    observer.of_point("Filter", "Unschedulable", PROFILE).observe(0.0003)
    observer.algorithm(0.0004)
    observer.attempt(PROFILE, "unschedulable", 0.001)
    observer.unschedulable("NodeResourcesFit", PROFILE, 1)
    observer.incoming("unschedulable", "ScheduleAttemptFailure")


def observe_everything(observer: SchedulerObserver) -> None:
    """Each call of the observer at least once."""
    observe_a_bound_pod(observer)
    observe_a_rejected_pod(observer)
    observer.flushed()
    observer.queueing_hint("NodeResourcesFit", "NodeAdd", "QueueSkip", 0.00001)
    observer.plugin_failed("VolumeBinding", "PreBind")
    observer.preemption_attempt()
    observer.preemption_evaluated("Success", 0.002)
    observer.preemption_victims(2)
    observer.budgets_violated(1)
    observer.preemption_executed("success", 0.02)
    observer.permit_waited("Unschedulable", 0.5)
    observer.bind_ambiguous()
    observer.bind_conflict()
    observer.admission_refused("POST", "pods/binding", "shop")
    observer.undecodable("Pod")
    observer.kubelet_rejected("OutOfcpu")
    observer.rest_request("GET", "<error>", HOST, 1.0)
