"""A cluster's state and a scheduler's day in small, for tests of what is exported."""

from collections.abc import Iterator
from types import SimpleNamespace

from prometheus_client.core import Metric
from tests.builders import make_node, make_pod_info

from bayplan.cache.cache import Cache, CacheSizes
from bayplan.cache.node_table import NodeTable
from bayplan.cache.packing import AllocationSummary, Packing
from bayplan.config.feature_gates import DEFAULT_FEATURE_GATES
from bayplan.metrics.table import POD_PREEMPTOR, Metrics
from bayplan.scheduler.shadow import OUTCOMES
from bayplan.server.metrics import AtScrape, SchedulerMetrics
from bayplan.server.state import (
    PackingCollector,
    WatchState,
    build_metrics,
    leader_election_metrics,
    shadow_metrics,
    state_metrics,
)

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

SHADOW = SimpleNamespace(
    decisions=dict.fromkeys(OUTCOMES, 3),
    nodes_in_use=lambda: {"real": 4, "shadow": 3},
    node_seconds={"real": 28_800.0, "shadow": 21_600.0},
    returned={"no_node": 0, "node_gone": 1},
)


def packed_nodes() -> NodeTable:
    """Two nodes: one full of cpu with memory left over, the other with a small pod."""
    cache = Cache()
    for name in ("full", "open"):
        cache.set_node(make_node(name, cpu="4", memory="16Gi"))
    cache.set_pod(make_pod_info("large", node="full", cpu="4", memory="4Gi"))
    cache.set_pod(make_pod_info("small", node="open", cpu="1", memory="1Gi"))
    return cache.nodes


def packing_collector(*, allocation=PACKED, table=None) -> PackingCollector:
    nodes = packed_nodes() if table is None else table
    return PackingCollector(
        lambda: allocation, lambda resources: Packing(nodes, resources), lambda: {"gpu.example.com": 0.5}
    )


def state(*, pending=None, watches=None) -> Iterator[Metric]:
    """The state of an engine that is in the middle of its work."""
    cache = SimpleNamespace(sizes=lambda: CacheSizes(nodes=10, pods=40, assumed_pods=1))
    queue = SimpleNamespace(
        pending=lambda: {"active": 3, "backoff": 2} if pending is None else pending,
        entities=lambda: {("active", "pod"): 3, ("backoff", "podgroup"): 1},
        oldest_age=lambda: 120.0,
        oldest_group_age=lambda: 90.0,
        in_flight_events=lambda: {"PodPopped": 1, "NodeAdd": 2},
        nominator=SimpleNamespace(count=lambda: 2, oldest_age=lambda: 7.5),
    )
    scheduler = SimpleNamespace(
        tasks=lambda: {"binding": 3, "DefaultPreemption": 0},
        dispatcher=SimpleNamespace(waiting_calls=lambda: {"pod_binding": 1, "pod_status_patch": 4}),
    )
    known = {"pods": WatchState(1.5, 0), "nodes": WatchState(30.0, 2)} if watches is None else watches
    return state_metrics(cache, queue, scheduler, known)


def metrics(**given) -> SchedulerMetrics:
    made = SchedulerMetrics(profiles=[PROFILE])
    made.registry.register(AtScrape(lambda: state(**given)))
    made.registry.register(packing_collector())
    made.registry.register(AtScrape(lambda: build_metrics(DEFAULT_FEATURE_GATES)))
    made.registry.register(AtScrape(lambda: leader_election_metrics("bayplan", is_leading=True, slow_paths=0)))
    made.registry.register(AtScrape(lambda: shadow_metrics(SHADOW)))
    return made


def observed() -> SchedulerMetrics:
    """Metrics after each was reported to."""
    subject = metrics()
    observe_everything(subject)
    return subject


def observe_a_bound_pod(to: Metrics, *, attempts: int = 1, host: str = HOST) -> None:
    """Every call the engine makes for a pod from its arrival to its confirmed binding."""
    to.event_seconds.observe(0.0002, "UnscheduledPodAdd")
    to.incoming_pods.add("active", "UnscheduledPodAdd")
    for point in POINTS:
        to.extension_point_seconds.observe(0.0003, point, "Success", PROFILE)
    to.plugin_seconds.observe(0.00002, "NodeResourcesFit", "Filter", "Success")
    to.plugin_evaluations.count(("NodeResourcesFit", "TaintToleration"), "Filter", PROFILE).value += 1
    to.algorithm_seconds.observe(0.0008)
    to.throttle_seconds.observe(0.0, "POST", host)
    to.rest_request("POST", "201", host, 0.004)
    to.api_call("pod_binding", "success", 0.004)
    to.attempt(PROFILE, "scheduled", 0.006)
    to.bound(attempts, 0.02 * attempts)
    to.event_seconds.observe(0.0001, "AssignedPodAdd")
    to.watch_lag_seconds.observe(0.0002, "pods")


def observe_a_rejected_pod(to: Metrics) -> None:
    to.extension_point_seconds.observe(0.0003, "Filter", "Unschedulable", PROFILE)
    to.algorithm_seconds.observe(0.0004)
    to.attempt(PROFILE, "unschedulable", 0.001)
    to.unschedulable_pods.add("NodeResourcesFit", PROFILE)
    to.incoming_pods.add("unschedulable", "ScheduleAttemptFailure")


def observe_everything(to: Metrics) -> None:
    """Each metric at least once."""
    observe_a_bound_pod(to)
    observe_a_rejected_pod(to)
    to.pod_group_attempt(PROFILE, "scheduled", 0.01)
    to.scheduled_after_flush.add()
    to.hint_seconds.observe(0.00001, "NodeResourcesFit", "NodeAdd", "QueueSkip")
    to.volume_stage_errors.add("bind")
    to.claims_made.add("success", "false", "", "Pod")
    to.device_waits.add(PROFILE, "gpu.example.com", "success")
    to.device_wait_seconds.observe(1.5, PROFILE, "gpu.example.com", "success")
    to.preemption_attempts.add()
    to.preemption_evaluation_seconds.observe(0.002, POD_PREEMPTOR, "Success")
    to.preemption_victims.observe(2)
    to.budget_violations.add(POD_PREEMPTOR)
    to.preemption_executed("success", 0.02)
    to.permit_wait_seconds.observe(0.5, "Unschedulable")
    to.ambiguous_binds.add()
    to.bind_conflicts.add()
    to.admission_refused("POST", "pods/binding", "shop")
    to.undecodable_objects.add("Pod")
    to.kubelet_rejections.add("OutOfcpu")
    to.rest_request("GET", "<error>", HOST, 1.0)
