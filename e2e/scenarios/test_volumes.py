"""Pods get the volumes they claim: bound ones rule, free ones are taken, and missing ones are asked for."""

from collections.abc import Iterator

import pytest
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.objects import claim, local_volume, node, pod, storage_class
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import delete_storage, nodes_bound, wait_bound, wait_refused

pytestmark = pytest.mark.controlplane

HOSTNAME = "kubernetes.io/hostname"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


@pytest.fixture(autouse=True)
def storage(client: ApiClient, namespace: str) -> Iterator[None]:
    """Two nodes told apart by hostname, and no volumes left behind."""
    client.create_all("nodes", [node("n1"), node("n2")])
    client.create("storageclasses", storage_class("local"))
    client.create("storageclasses", storage_class("made", "csi.example"))
    yield
    delete_storage(client)


def create_volume(client: ApiClient, name: str, class_name: str, on: str) -> None:
    """A free volume on one node, as its administrator and the volume controller leave it."""
    hosts = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [on]}]}
    client.create("persistentvolumes", local_volume(name, class_name, hosts))
    client.patch("persistentvolumes", name, {"status": {"phase": "Available"}}, subresource="status")


def bind_claim(client: ApiClient, namespace: str, name: str, volume: str) -> None:
    """What the volume controller does last."""
    change = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": volume},
    }
    client.patch("persistentvolumeclaims", name, change, namespace=namespace)


def claiming(name: str, namespace: str, claim_name: str) -> Object:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]
    return pod(name, namespace, volumes=volumes)


def test_a_free_volume_is_prebound_and_its_pod_waits_for_the_claim(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    create_volume(client, "v", "local", on="n2")
    for name in ("first", "second"):
        client.create("persistentvolumeclaims", claim(name, namespace, "local"))
    client.create("pods", claiming("p", namespace, "first"))

    def prebound() -> bool:
        found = client.get("persistentvolumes", "v")
        return bool(found["spec"].get("claimRef", {}).get("name") == "first")

    wait_until(prebound, "the volume is prebound")
    assert nodes_bound(client, namespace).get("p") is None
    assert client.get("pods", "p", namespace)["status"]["nominatedNodeName"] == "n2", "autoscalers are told"
    client.create("pods", claiming("q", namespace, "second"))
    told = wait_refused(client, namespace, "q")["message"]
    assert told.startswith("0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.")
    bind_claim(client, namespace, "first", "v")
    wait_bound(client, namespace, ["p"])
    assert nodes_bound(client, namespace)["p"] == "n2"
    assert "nominatedNodeName" not in client.get("pods", "p", namespace)["status"]


def test_a_volume_is_asked_for_on_the_chosen_node_and_the_pod_runs_there(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("persistentvolumeclaims", claim("c", namespace, "made"))
    client.create("pods", claiming("p", namespace, "c"))
    chosen: list[str] = []

    def selected() -> bool:
        found = client.get("persistentvolumeclaims", "c", namespace)
        chosen[:] = [found["metadata"].get("annotations", {}).get(SELECTED_NODE, "")]
        return bool(chosen[0])

    wait_until(selected, "the claim names a node")
    create_volume(client, "made", "made", on=chosen[0])
    bind_claim(client, namespace, "c", "made")
    wait_bound(client, namespace, ["p"])
    assert nodes_bound(client, namespace)["p"] == chosen[0]


def test_a_pod_without_its_claim_waits_until_the_claim_comes(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("pods", claiming("p", namespace, "late"))
    told = wait_refused(client, namespace, "p")["message"]
    assert told.startswith('0/2 nodes are available: persistentvolumeclaim "late" not found.')
    create_volume(client, "v", "local", on="n1")
    client.create("persistentvolumeclaims", claim("late", namespace, "local"))
    bind_claim(client, namespace, "late", "v")
    wait_bound(client, namespace, ["p"])
    assert nodes_bound(client, namespace)["p"] == "n1"
