"""What the priority of a pod means, on a real API server: classes, the queue's order, and who may use high priority."""

from pathlib import Path

import pytest
from e2e.conftest import RunBayplan, StartControlPlane
from e2e.controlplane.client import ApiError
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.conftest import CreateClass
from e2e.scenarios.outcomes import nodes_bound, wait_bound, wait_refused

pytestmark = pytest.mark.controlplane

MANIFESTS = Path(__file__).parents[2] / "manifests" / "priority"


def _priority(control_plane: ControlPlane, namespace: str, name: str) -> int:
    value: int = control_plane.client.get("pods", name, namespace)["spec"]["priority"]
    return value


def test_a_pod_has_the_value_of_the_class_it_names_and_zero_without_one(
    control_plane: ControlPlane, namespace: str, create_class: CreateClass
) -> None:
    client = control_plane.client
    create_class("high-of-test", 1_000_000)
    client.create("pods", pod("named", namespace, priorityClassName="high-of-test"))
    client.create("pods", pod("unnamed", namespace))
    assert _priority(control_plane, namespace, "named") == 1_000_000
    assert _priority(control_plane, namespace, "unnamed") == 0


def test_a_pod_that_names_an_unknown_class_is_refused(control_plane: ControlPlane, namespace: str) -> None:
    with pytest.raises(ApiError, match="no PriorityClass with name nosuch was found") as refusal:
        control_plane.client.create("pods", pod("p", namespace, priorityClassName="nosuch"))
    assert refusal.value.status == 403


def test_a_class_above_one_billion_is_refused(create_class: CreateClass) -> None:
    with pytest.raises(ApiError, match="maximum allowed value of a user defined priority is 1000000000"):
        create_class("too-high", 1_000_000_001)


def test_a_new_global_default_counts_for_new_pods_only(
    control_plane: ControlPlane, namespace: str, create_class: CreateClass
) -> None:
    client = control_plane.client
    client.create("pods", pod("before", namespace))
    create_class("default-of-test", 77, globalDefault=True)

    def defaulted() -> bool:
        # The API server's admission hears of the class by a watch.
        client.create("pods", pod("after", namespace))
        if _priority(control_plane, namespace, "after") == 77:
            return True
        client.delete("pods", "after", namespace=namespace)
        return False

    wait_until(defaulted, "the global default")
    assert _priority(control_plane, namespace, "before") == 0


def test_deleting_a_class_leaves_its_pods_their_priority_and_their_turn(
    control_plane: ControlPlane, namespace: str, run_bayplan: RunBayplan, create_class: CreateClass
) -> None:
    client = control_plane.client
    create_class("short-lived", 500)
    client.create("pods", pod("urgent", namespace, requests={"cpu": "3"}, priorityClassName="short-lived"))
    client.create("pods", pod("plain", namespace, requests={"cpu": "3"}))
    control_plane.kubectl("delete", "priorityclass", "short-lived")
    assert _priority(control_plane, namespace, "urgent") == 500
    client.create("nodes", node("only", cpu="4"))
    run_bayplan()
    assert wait_bound(client, namespace, ["urgent"]) == {"urgent": "only"}
    wait_refused(client, namespace, "plain")

    def refused() -> bool:
        try:
            client.create("pods", pod("late", namespace, priorityClassName="short-lived"))
        except ApiError as error:
            return "no PriorityClass" in str(error)
        client.delete("pods", "late", namespace=namespace)
        return False

    wait_until(refused, "the refusal of the deleted class")


def test_pending_pods_of_higher_priority_are_scheduled_first_whenever_they_came(
    control_plane: ControlPlane, namespace: str, run_bayplan: RunBayplan, create_class: CreateClass
) -> None:
    client = control_plane.client
    create_class("low-of-test", 10, preemptionPolicy="Never")
    create_class("mid-of-test", 20, preemptionPolicy="Never")
    create_class("top-of-test", 30, preemptionPolicy="Never")
    for rank in ("low", "mid", "top"):
        for i in range(3):
            client.create(
                "pods", pod(f"{rank}-{i}", namespace, requests={"cpu": "1"}, priorityClassName=f"{rank}-of-test")
            )
    client.create("nodes", node("room-for-five", cpu="5"))
    run_bayplan()
    expected = {"top-0", "top-1", "top-2", "mid-0", "mid-1"}
    wait_bound(client, namespace, expected)
    wait_refused(client, namespace, "low-2")
    assert nodes_bound(client, namespace).keys() == expected


def test_a_higher_pod_that_cannot_be_scheduled_does_not_hold_up_lower_ones(
    control_plane: ControlPlane, namespace: str, run_bayplan: RunBayplan, create_class: CreateClass
) -> None:
    client = control_plane.client
    create_class("high-of-test", 1000)
    client.create("pods", pod("too-big", namespace, requests={"cpu": "64"}, priorityClassName="high-of-test"))
    client.create("pods", pod("small", namespace))
    client.create("nodes", node("n", cpu="4"))
    run_bayplan()
    wait_bound(client, namespace, ["small"])
    wait_refused(client, namespace, "too-big")


def test_a_quota_by_priority_class_keeps_untrusted_users_from_high_priority(
    start_control_plane: StartControlPlane, run_bayplan: RunBayplan
) -> None:
    plane = start_control_plane(ControlPlaneOptions(kube_controller_manager=True))
    client = plane.client
    plane.kubectl("apply", "-k", MANIFESTS)
    # The quota counts once its controller has looked at it.
    wait_until(
        lambda: client.get("resourcequotas", "high-priority", "default").get("status", {}).get("hard"), "the quota"
    )
    wait_until(lambda: client.list("serviceaccounts", "default"), "the default service account")
    small = {"cpu": "100m", "memory": "64Mi"}

    def create(name: str, priority_class: str = "") -> None:
        client.create("pods", pod(name, "default", requests=small, priorityClassName=priority_class))

    create("allowed-0", "high-priority")
    create("allowed-1", "high-priority-nonpreempting")
    with pytest.raises(ApiError, match="exceeded quota: high-priority") as refusal:
        create("one-too-many", "high-priority")
    assert refusal.value.status == 403
    # Pods of ordinary priority are not the quota's business.
    create("ordinary")
    create("batch", "batch-low")
    client.create("nodes", node("n", cpu="4"))
    plane.kubectl("taint", "node", "n", "node.kubernetes.io/not-ready-", check=False)
    run_bayplan(kubeconfig=install_bayplan(plane))
    wait_bound(client, "default", ["allowed-0", "allowed-1", "ordinary", "batch"])
