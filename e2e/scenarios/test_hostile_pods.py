"""Objects the API server accepts and a scheduler should not trust: the right verdict, and no harm to other pods."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, ApiError, Object
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.scenarios.odd_nodes_and_storage import LABELS, ODD_NODES, TAINT, odd_node, odd_storage, placed_elsewhere
from e2e.scenarios.odd_pod_cases import CASES, CPU
from e2e.scenarios.odd_pods import BOUND, Case
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    condition_of,
    configuration,
    delete_storage,
    node_of,
    wait_bound,
    wait_refused,
)

pytestmark = pytest.mark.controlplane
ORDINARY = 30


@dataclass(frozen=True)
class World:
    client: ApiClient
    namespace: str
    process: BayplanProcess


@pytest.fixture(scope="module")
def world(
    control_plane: ControlPlane, bayplan_identity: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """All the odd pods and nodes at once, among ordinary ones, given to one scheduler."""
    client, name = control_plane.client, f"hostile-{secrets.token_hex(4)}"
    client.create("namespaces", {"metadata": {"name": name}})
    client.create_all("nodes", [node(f"n{index}", pods="500", labels=LABELS) for index in range(20)])
    client.create_all("nodes", [odd_node(each, amounts) for each, amounts in ODD_NODES.items()])
    client.create("nodes", node("overfull", labels={"pool": "odd"}, taints=[TAINT]))
    client.create_all("pods", placed_elsewhere(name))
    odd_storage(client, name)
    process = BayplanProcess(tmp_path_factory.mktemp("hostile"), config=configuration(), kubeconfig=bayplan_identity)
    try:
        process.wait_ready()
        for target in ("<script>alert(1)</script>", "../../x y", "no-such-node"):
            bind_elsewhere(client, name, target)
        documents = [document_of(name, each, case) for each, case in CASES.items()]
        ordinary = [pod(f"ordinary-{index}", name) for index in range(ORDINARY)]
        client.create_all("pods", [*documents[::2], *ordinary, *documents[1::2]])
        yield World(client, name, process)
    finally:
        process.stop(10)
        client.delete_all("nodes")
        client.delete_all("pods", name)
        delete_storage(client)


def bind_elsewhere(client: ApiClient, namespace: str, target: str) -> None:
    """Binds a pod of another scheduler's; from 1.37 on the API server refuses what cannot be the name of a node."""
    victim = f"bound-{secrets.token_hex(4)}"
    client.create("pods", pod(victim, namespace, scheduler="another"))
    try:
        client.bind(namespace, victim, target)
    except ApiError as error:
        if error.status != 422 or target == "no-such-node":
            raise


def document_of(namespace: str, name: str, case: Case) -> Object:
    document = pod(name, namespace, labels=case.labels, **{"requests": {"cpu": "10m"}, **case.spec})
    document["metadata"]["annotations"] = case.annotations
    return document


@pytest.mark.parametrize("name", CASES)
def test_an_odd_pod_gets_the_right_verdict(world: World, name: str) -> None:
    case = CASES[name]
    if case.verdict == BOUND:
        wait_bound(world.client, world.namespace, [name])
    elif "schedulingGates" in case.spec:
        assert case.verdict in condition_of(world.client.get("pods", name, world.namespace))["message"]
    else:
        condition = wait_refused(world.client, world.namespace, name)
        assert condition["reason"] == "Unschedulable"
        assert case.verdict in condition["message"]
        assert node_of(world.client, world.namespace, name) == ""


def test_all_ordinary_pods_among_them_are_bound(world: World) -> None:
    wait_bound(world.client, world.namespace, [f"ordinary-{index}" for index in range(ORDINARY)])


def test_an_ordinary_pod_is_still_bound_after_all_of_them_and_the_log_holds_no_exception(world: World) -> None:
    world.client.create("pods", pod("last", world.namespace))
    wait_bound(world.client, world.namespace, ["last"])
    assert_alive_without_a_traceback(world.process)
    assert "\x1b" not in world.process.log()


def test_a_node_that_turns_odd_is_left_and_taken_again_when_it_recovers(world: World) -> None:
    client = world.client
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    # A taint of its own, or the pods that wait for very much CPU would come while it has it.
    client.create("nodes", node("turning", cpu="8", labels={"pool": "turning"}, taints=[{**TAINT, "key": "turning"}]))

    def pod_for(name: str) -> Object:
        tolerations = [{"key": "turning", "operator": "Exists"}]
        spec: Object = {"nodeSelector": {"pool": "turning"}, "tolerations": tolerations}
        return pod(name, world.namespace, requests={"cpu": "1"}, **spec)

    client.create("pods", pod_for("turning-1"))
    wait_bound(client, world.namespace, ["turning-1"])
    for index, cpu in enumerate(["0", "1e100", "1n"]):
        odd = {**amounts, "cpu": cpu}
        client.patch("nodes", "turning", {"status": {"allocatable": odd, "capacity": odd}}, subresource="status")
        client.create("pods", pod_for(f"odd-{index}"))
        if cpu == "1e100":
            wait_bound(client, world.namespace, [f"odd-{index}"])
        else:
            assert CPU in wait_refused(client, world.namespace, f"odd-{index}")["message"]
    client.patch("nodes", "turning", {"status": {"allocatable": amounts, "capacity": amounts}}, subresource="status")
    wait_bound(client, world.namespace, ["odd-0", "odd-2"])
