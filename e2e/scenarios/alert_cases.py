"""When each alert fires, with its text, and what is near it and does not make it fire."""

import json
from dataclasses import dataclass, field

OURS = 'job="bayplan", instance="a:1", namespace="kube-system"'
OTHER_REPLICA = OURS.replace("a:1", "b:1")
STRANGER = 'job="kube-scheduler", instance="k:1", namespace="kube-system"'
GIB = 1024**3


@dataclass(frozen=True)
class Case:
    """Series, a minute a value in promtool's notation, and what an alert says of them at a minute; "" is nothing."""

    alert: str
    what: str
    minute: int
    series: dict[str, str]
    description: str = ""
    labels: dict[str, str] = field(default_factory=dict)


def series(metric: str, labels: str = OURS, /, **more: str) -> str:
    return f"{metric}{{{', '.join([labels, *(f'{key}={json.dumps(value)}' for key, value in more.items())])}}}"


def attempts(result: str, labels: str = OURS) -> str:
    return series("scheduler_schedule_attempts_total", labels, result=result, profile="bayplan")


def pending(queue: str, labels: str = OURS) -> str:
    return series("scheduler_pending_pods", labels, queue=queue)


def leads(labels: str = OURS) -> str:
    return series("leader_election_master_status", labels, name="bayplan")


def checked(name: str, labels: str = OURS, type: str = "readyz") -> str:  # noqa: A002  the label's name
    return series("kubernetes_healthcheck", labels, name=name, type=type, metrics_path="/metrics/slis")


INSTALLATION = {"job": "bayplan", "namespace": "kube-system"}
REPLICA = {**INSTALLATION, "instance": "a:1"}
LEASE = {**INSTALLATION, "name": "bayplan"}

CASES = [
    Case(
        "BayplanDown",
        "no target at all",
        6,
        {series("up", STRANGER): "1x20"},
        "Prometheus reaches no replica of bayplan. Pods that name its profiles stay pending.",
    ),
    Case(
        "BayplanDown",
        "both replicas away",
        16,
        {series("up"): "1x9 0x20", series("up", OTHER_REPLICA): "1x9 0x20"},
        "Prometheus reaches no replica of bayplan. Pods that name its profiles stay pending.",
    ),
    Case("BayplanDown", "one replica away", 16, {series("up"): "1x30", series("up", OTHER_REPLICA): "0x30"}),
    Case(
        "BayplanReplicaDown",
        "one replica away",
        11,
        {series("up"): "0x30", series("up", OTHER_REPLICA): "1x30"},
        "Prometheus does not reach a:1. If the other replica ends too, nothing is scheduled.",
        REPLICA,
    ),
    Case("BayplanReplicaDown", "a rollout", 20, {series("up"): "1x9 0x4 1x20"}),
    Case("BayplanReplicaDown", "a stranger away", 20, {series("up", STRANGER): "0x30"}),
    Case(
        "BayplanReplicaDown",
        "health checks that cannot be scraped, where the metrics can",
        20,
        {series("up"): "1x30", series("up", metrics_path="/metrics/slis"): "0x30"},
    ),
    Case(
        "BayplanNotReady",
        "two checks that fail",
        21,
        {
            checked("nodes-synced"): "1x9 0x30",
            checked("pods-watched"): "1x9 0x30",
            checked("ping"): "1x40",
            checked("nodes-synced", OTHER_REPLICA): "1x40",
        },
        "2 readiness checks of a:1 fail; its log and /readyz?verbose name them.",
        REPLICA,
    ),
    Case("BayplanNotReady", "a start", 20, {checked("nodes-synced"): "0x4 1x30"}),
    Case("BayplanNotReady", "a stranger that is not", 20, {checked("ping", STRANGER): "0x30"}),
    Case("BayplanNotReady", "what its kubelet ends", 20, {checked("event-loop", type="livez"): "0x30"}),
    Case(
        "BayplanRestartsOften",
        "a crash loop",
        40,
        {series("process_start_time_seconds"): "100x4 200x4 300x4 400x4 500x60"},
        "The process at a:1 began anew 4 times within an hour.",
        REPLICA,
    ),
    Case("BayplanRestartsOften", "a restart", 40, {series("process_start_time_seconds"): "100x10 200x60"}),
    Case(
        "BayplanNoLeader",
        "a Lease that nobody gets",
        12,
        {leads(): "1x9 stale", leads(OTHER_REPLICA): "0x30"},
        "The replicas run, and none of them holds the Lease bayplan. Pods that name their profiles stay pending.",
        LEASE,
    ),
    Case("BayplanNoLeader", "a failover", 20, {leads(): "1x9 0x20", leads(OTHER_REPLICA): "0x9 1x20"}),
    Case(
        "BayplanTwoLeaders",
        "two that lead",
        5,
        {leads(): "1x20", leads(OTHER_REPLICA): "1x20"},
        "2 replicas say that they hold the Lease bayplan.",
        LEASE,
    ),
    Case("BayplanTwoLeaders", "one that leads", 5, {leads(): "1x20", leads(OTHER_REPLICA): "0x20"}),
    Case(
        "BayplanTwoLeaders",
        "two installations",
        5,
        {leads(): "1x20", leads(OTHER_REPLICA.replace("kube-system", "batch")): "1x20"},
    ),
    Case(
        "BayplanLeaderChangesOften",
        "a Lease that moves",
        40,
        {leads(): "0 1 0 1 0 1 0 1x60"},
        "Replicas began or ceased to hold the Lease bayplan 7 times within an hour.",
        LEASE,
    ),
    Case(
        "BayplanLeaderChangesOften", "a rollout of two", 40, {leads(): "1 0 1 0x60", leads(OTHER_REPLICA): "0 1 0 1x60"}
    ),
    Case(
        "BayplanStuck",
        "no attempts",
        25,
        {pending("active"): "7x60", attempts("scheduled"): "0+10x5 50x60", leads(): "1x60"},
        "For ten minutes at least 7 pods were ready to be tried, and there was no attempt.",
        INSTALLATION,
    ),
    Case(
        "BayplanStuck",
        "no attempts without leader election",
        25,
        {pending("active"): "7x60", attempts("scheduled"): "0+10x5 50x60"},
        "For ten minutes at least 7 pods were ready to be tried, and there was no attempt.",
        INSTALLATION,
    ),
    Case("BayplanStuck", "work", 25, {pending("active"): "7x60", attempts("scheduled"): "0+10x60", leads(): "1x60"}),
    Case(
        "BayplanStuck", "nothing to do", 25, {pending("active"): "0x60", attempts("scheduled"): "0x60", leads(): "1x60"}
    ),
    Case(
        "BayplanStuck",
        "a standby that knows the pods",
        25,
        {
            pending("active", OTHER_REPLICA): "7x60",
            leads(OTHER_REPLICA): "0x60",
            pending("active"): "0x60",
            leads(): "1x60",
        },
    ),
    Case(
        "BayplanPendingPodsGrowOld",
        "pods without room",
        62,
        {pending("unschedulable"): "3x90", pending("backoff"): "0x90", leads(): "1x90"},
        "For an hour at least 3 pods found no node.",
        INSTALLATION,
    ),
    Case("BayplanPendingPodsGrowOld", "pods held back by a gate", 62, {pending("gated"): "3x90", leads(): "1x90"}),
    Case(
        "BayplanPendingPodsGrowOld",
        "pods that find room",
        80,
        {pending("unschedulable"): "3x40 0x1 3x90", leads(): "1x90"},
    ),
    Case(
        "BayplanSchedulingErrors",
        "one attempt of ten fails",
        20,
        {attempts("error"): "0+1x60", attempts("scheduled"): "0+9x60"},
        "10% of the attempts end with an error, not with a node or a verdict.",
        INSTALLATION,
    ),
    Case(
        "BayplanSchedulingErrors", "no room", 20, {attempts("unschedulable"): "0+9x60", attempts("scheduled"): "0+1x60"}
    ),
    Case(
        "BayplanSchedulingErrors",
        "a stranger's errors",
        20,
        {attempts("error", STRANGER): "0+9x60", attempts("scheduled"): "0+1x60"},
    ),
    Case(
        "BayplanPreemptionStorm",
        "victims come back as preemptors' victims",
        30,
        {series("scheduler_preemption_victims_sum"): "0+10x60", attempts("scheduled"): "0+12x60"},
        "Preemption ended 150 pods within 15 minutes, more than one for every two that were bound.",
        INSTALLATION,
    ),
    Case(
        "BayplanPreemptionStorm",
        "few of many",
        30,
        {series("scheduler_preemption_victims_sum"): "0+10x60", attempts("scheduled"): "0+100x60"},
    ),
    Case(
        "BayplanPreemptionStorm",
        "a few victims",
        30,
        {series("scheduler_preemption_victims_sum"): "0+1x60", attempts("scheduled"): "0+1x60"},
    ),
    Case(
        "BayplanBindConflicts",
        "two schedulers for the same pods",
        45,
        {series("bayplan_bind_conflicts_total"): "0+6x60", attempts("scheduled"): "0+60x60"},
        "0.1 binds a second are refused, for the pod is on a node already or is another: more than one of a hundred.",
        INSTALLATION,
    ),
    Case(
        "BayplanBindConflicts",
        "a pod that was deleted meanwhile",
        45,
        {series("bayplan_bind_conflicts_total"): "0x20 1x60", attempts("scheduled"): "0+60x80"},
    ),
    Case(
        "BayplanNominationOld",
        "a victim that does not end",
        30,
        {series("bayplan_oldest_nomination_age_seconds"): "0+60x60", leads(): "1x60"},
        "bayplan keeps room on a node for 30m 0s for a pod whose victims were ended.",
        INSTALLATION,
    ),
    Case(
        "BayplanNominationOld",
        "victims that end",
        30,
        {series("bayplan_oldest_nomination_age_seconds"): "0 60 120 180 240 0x60", leads(): "1x60"},
    ),
    Case(
        "BayplanNominationOld",
        "what a standby heard",
        30,
        {series("bayplan_oldest_nomination_age_seconds", OTHER_REPLICA): "0+60x60", leads(OTHER_REPLICA): "0x60"},
    ),
    Case(
        "BayplanKubeletRejections",
        "a node with less room",
        12,
        {series("bayplan_kubelet_rejections_total", reason="OutOfcpu"): "0x4 2x30"},
        "Within 15 minutes kubelets rejected 2 pods with the reason OutOfcpu.",
        {**INSTALLATION, "reason": "OutOfcpu"},
    ),
    Case(
        "BayplanKubeletRejections",
        "none since",
        30,
        {series("bayplan_kubelet_rejections_total", reason="OutOfcpu"): "2x60"},
    ),
    Case(
        "BayplanAPIServerUnreachable",
        "no answers",
        10,
        {
            series("rest_client_requests_total", code="<error>", method="GET"): "0+9x30",
            series("rest_client_requests_total", code="200", method="GET"): "0+1x30",
        },
        "90% of the requests of a:1 get no answer.",
        REPLICA,
    ),
    Case(
        "BayplanAPIServerUnreachable",
        "a restart of the API server",
        30,
        {
            series("rest_client_requests_total", code="<error>", method="GET"): "0x9 5x30",
            series("rest_client_requests_total", code="200", method="GET"): "0+10x60",
        },
    ),
    Case(
        "BayplanWatchStale",
        "no bookmark",
        6,
        {series("bayplan_watch_last_event_age_seconds", resource="nodes"): "10+60x30"},
        "The watch of nodes at a:1 had neither an event nor a bookmark for 6m 10s.",
        {**REPLICA, "resource": "nodes"},
    ),
    Case(
        "BayplanWatchStale",
        "bookmarks",
        20,
        {series("bayplan_watch_last_event_age_seconds", resource="nodes"): "60x30"},
    ),
    Case(
        "BayplanCacheDiffers",
        "a difference",
        1,
        {series("bayplan_cache_differences", kind="pods"): "2x5"},
        "The last comparison at a:1 found 2 differing objects (pods).",
        {**REPLICA, "kind": "pods"},
    ),
    Case("BayplanCacheDiffers", "no difference", 1, {series("bayplan_cache_differences", kind="pods"): "0x5"}),
    Case(
        "BayplanObjectsLeftOut",
        "an object that cannot be read",
        6,
        {series("bayplan_undecodable_objects_total", kind="Pod"): "0x4 1x30"},
        "a:1 left out objects of the kind Pod; its log names them.",
        {**REPLICA, "kind": "Pod"},
    ),
    Case(
        "BayplanConfigRefused",
        "an error in the file",
        6,
        {series("bayplan_config_last_reload_successful"): "0x20"},
        "a:1 read a configuration with an error. The one before stays in force, until a restart fails.",
        REPLICA,
    ),
    Case("BayplanConfigRefused", "a good file", 6, {series("bayplan_config_last_reload_successful"): "1x20"}),
    Case(
        "BayplanMemoryHigh",
        "nearly a GiB",
        12,
        {series("process_resident_memory_bytes"): f"{GIB * 9 // 10}x30"},
        "a:1 uses 921.6MiB. At the limit the kernel kills it.",
        REPLICA,
    ),
    Case("BayplanMemoryHigh", "a start", 12, {series("process_resident_memory_bytes"): f"{GIB // 2}x30"}),
    Case(
        "BayplanMemoryHigh",
        "a stranger's memory",
        12,
        {series("process_resident_memory_bytes", STRANGER): f"{4 * GIB}x30"},
    ),
]
