"""What a tenant tries in order to have others evicted; each is tried on kube-scheduler as well."""

from collections.abc import Iterator

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.client import ApiClient, ApiError, Object
from e2e.controlplane.objects import node, pod, pod_of_class
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import (
    condition_of,
    configuration,
    end_pod,
    fill_nodes,
    nodes_bound,
    profile,
    terminating,
    wait_bound,
    wait_nominated,
    wait_refused,
)

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("priority_classes")]

TRIED = "tried"
"""The scheduler's name: none of the other tests has it."""
WRITING = {"create", "update", "patch", "*"}


@pytest.fixture(params=["bayplan", "kube-scheduler"])
def either(request: pytest.FixtureRequest, control_plane: ControlPlane, run_bayplan: RunBayplan) -> Iterator[None]:
    """One of the two schedulers, which serves pods that name `tried`."""
    if request.param == "bayplan":
        run_bayplan(configuration(profile(TRIED)))
        yield
        return
    process = control_plane.start_kube_scheduler(configuration(profile(TRIED)))
    try:
        yield
    finally:
        process.stop(10)


def _write_nomination(client: ApiClient, namespace: str, name: str, node_name: str | None) -> None:
    change: Object = {"status": {"nominatedNodeName": node_name}}
    client.patch("pods", name, change, namespace=namespace, subresource="status")


def _nobody_was_evicted_once_a_later_pod_is_judged(client: ApiClient, namespace: str) -> None:
    """Waits until the scheduler refused a pod that came later, so that it had its time to evict."""
    client.create("pods", pod_of_class("judged-later", namespace, "low", "100", scheduler=TRIED))
    wait_refused(client, namespace, "judged-later")
    assert terminating(client, namespace) == {}


def test_a_nomination_that_a_user_writes_evicts_nobody(client: ApiClient, namespace: str, either: None) -> None:
    fill_nodes(client, namespace, "n1")
    for name, gates in (("waits", []), ("gated", [{"name": "example.com/later"}])):
        client.create("pods", pod(name, namespace, scheduler=TRIED, requests={"cpu": "1"}, schedulingGates=gates))
        _write_nomination(client, namespace, name, "n1")
    _nobody_was_evicted_once_a_later_pod_is_judged(client, namespace)


def test_room_that_a_user_nominates_is_kept_from_pods_of_no_higher_priority_only(
    client: ApiClient, namespace: str, either: None
) -> None:
    client.create("pods", pod("keeps", namespace, scheduler=TRIED, requests={"cpu": "1", "memory": "64Gi"}))
    _write_nomination(client, namespace, "keeps", "n1")
    client.create("nodes", node("n1", cpu="1", memory="1Gi"))
    client.create("pods", pod_of_class("above", namespace, "low", scheduler=TRIED))
    assert wait_bound(client, namespace, ["above"]) == {"above": "n1"}


def test_a_gated_pod_keeps_room_by_a_nomination_that_a_user_writes_until_it_is_deleted(
    client: ApiClient, namespace: str, either: None
) -> None:
    gate = [{"name": "example.com/later"}]
    client.create("pods", pod("gated", namespace, scheduler=TRIED, requests={"cpu": "1"}, schedulingGates=gate))
    _write_nomination(client, namespace, "gated", "n1")
    client.create("pods", pod("other", namespace, scheduler=TRIED, requests={"cpu": "1"}))
    wait_refused(client, namespace, "other")
    client.create("nodes", node("n1", cpu="1"))

    def has_no_room() -> bool:
        return "Insufficient cpu" in condition_of(client.get("pods", "other", namespace))["message"]

    wait_until(has_no_room, "the room being kept")
    client.delete("pods", "gated", namespace=namespace)
    assert wait_bound(client, namespace, ["other"]) == {"other": "n1"}


def test_kubernetes_own_roles_for_tenants_write_no_nomination(client: ApiClient) -> None:
    for role in ("system:aggregate-to-admin", "system:aggregate-to-edit"):
        rules = client.get("clusterroles", role)["rules"]
        assert [each for each in rules if "pods/status" in each["resources"] and {*each["verbs"]} & WRITING] == []


def test_a_nomination_that_a_user_takes_away_costs_no_second_victim(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    run_bayplan(configuration(profile(TRIED)))
    fill_nodes(client, namespace, "n1", "n2", "n3")
    client.create("pods", pod_of_class("high", namespace, "high", scheduler=TRIED))
    (victim,) = wait_until(lambda: terminating(client, namespace), "the victim")
    _write_nomination(client, namespace, "high", None)
    client.create("pods", pod_of_class("judged-later", namespace, "low", "100", scheduler=TRIED))
    wait_refused(client, namespace, "judged-later")
    end_pod(client, namespace, victim)
    wait_bound(client, namespace, ["high"])
    assert terminating(client, namespace) == {}


@pytest.mark.parametrize("change", [{"priority": 1000}, {"priorityClassName": "high"}, {"schedulerName": "another"}])
def test_the_api_server_lets_nobody_change_what_a_pod_is_worth_or_who_schedules_it(
    client: ApiClient, namespace: str, change: Object
) -> None:
    client.create("pods", pod("mine", namespace, scheduler=TRIED, schedulingGates=[{"name": "example.com/later"}]))
    with pytest.raises(ApiError) as refused:
        client.patch("pods", "mine", {"spec": change}, namespace=namespace)
    assert refused.value.status in {403, 422}


def test_a_priority_without_a_class_is_refused_by_the_api_server(client: ApiClient, namespace: str) -> None:
    with pytest.raises(ApiError, match="the integer value of priority"):
        client.create("pods", pod("mine", namespace, scheduler=TRIED, priority=1000))


def test_a_running_pod_that_grows_evicts_nobody(client: ApiClient, namespace: str, either: None) -> None:
    client.create("nodes", node("n1", cpu="2"))
    for name, priority in (("grows", "high"), ("other", "low")):
        client.create("pods", pod_of_class(name, namespace, priority, scheduler=TRIED))
    wait_bound(client, namespace, ["grows", "other"])
    larger = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    merged = "application/strategic-merge-patch+json"
    client.patch("pods", "grows", larger, namespace=namespace, subresource="resize", content_type=merged)
    _nobody_was_evicted_once_a_later_pod_is_judged(client, namespace)
    assert nodes_bound(client, namespace) == {"grows": "n1", "other": "n1"}


@pytest.fixture
def budget(client: ApiClient, namespace: str) -> None:
    """A budget of pods labelled `app: kept`; asked for before the scheduler, which then lists it before it decides."""
    kept = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    client.create("poddisruptionbudgets", {"metadata": {"name": "kept", "namespace": namespace}, "spec": kept})


def test_a_budget_sends_preemption_to_those_without_one_and_stops_it_nowhere(
    client: ApiClient, namespace: str, budget: None, either: None
) -> None:
    fill_nodes(client, namespace, "n1", labels={"app": "kept"})
    fill_nodes(client, namespace, "n2")
    for name, node_name in (("first", "n2"), ("second", "n1")):
        client.create("pods", pod_of_class(name, namespace, "high", scheduler=TRIED))
        wait_nominated(client, namespace, name, node_name)
    victims = {"low-n1-0", "low-n2-0"}
    wait_until(lambda: set(terminating(client, namespace)) == victims, "the end of both")
