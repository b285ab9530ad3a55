"""No pod ends for nothing: a victim that the shipped policies protect is found out before the others end.

A replica runs with the identity, the rights, the policies and the configuration of the production overlay.
"""

from collections.abc import Iterator

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.deployed import DeployedReplica, pod_of_deployment
from e2e.controlplane.installation import OVERLAYS, SERVICE_ACCOUNT, acting_as
from e2e.controlplane.objects import pod_of_class
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import STOP_SECONDS, stop_all
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.dry_runs import refusal_of, try_delete
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    condition_of,
    end_pod,
    events_of,
    fill_nodes,
    terminating,
    wait_bound,
)

pytestmark = pytest.mark.controlplane

NAMESPACE = "bayplan-system"
TEAM = "team"
TOLD = "preemption: the API server answered 403 to the end of a victim on node n1."
ONLY_THERE = {"kubernetes.io/hostname": "n1"}


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    plane = start_control_plane(ControlPlaneOptions(audit=True))
    plane.kubectl("apply", "-k", OVERLAYS / "production")
    plane.client.create("namespaces", {"metadata": {"name": TEAM}})
    for name, value in (("low", 1), ("high", 1000)):
        plane.client.create("priorityclasses", {"metadata": {"name": name}, "value": value})
    return plane


@pytest.fixture
def client(plane: ControlPlane) -> ApiClient:
    return plane.client


@pytest.fixture
def replica(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedReplica]:
    replica = DeployedReplica(
        pod_of_deployment(plane.client, NAMESPACE, "replica"),
        plane,
        tmp_path_factory.mktemp("replica"),
        kubeconfig=plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT),
    )
    try:
        replica.wait_ready()
        yield replica
    finally:
        stop_all([replica], STOP_SECONDS)


def test_no_victim_ends_where_a_policy_protects_one_of_them(
    plane: ControlPlane, client: ApiClient, replica: DeployedReplica
) -> None:
    fill_nodes(client, TEAM, "n1", pods=3)
    end_pod(client, TEAM, "low-n1-2")
    protected = pod_of_class("dns", "kube-system", "low", node_name="n1", scheduler="another")
    client.create("pods", protected)
    _wait_until_in_force(plane)
    asked = len(_answers(plane))
    client.create("pods", pod_of_class("high", TEAM, "high", "3", nodeSelector=ONLY_THERE))

    def told() -> Object | None:
        condition = condition_of(client.get("pods", "high", TEAM))
        return condition if condition.get("message", "").endswith(TOLD) else None

    assert wait_until(told, "the pod to be told what was refused")["reason"] == "Unschedulable"
    wait_until(lambda: len(_answers(plane)) >= asked + 3, "it to be tried again")
    assert not terminating(client, TEAM)
    assert not terminating(client, "kube-system")
    for name, namespace in (("low-n1-0", TEAM), ("low-n1-1", TEAM), ("dns", "kube-system")):
        conditions = client.get("pods", name, namespace)["status"].get("conditions", [])
        assert "DisruptionTarget" not in {each["type"] for each in conditions}
    assert "nominatedNodeName" not in client.get("pods", "high", TEAM)["status"]
    assert TOLD in _notes(client)
    assert "bayplan ends no pod in kube-system" in replica.log()

    end_pod(client, "kube-system", "dns")
    wait_until(lambda: len(terminating(client, TEAM)) == 2, "the others to end, now that it helps")
    for name in ("low-n1-0", "low-n1-1"):
        end_pod(client, TEAM, name)
    assert wait_bound(client, TEAM, ["high"]) == {"high": "n1"}
    assert_alive_without_a_traceback(replica)


def _wait_until_in_force(plane: ControlPlane) -> None:
    """The API server takes a policy up a moment after it is created: until then it allows the end it later refuses."""
    with acting_as(plane, NAMESPACE, SERVICE_ACCOUNT) as scheduler:
        wait_until(lambda: refusal_of(lambda: try_delete(scheduler, "kube-system", "dns")), "the policy on victims")


def _notes(client: ApiClient) -> str:
    return "\n".join(event["note"] for event in events_of(client, TEAM, "high", "FailedScheduling"))


def _answers(plane: ControlPlane) -> list[int]:
    """The answers to what was asked about the protected pod."""
    return [event.code for event in plane.audit_events() if event.verb == "delete" and event.name == "dns"]
