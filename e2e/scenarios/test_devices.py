"""Pods get the devices that they claim, on the node that has them, and no device is given away twice."""

import json
from collections.abc import Iterator

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, path_of
from e2e.controlplane.devices import (
    DRIVER,
    claiming,
    create_with_own_claim,
    delete_devices,
    device_class,
    devices_of,
    reserved_for,
    resource_claim,
    resource_slice,
)
from e2e.controlplane.objects import node
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import events_of, nodes_bound, wait_bound, wait_refused

pytestmark = pytest.mark.controlplane


@pytest.fixture(autouse=True)
def devices(client: ApiClient, namespace: str) -> Iterator[None]:
    """Two nodes of which the second has two devices, and nothing of it left behind."""
    client.create_all("nodes", [node("n1"), node("n2")])
    client.create("deviceclasses", device_class())
    client.create("resourceslices", resource_slice("n2", 2))
    yield
    delete_devices(client, [namespace])


def test_a_pod_runs_where_its_claim_gets_devices_and_may_use_it(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    create_with_own_claim(client, "p", namespace, count=2)
    assert wait_bound(client, namespace, ["p"]) == {"p": "n2"}
    claim = client.get("resourceclaims", "p-own", namespace)
    assert devices_of([claim]) == [(DRIVER, "n2", "gpu-0"), (DRIVER, "n2", "gpu-1")]
    assert reserved_for(claim) == ["p"]
    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert claim["status"]["allocation"]["allocationTimestamp"]


def test_pods_share_a_claim_and_follow_it_to_its_node(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("resourceclaims", resource_claim("shared", namespace))
    names = [f"p{index}" for index in range(4)]
    client.create_all("pods", [claiming(name, namespace, "shared") for name in names])
    assert set(wait_bound(client, namespace, names).values()) == {"n2"}
    claim = client.get("resourceclaims", "shared", namespace)
    assert sorted(reserved_for(claim)) == names
    assert len(devices_of([claim])) == 1


def test_a_claim_that_two_entries_name_is_reserved_once(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("resourceclaims", resource_claim("c", namespace))
    client.create("pods", claiming("p", namespace, "c", "c"))
    wait_bound(client, namespace, ["p"])
    assert reserved_for(client.get("resourceclaims", "c", namespace)) == ["p"]


def test_a_pod_without_a_device_waits_for_one_and_is_told_so(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    for name in ("first", "second"):
        client.create("resourceclaims", resource_claim(name, namespace, count=2))
    client.create("pods", claiming("p", namespace, "first"))
    wait_bound(client, namespace, ["p"])
    client.create("pods", claiming("q", namespace, "second"))
    assert wait_refused(client, namespace, "q")["message"] == (
        "0/2 nodes are available: 2 cannot allocate all claims. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    client.create("resourceslices", resource_slice("n1", 2))
    assert wait_bound(client, namespace, ["q"])["q"] == "n1"


def test_a_claim_that_waits_for_its_class_is_allocated_once_that_comes(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("resourceclaims", resource_claim("c", namespace, class_name="late"))
    client.create("pods", claiming("p", namespace, "c"))
    told = wait_refused(client, namespace, "p")["message"]
    assert told.startswith("0/2 nodes are available: request gpus: device class late does not exist.")
    client.create("deviceclasses", device_class("late"))
    wait_bound(client, namespace, ["p"])


def test_a_pod_whose_claim_is_not_there_yet_is_held_in_silence(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("pods", claiming("p", namespace, "late"))
    client.create("resourceclaims", resource_claim("other", namespace))
    client.create("pods", claiming("q", namespace, "other"))
    wait_bound(client, namespace, ["q"])
    assert events_of(client, namespace, "p") == []
    client.create("resourceclaims", resource_claim("late", namespace))
    wait_bound(client, namespace, ["p"])


def test_tainted_devices_are_left_alone_until_the_rule_goes(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    taint = {"key": "broken", "effect": "NoSchedule"}
    rule = {"metadata": {"name": "r"}, "spec": {"deviceSelector": {"driver": DRIVER}, "taint": taint}}
    client.create("devicetaintrules", rule)
    client.create("resourceclaims", resource_claim("c", namespace))
    wait_until(lambda: bayplan.exit_code is None, "the scheduler runs")
    client.create("pods", claiming("p", namespace, "c"))
    assert "2 cannot allocate all claims" in wait_refused(client, namespace, "p")["message"]
    client.delete("devicetaintrules", "r")
    wait_bound(client, namespace, ["p"])


def test_a_claim_allocated_elsewhere_for_nobody_is_taken_away_and_allocated_anew(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("resourceclaims", resource_claim("c", namespace))
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}
    result = {"request": "gpus", "driver": DRIVER, "pool": "gone", "device": "gpu-0"}
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    client.patch(
        "resourceclaims", "c", {"status": {"allocation": allocation}}, namespace=namespace, subresource="status"
    )
    client.create("pods", claiming("p", namespace, "c"))
    assert wait_bound(client, namespace, ["p"]) == {"p": "n2"}
    assert devices_of([client.get("resourceclaims", "c", namespace)]) == [(DRIVER, "n2", "gpu-0")]


def test_a_claim_whose_parameters_have_white_space_gets_devices_and_keeps_its_text(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    claim = resource_claim("c", namespace)
    parameters = {"apiVersion": "gpu.example.com/v1", "kind": "GpuConfig", "note": "n" * 200}
    claim["spec"]["devices"]["config"] = [{"opaque": {"driver": DRIVER, "parameters": parameters}}]
    # As the API server stores it, the parameters are what was sent.
    spaced = json.dumps(claim, indent=1).encode()
    client.exchange("POST", path_of("resourceclaims", namespace=namespace), spaced)
    before = client.get("resourceclaims", "c", namespace)
    client.create("pods", claiming("p", namespace, "c"))
    wait_bound(client, namespace, ["p"])
    after = client.get("resourceclaims", "c", namespace)
    assert after["spec"] == before["spec"]
    assert after["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    # The same text has no finalizer.
    client.exchange("PUT", path_of("resourceclaims", "c", namespace=namespace), spaced)
    client.delete("resourceclaims", "c", namespace=namespace)
    assert client.list("resourceclaims", namespace) == []


def test_a_restart_in_the_middle_of_many_allocations_gives_no_device_away_twice(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    first = run_bayplan()
    client.create_all("nodes", [node(f"m{index}") for index in range(10)])
    client.create_all("resourceslices", [resource_slice(f"m{index}", 4) for index in range(10)])
    names = [f"p{index}" for index in range(40)]
    for name in names:
        create_with_own_claim(client, name, namespace)
    wait_until(lambda: len(nodes_bound(client, namespace)) > 5, "some are bound")
    first.kill()
    run_bayplan()
    wait_bound(client, namespace, names)
    claims = client.list("resourceclaims", namespace)
    taken = devices_of(claims)
    assert len(taken) == len(set(taken)) == len(names)
    nodes = nodes_bound(client, namespace)
    assert all(devices_of([claim])[0][1] == nodes[reserved_for(claim)[0]] for claim in claims)
