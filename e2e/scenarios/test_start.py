"""What a scheduler does with what it finds when it starts, and with its profiles."""

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.client import ApiClient
from e2e.controlplane.objects import node, pod
from e2e.scenarios.outcomes import configuration, node_of, nodes_bound, profile, wait_bound, wait_event

pytestmark = pytest.mark.controlplane

FINALIZER = "example.com/hold"


def test_each_profile_schedules_its_own_pods_by_its_own_score(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    least = {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1}]}}
    only_fit = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}}
    most = {"scoringStrategy": {**least["scoringStrategy"], "type": "MostAllocated"}}
    run_bayplan(
        configuration(
            profile("packing", plugins=only_fit, pluginConfig=[{"name": "NodeResourcesFit", "args": most}]),
            profile("spreading", plugins=only_fit, pluginConfig=[{"name": "NodeResourcesFit", "args": least}]),
        ),
        by_command=True,
    )
    client.create_all("nodes", [node("empty"), node("used")])
    client.create("pods", pod("user", namespace, scheduler="another", node_name="used", requests={"cpu": "1"}))
    client.create("pods", pod("packed", namespace, scheduler="packing"))
    client.create("pods", pod("spread", namespace, scheduler="spreading"))
    client.create("pods", pod("unknown", namespace, scheduler="bayplan"))
    assert wait_bound(client, namespace, ["packed", "spread"]) == {"packed": "used", "spread": "empty"}
    assert wait_event(client, namespace, "spread", "Scheduled")["reportingController"] == "spreading"
    assert node_of(client, namespace, "unknown") == ""


@pytest.mark.parametrize("attempt", range(3))
def test_pods_that_waited_for_the_start_are_bound_by_priority(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan, priority_classes: None, attempt: int
) -> None:
    client.create("nodes", node("n1", cpu="5"))
    requests = {"cpu": "1"}
    low, high = [f"a-low-{index}" for index in range(20)], [f"z-high-{index}" for index in range(5)]
    for names, priority in ((low, "low"), (high, "high")):
        client.create_all(
            "pods", [pod(name, namespace, requests=requests, priorityClassName=priority) for name in names]
        )
    run_bayplan(by_command=True)
    wait_bound(client, namespace, high)
    assert sorted(nodes_bound(client, namespace)) == high


def test_a_pod_deleted_before_the_start_but_held_by_a_finalizer_is_only_reported(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    client.create("nodes", node("n1"))
    leaving = pod("leaving", namespace)
    leaving["metadata"]["finalizers"] = [FINALIZER]
    client.create("pods", leaving)
    client.delete("pods", "leaving", namespace=namespace)
    try:
        run_bayplan()
        event = wait_event(client, namespace, "leaving", "FailedScheduling")
        assert event["note"] == f"skip schedule deleting pod: {namespace}/leaving"
        assert node_of(client, namespace, "leaving") == ""
    finally:
        client.patch("pods", "leaving", {"metadata": {"finalizers": None}}, namespace=namespace)
