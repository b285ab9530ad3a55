"""What stands in for kubelets: pods end when they are due and no other pod does, and all capacity is allocatable."""

import contextlib
from datetime import UTC, datetime, timedelta

import pytest

from e2e.conformance.kubelets import Kubelets, allocatable_change, due_pods
from e2e.controlplane.client import ApiClient, ApiError, Object, Objects
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until

NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


def ending(*, after_seconds: int, grace_seconds: int = 30, node_name: str | None = "node-1") -> Object:
    """A pod whose grace period has passed since `after_seconds`, which may be negative."""
    found = pod("ends", "default", node_name=node_name)
    deleted_at = (NOW - timedelta(seconds=after_seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    found["metadata"] |= {"deletionTimestamp": deleted_at, "deletionGracePeriodSeconds": grace_seconds}
    return found


def test_a_pod_is_due_when_its_grace_period_has_passed() -> None:
    due = ending(after_seconds=0)
    assert due_pods([due, ending(after_seconds=-1), pod("lives", "default", node_name="node-1")], NOW) == [due]


def test_a_pod_that_only_a_finalizer_keeps_is_not_ended_again() -> None:
    assert due_pods([ending(after_seconds=5, grace_seconds=0)], NOW) == []


def test_a_pod_without_a_node_has_no_kubelet_that_could_end_it() -> None:
    assert due_pods([ending(after_seconds=5, node_name=None)], NOW) == []


def test_allocatable_follows_capacity_both_ways() -> None:
    found = node("node-1")
    assert allocatable_change(found) == {}
    found["status"]["capacity"] = {"cpu": "8", "pods": "110", "example.com/foo": "5"}
    assert allocatable_change(found) == {"cpu": "8", "example.com/foo": "5", "memory": None}


@pytest.fixture
def node_1(control_plane: ControlPlane, namespace: str) -> Object:
    return control_plane.client.create("nodes", node("node-1"))


@pytest.fixture
def terminating(control_plane: ControlPlane, namespace: str, node_1: Object) -> Object:
    """A pod on a node whose grace period has passed, which nobody has ended."""
    client = control_plane.client
    client.create("pods", pod("worker", namespace, node_name="node-1"))
    client.delete("pods", "worker", namespace=namespace, grace_seconds=1)
    wait_until(lambda: due_pods([client.get("pods", "worker", namespace)], datetime.now(UTC)), "the grace period")
    return client.get("pods", "worker", namespace)


def test_a_due_pod_ends_on_the_api_server(control_plane: ControlPlane, namespace: str, terminating: Object) -> None:
    Kubelets(control_plane.client).turn()
    with pytest.raises(ApiError, match="404"):
        control_plane.client.get("pods", "worker", namespace)


class LateClient(ApiClient):
    """A client whose lists of pods are as old as one likes."""

    def __init__(self, plane: ControlPlane, pods: Objects) -> None:
        super().__init__(plane.url, plane.tls("test-admin"))
        self._pods = pods

    def list(self, resource: str, namespace: str | None = None, **parameters: str) -> Objects:
        return self._pods if resource == "pods" else super().list(resource, namespace, **parameters)


def test_a_pod_that_took_the_name_of_a_due_one_lives(
    control_plane: ControlPlane, namespace: str, terminating: Object
) -> None:
    client = control_plane.client
    client.delete("pods", "worker", namespace=namespace, grace_seconds=0)
    successor = client.create("pods", pod("worker", namespace, node_name="node-1"))
    with contextlib.closing(LateClient(control_plane, [terminating])) as late:
        Kubelets(late).turn()
    assert client.get("pods", "worker", namespace)["metadata"]["uid"] == successor["metadata"]["uid"]


def test_a_resource_added_to_a_nodes_capacity_can_be_asked_for_until_it_goes(
    control_plane: ControlPlane, node_1: Object
) -> None:
    client, kubelets = control_plane.client, Kubelets(control_plane.client)
    for amount in ("1k", None):
        client.patch("nodes", "node-1", {"status": {"capacity": {"example.com/foo": amount}}}, subresource="status")
        kubelets.turn()
        status = client.get("nodes", "node-1")["status"]
        assert status["allocatable"].get("example.com/foo") == amount
        assert status["allocatable"] == status["capacity"]
