"""Pods that fit nowhere: what the user is told, how often it is written, and what wakes them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object, Objects
from e2e.controlplane.objects import node, pod
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import (
    condition_of,
    events_of,
    metric,
    wait_bound,
    wait_event,
    wait_event_counts,
    wait_metric,
    wait_refused,
)

pytestmark = pytest.mark.controlplane

NO_EVICTION_HELPS = "preemption: 0/{0} nodes are available: {0} Preemption is not helpful for scheduling."
TAINT = {"key": "example.com/kept", "value": "free", "effect": "NoSchedule"}


def test_the_verdict_is_kube_schedulers_event_and_condition(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create_all("nodes", [node("n1", taints=[TAINT]), node("n2", cpu="1"), node("n3", cpu="1500m")])
    created = client.create("pods", pod("refused", namespace, requests={"cpu": "2"}))
    reasons = "1 node(s) had untolerated taint(s), 2 Insufficient cpu."
    message = f"0/3 nodes are available: {reasons} {NO_EVICTION_HELPS.format(3)}"

    condition = wait_refused(client, namespace, "refused")
    assert condition.pop("lastTransitionTime")
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "observedGeneration": created["metadata"]["generation"],
        "lastProbeTime": None,
    }
    event = wait_event(client, namespace, "refused", "FailedScheduling")
    assert (event["type"], event["action"], event["note"]) == ("Warning", "Scheduling", message)
    assert event["reportingController"] == "bayplan"
    assert event["regarding"]["uid"] == created["metadata"]["uid"]


def test_every_reason_is_counted_and_reasons_are_sorted_as_text(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create_all(
        "nodes",
        [
            node("cordoned", unschedulable=True),
            node("elsewhere", labels={"zone": "b"}),
            node("full", labels={"zone": "a"}, pods="0"),
            *(node(f"small-{index}", labels={"zone": "a"}, cpu="1", memory="1Gi") for index in range(10)),
        ],
    )
    requests = {"cpu": "2", "memory": "2Gi", "example.com/gpu": "1"}
    client.create("pods", pod("refused", namespace, requests=requests, nodeSelector={"zone": "a"}))
    assert wait_refused(client, namespace, "refused")["message"] == (
        "0/13 nodes are available: 1 Too many pods, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) were unschedulable, 10 Insufficient cpu, 10 Insufficient memory, 11 Insufficient example.com/gpu. "
        + NO_EVICTION_HELPS.format(13)
    )


def test_without_any_node_the_message_says_so_and_the_first_node_gets_the_pod(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("pods", pod("early", namespace))
    condition = wait_refused(client, namespace, "early")
    assert (condition["reason"], condition["message"]) == ("Unschedulable", "no nodes available to schedule pods")
    client.create("nodes", node("n1"))
    assert wait_bound(client, namespace, ["early"]) == {"early": "n1"}


def test_a_verdict_that_stays_the_same_is_not_written_again_and_its_event_counts(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    def attempts() -> float:
        return metric(bayplan, "scheduler_schedule_attempts_total", result="unschedulable")

    client.create("nodes", node("n1", cpu="4"))
    fillers = [f"filler-{index}" for index in range(4)]
    for name in fillers:
        client.create("pods", pod(name, namespace, scheduler="another", node_name="n1", requests={"cpu": "1"}))
    before = attempts()
    client.create("pods", pod("big", namespace, requests={"cpu": "4"}))
    wait_refused(client, namespace, "big")
    wait_event(client, namespace, "big", "FailedScheduling", accept=lambda event: "series" not in event)
    written = client.get("pods", "big", namespace)["metadata"]["resourceVersion"]

    for tried, name in enumerate(fillers[1:], start=2):
        client.delete("pods", name, namespace=namespace, grace_seconds=0)
        wait_metric(bayplan, before + tried, "scheduler_schedule_attempts_total", result="unschedulable")
    wait_event_counts(client, namespace, "big", "FailedScheduling", [4])
    assert client.get("pods", "big", namespace)["metadata"]["resourceVersion"] == written


def test_a_verdict_that_changed_is_written_and_keeps_the_time_since_when_the_pod_waits(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("pods", pod("waiting", namespace, requests={"cpu": "2"}))
    first = wait_refused(client, namespace, "waiting")
    client.create("nodes", node("n1", cpu="1", taints=[TAINT]))
    client.create("nodes", node("n2", cpu="1"))

    def condition() -> Object:
        return condition_of(client.get("pods", "waiting", namespace))

    def wait_for(reasons: str) -> None:
        message = f"0/2 nodes are available: {reasons} {NO_EVICTION_HELPS.format(2)}"
        wait_until(lambda: condition()["message"] == message, "the new verdict", detail=lambda: str(condition()))

    wait_for("1 Insufficient cpu, 1 node(s) had untolerated taint(s).")
    assert condition()["lastTransitionTime"] == first["lastTransitionTime"]
    client.patch("nodes", "n1", {"spec": {"taints": None}})
    wait_for("2 Insufficient cpu.")


@dataclass(frozen=True)
class Wake:
    """A cluster in which the pod `waiting` does not fit, and a change that lets it fit."""

    nodes: Objects
    change: Callable[[ApiClient, str], object]
    reason: str
    spec: Object = field(default_factory=dict)
    running: Objects = field(default_factory=list)


def set_allocatable(name: str, **amounts: str) -> Callable[[ApiClient, str], object]:
    change = {"status": {"allocatable": amounts, "capacity": amounts}}
    return lambda client, _: client.patch("nodes", name, change, subresource="status")


def set_spec(name: str, **spec: object) -> Callable[[ApiClient, str], object]:
    return lambda client, _: client.patch("nodes", name, {"spec": spec})


def replace_node(client: ApiClient, _: str) -> None:
    client.delete("nodes", "n1")
    client.create("nodes", node("n1", cpu="4"))


def add_toleration(client: ApiClient, namespace: str) -> None:
    tolerations = client.get("pods", "waiting", namespace)["spec"]["tolerations"]
    change = {"spec": {"tolerations": [*tolerations, {"key": TAINT["key"], "operator": "Exists"}]}}
    client.patch("pods", "waiting", change, namespace=namespace)


def filler(namespace: str = "", **spec: object) -> Object:
    return pod("running", namespace, scheduler="another", node_name="n1", **spec)  # type: ignore[arg-type]


def delete_filler(client: ApiClient, namespace: str) -> None:
    client.delete("pods", "running", namespace=namespace, grace_seconds=0)


def with_port(number: int) -> Objects:
    return [{"name": "main", "image": "pause", "ports": [{"containerPort": 80, "hostPort": number}]}]


WAKES = {
    "a node is added": Wake(
        [node("n0", taints=[TAINT])], lambda client, _: client.create("nodes", node("n1")), "untolerated taint"
    ),
    "a taint is removed": Wake([node("n1", taints=[TAINT])], set_spec("n1", taints=None), "untolerated taint"),
    "a node is uncordoned": Wake(
        [node("n1", unschedulable=True)], set_spec("n1", unschedulable=None), "were unschedulable"
    ),
    "a node is relabelled": Wake(
        [node("n1")],
        lambda client, _: client.patch("nodes", "n1", {"metadata": {"labels": {"disk": "ssd"}}}),
        "node affinity/selector",
        spec={"nodeSelector": {"disk": "ssd"}},
    ),
    "a node grows": Wake(
        [node("n1", cpu="1")],
        set_allocatable("n1", cpu="4"),
        "Insufficient cpu",
        spec={"requests": {"cpu": "2"}},
    ),
    "a node gets a device": Wake(
        [node("n1")],
        set_allocatable("n1", **{"example.com/gpu": "1"}),
        "Insufficient example.com/gpu",
        spec={"requests": {"example.com/gpu": "1"}},
    ),
    "a pod is deleted": Wake(
        [node("n1", cpu="1")],
        delete_filler,
        "Insufficient cpu",
        spec={"requests": {"cpu": "1"}},
        running=[filler(requests={"cpu": "1"})],
    ),
    "a host port is freed": Wake(
        [node("n1")],
        delete_filler,
        "free ports",
        spec={"containers": with_port(8080)},
        running=[filler(containers=with_port(8080))],
    ),
    "a pod slot is freed": Wake([node("n1", pods="1")], delete_filler, "Too many pods", running=[filler()]),
    "the pod gets a toleration": Wake([node("n1", taints=[TAINT])], add_toleration, "untolerated taint"),
    "a node is replaced": Wake(
        [node("n1", cpu="1")],
        replace_node,
        "Insufficient cpu",
        spec={"requests": {"cpu": "2"}},
    ),
}


@pytest.mark.parametrize("wake", WAKES.values(), ids=WAKES.keys())
def test_a_waiting_pod_is_bound_as_soon_as_a_change_makes_room(
    client: ApiClient, namespace: str, bayplan: BayplanProcess, wake: Wake
) -> None:
    client.create_all("nodes", wake.nodes)
    for one in wake.running:
        client.create("pods", {**one, "metadata": {**one["metadata"], "namespace": namespace}})
    client.create("pods", pod("waiting", namespace, **wake.spec))
    assert wake.reason in wait_refused(client, namespace, "waiting")["message"]
    wake.change(client, namespace)
    # Far below the five minutes after which a pod is tried again without any reason.
    assert wait_bound(client, namespace, ["waiting"], timeout_seconds=20) == {"waiting": "n1"}


TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def test_a_wish_is_no_rule_and_does_not_hold_the_pod(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("nodes", node("n1"))
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}
    spec: Object = {
        "affinity": {"podAntiAffinity": wish},
        "topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
    }
    client.create("pods", pod("wishful", namespace, **spec))
    wait_bound(client, namespace, ["wishful"])


def test_a_pod_deleted_while_it_waits_leaves_the_queue_and_nothing_is_written_about_it(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("pods", pod("short-lived", namespace, requests={"cpu": "1"}))
    wait_event(client, namespace, "short-lived", "FailedScheduling")
    client.delete("pods", "short-lived", namespace=namespace, grace_seconds=0)
    wait_metric(bayplan, 0, "scheduler_pending_pods")
    told = events_of(client, namespace, "short-lived")
    client.create("nodes", node("n1"))
    client.create("pods", pod("next", namespace))
    wait_event(client, namespace, "next", "Scheduled")
    assert events_of(client, namespace, "short-lived") == told
