"""Pods are bound: once, by the right profile, in order, and with nothing else written on them."""

import socket

import pytest
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient
from e2e.controlplane.objects import node, pod
from e2e.controlplane.recorder import PodRecorder
from e2e.scenarios.outcomes import (
    assert_each_bound_once,
    condition_of,
    events_of,
    node_of,
    nodes_bound,
    overcommitted,
    wait_bound,
    wait_event,
    wait_event_counts,
    wait_refused,
)

pytestmark = pytest.mark.controlplane

FINALIZER = "example.com/hold"


def test_every_pod_of_a_batch_is_bound_exactly_once_and_no_node_is_overcommitted(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create_all("nodes", [node(f"n{index}", cpu="4", pods="20") for index in range(10)])
    names = [f"p{index}" for index in range(100)]
    with PodRecorder(client) as recorder:
        created = client.create_all("pods", [pod(name, namespace, requests={"cpu": "300m"}) for name in names])
        wait_bound(client, namespace, names)
        recorder.catch_up()
        assert_each_bound_once(recorder, [one["metadata"]["uid"] for one in created])
    assert overcommitted(client) == {}
    # 13 pods of 300m fill a node of 4 CPUs, so packed pods are on 8 nodes at most.
    assert len(set(nodes_bound(client, namespace).values())) == 8


def test_a_bound_pod_gets_the_event_kube_scheduler_would_write(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("nodes", node("n1"))
    created = client.create("pods", pod("told", namespace))
    wait_bound(client, namespace, ["told"])
    event = wait_event(client, namespace, "told", "Scheduled")
    assert event["note"] == f"Successfully assigned {namespace}/told to n1"
    assert (event["type"], event["action"]) == ("Normal", "Binding")
    assert event["reportingController"] == "bayplan"
    assert event["reportingInstance"] == f"bayplan-{socket.gethostname()}"
    assert event["metadata"]["name"].startswith("told.")
    regarding = event["regarding"]
    assert (regarding["kind"], regarding["apiVersion"], regarding["uid"]) == ("Pod", "v1", created["metadata"]["uid"])
    assert "series" not in event


def test_binding_leaves_no_trace_on_the_pod_but_its_node_and_condition(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    created = client.create("pods", pod("clean", namespace, labels={"app": "web"}))
    refused = wait_refused(client, namespace, "clean")
    client.create("nodes", node("n1"))
    wait_bound(client, namespace, ["clean"])
    wait_event(client, namespace, "clean", "Scheduled")
    bound = client.get("pods", "clean", namespace)

    changing = {"resourceVersion", "managedFields", "generation"}
    before = {key: value for key, value in created["metadata"].items() if key not in changing}
    assert {key: value for key, value in bound["metadata"].items() if key not in changing} == before
    assert not {"annotations", "finalizers"} & bound["metadata"].keys()
    assert bound["spec"] == created["spec"] | {"nodeName": "n1"}
    assert (refused["status"], condition_of(bound)["status"]) == ("False", "True")
    assert [one["type"] for one in bound["status"]["conditions"]] == ["PodScheduled"]


def test_pods_of_other_schedulers_are_left_alone(client: ApiClient, namespace: str, bayplan: BayplanProcess) -> None:
    client.create("nodes", node("n1"))
    names = ["default-scheduler", "bayplan-2", "Bayplan", "<script>alert(1)</script>"]
    for index, name in enumerate(names):
        client.create("pods", pod(f"stranger-{index}", namespace, scheduler=name))
    client.create("pods", pod("ours", namespace))
    wait_bound(client, namespace, ["ours"])
    for index in range(len(names)):
        found = client.get("pods", f"stranger-{index}", namespace)
        assert "nodeName" not in found["spec"]
        assert condition_of(found) == {}
        assert events_of(client, namespace, f"stranger-{index}") == []


def test_the_pod_of_higher_priority_gets_the_room_that_becomes_free(
    client: ApiClient, namespace: str, bayplan: BayplanProcess, priority_classes: None
) -> None:
    client.create("nodes", node("n1", cpu="1"))
    running = pod(
        "running", namespace, scheduler="another", node_name="n1", requests={"cpu": "1"}, priorityClassName="high"
    )
    client.create("pods", running)
    for name, priority in (("a-low", "low"), ("z-high", "high")):
        client.create("pods", pod(name, namespace, requests={"cpu": "1"}, priorityClassName=priority))
        wait_refused(client, namespace, name)
    client.delete("pods", "running", namespace=namespace, grace_seconds=0)
    wait_bound(client, namespace, ["z-high"])
    assert node_of(client, namespace, "a-low") == ""


def test_a_gated_pod_waits_untouched_and_is_bound_once_its_gates_are_gone(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("nodes", node("n1"))
    gates = [{"name": "example.com/first"}, {"name": "example.com/second"}]
    client.create("pods", pod("gated", namespace, schedulingGates=gates))
    client.create("pods", pod("free", namespace))
    wait_bound(client, namespace, ["free"])
    for left in (gates, gates[1:]):
        client.patch("pods", "gated", {"spec": {"schedulingGates": left}}, namespace=namespace)
        client.create("pods", pod(f"after-{len(left)}", namespace))
        wait_bound(client, namespace, [f"after-{len(left)}"])
        gated = client.get("pods", "gated", namespace)
        assert "nodeName" not in gated["spec"]
        assert condition_of(gated)["reason"] == "SchedulingGated"
    assert events_of(client, namespace, "gated") == []
    client.patch("pods", "gated", {"spec": {"schedulingGates": []}}, namespace=namespace)
    assert wait_bound(client, namespace, ["gated"]) == {"gated": "n1"}


def test_a_pod_that_is_being_deleted_is_not_bound(client: ApiClient, namespace: str, bayplan: BayplanProcess) -> None:
    leaving = pod("leaving", namespace)
    leaving["metadata"]["finalizers"] = [FINALIZER]
    client.create("pods", leaving)
    wait_refused(client, namespace, "leaving")
    client.delete("pods", "leaving", namespace=namespace)
    try:
        client.create("nodes", node("n1"))
        client.create("pods", pod("staying", namespace))
        wait_bound(client, namespace, ["staying"])
        wait_event_counts(client, namespace, "leaving", "FailedScheduling", [1, 1])
        assert "skip schedule deleting pod" in events_of(client, namespace, "leaving", "FailedScheduling")[-1]["note"]
        assert node_of(client, namespace, "leaving") == ""
    finally:
        client.patch("pods", "leaving", {"metadata": {"finalizers": None}}, namespace=namespace)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ended_gives_its_room_back(
    client: ApiClient, namespace: str, bayplan: BayplanProcess, phase: str
) -> None:
    client.create("nodes", node("n1", cpu="1"))
    client.create("pods", pod("running", namespace, requests={"cpu": "1"}))
    wait_bound(client, namespace, ["running"])
    client.create("pods", pod("next", namespace, requests={"cpu": "1"}))
    wait_refused(client, namespace, "next")
    client.patch("pods", "running", {"status": {"phase": phase}}, namespace=namespace, subresource="status")
    assert wait_bound(client, namespace, ["next"]) == {"next": "n1"}


def test_a_pod_that_ended_before_it_was_bound_stays_unbound(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("pods", pod("ended", namespace))
    wait_refused(client, namespace, "ended")
    client.patch("pods", "ended", {"status": {"phase": "Failed"}}, namespace=namespace, subresource="status")
    client.create("nodes", node("n1"))
    client.create("pods", pod("ours", namespace))
    wait_bound(client, namespace, ["ours"])
    assert node_of(client, namespace, "ended") == ""


def test_a_pod_bound_by_somebody_else_is_counted_and_not_tried_again(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("nodes", node("n1", cpu="1", taints=[{"key": "held", "effect": "NoSchedule"}]))
    client.create("pods", pod("taken", namespace, requests={"cpu": "1"}))
    wait_refused(client, namespace, "taken")
    client.bind(namespace, "taken", "n1")
    client.create("pods", pod("later", namespace, requests={"cpu": "1"}, tolerations=[{"operator": "Exists"}]))
    message = wait_refused(client, namespace, "later")["message"]
    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu. preemption: ")
    assert events_of(client, namespace, "taken", "Scheduled") == []


def test_a_pod_recreated_under_its_name_is_scheduled_as_the_new_pod_it_is(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create_all("nodes", [node("n1", cpu="1")])
    with PodRecorder(client) as recorder:
        uids = []
        for _ in range(5):
            uids.append(client.create("pods", pod("again", namespace, requests={"cpu": "1"}))["metadata"]["uid"])
            wait_bound(client, namespace, ["again"])
            client.delete("pods", "again", namespace=namespace, grace_seconds=0)
        recorder.catch_up()
        assert_each_bound_once(recorder, uids)
