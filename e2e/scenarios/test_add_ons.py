"""Add-ons of others are admitted beside the production overlay, whose policies bind pods that name bayplan.

Their manifests are in add-ons/. Kubernetes' controllers make their pods, and no kubelet runs them.
"""

from pathlib import Path

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.client import ApiClient
from e2e.controlplane.objects import node
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.dry_runs import refusal_of, try_create
from e2e.scenarios.guarded_cluster import install_production

pytestmark = pytest.mark.controlplane

ADD_ONS = Path(__file__).parent / "add-ons"
NODES = 3
CLUSTER_CRITICAL, NODE_CRITICAL = 2000000000, 2000001000
MADE = {
    "calico": ("calico-system", {"calico-typha": (2, CLUSTER_CRITICAL), "calico-node": (NODES, NODE_CRITICAL)}),
    "cert-manager": (
        "cert-manager",
        {"cert-manager": (1, CLUSTER_CRITICAL), "cert-manager-webhook": (1, CLUSTER_CRITICAL)},
    ),
}
"""Of each add-on its namespace, and of each workload there how many pods of which priority are made of it."""


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    """A cluster with controllers and nodes where the production overlay's policies are in force."""
    plane = start_control_plane(ControlPlaneOptions(kube_controller_manager=True))
    plane.client.create_all(
        "nodes", [node(f"n{index}", labels={"kubernetes.io/os": "linux"}) for index in range(NODES)]
    )
    install_production(plane)
    wait_until(lambda: plane.client.list("serviceaccounts", "default"), "a default service account")
    wait_until(lambda: _refused(plane.client), "the ceiling of priorities")
    return plane


def _refused(client: ApiClient) -> str:
    return refusal_of(lambda: try_create(client, "default", "system-node-critical"))


@pytest.mark.parametrize("name", MADE)
def test_all_pods_of_an_add_on_are_admitted(plane: ControlPlane, name: str) -> None:
    namespace, wanted = MADE[name]
    assert "Warning" not in plane.kubectl("apply", "-f", ADD_ONS / f"{name}.yaml")

    def made() -> dict[str, tuple[int, int]]:
        found: dict[str, list[int]] = {}
        for pod in plane.client.list("pods", namespace):
            owner = pod["spec"]["serviceAccountName"]
            found.setdefault(owner, []).append(pod["spec"]["priority"])
        return {owner: (len(priorities), max(priorities)) for owner, priorities in found.items()}

    def why() -> str:
        return "\n".join(
            event["message"] for event in plane.client.list("events", namespace) if event["type"] != "Normal"
        )

    wait_until(lambda: made() == wanted, f"the pods of {name}", detail=lambda: f"{made()}\n{why()}")
    assert "forbidden" not in why()


def test_the_same_pods_are_refused_as_soon_as_they_name_bayplan(plane: ControlPlane) -> None:
    assert "is more than 999999, the highest for namespace default" in _refused(plane.client)
