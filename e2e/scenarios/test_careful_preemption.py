"""bayplan's own arguments of preemption, and extenders' say in it, on a real API server."""

import time

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.objects import pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.extender_server import SCHEDULERS, both_schedulers
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    configuration,
    fill_nodes,
    profile,
    terminating,
    wait_nominated,
    wait_refused,
)

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("priority_classes")]

STRICT = "no victims can be found without violating a PodDisruptionBudget"


def _preempting(**own: object) -> Object:
    args = {"name": "DefaultPreemption", "args": {"bayplan.io": own}}
    return configuration(profile(pluginConfig=[args]))


def _fill(client: ApiClient, namespace: str, *names: str) -> None:
    """Nodes of one CPU, each full of a low pod that runs, as far as anybody can tell."""
    running = _status(phase="Running", conditions=[{"type": "Ready", "status": "True"}])
    for name in fill_nodes(client, namespace, *names, labels={"app": "a"}):
        client.patch("pods", name, running, namespace=namespace, subresource="status")


def _status(**status: object) -> Object:
    return {"status": status}


def _high(client: ApiClient, namespace: str, name: str = "high", **fields: object) -> None:
    document = pod(name, namespace, requests={"cpu": "1"}, priorityClassName="high", **fields)  # type: ignore[arg-type]  # names of the spec, or of the builder
    client.create("pods", document)


def _budget(client: ApiClient, namespace: str, allowed: int) -> None:
    """What the budget allows as its controller would say it; none runs here."""
    status = {"disruptionsAllowed": allowed, "observedGeneration": 1, "currentHealthy": 1, "expectedPods": 1}
    client.patch("poddisruptionbudgets", "budget", _status(**status), namespace=namespace, subresource="status")


def test_a_strict_budget_keeps_its_pod_until_it_allows_an_eviction_which_the_api_server_then_counts(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    _fill(client, namespace, "n1")
    budget = {
        "metadata": {"name": "budget", "namespace": namespace},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    }
    client.create("poddisruptionbudgets", budget)
    _budget(client, namespace, 0)
    bayplan = run_bayplan(_preempting(pdbPolicy="Strict"))
    _high(client, namespace)
    assert STRICT in wait_refused(client, namespace, "high")["message"]
    assert "deletionTimestamp" not in client.get("pods", "low-n1-0", namespace)["metadata"]
    # Nothing but the budget changes, which wakes no pod: it looks again by itself.
    _budget(client, namespace, 1)
    wait_nominated(client, namespace, "high", "n1")
    wait_until(
        lambda: any(
            condition["type"] == "DisruptionTarget" and condition["reason"] == "PreemptionByScheduler"
            for condition in client.get("pods", "low-n1-0", namespace)["status"]["conditions"]
        ),
        "the victim to be told why",
    )
    assert "deletionTimestamp" in client.get("pods", "low-n1-0", namespace)["metadata"]
    # Only the Eviction API counts what a budget allows; a DELETE would not have.
    counted = client.get("poddisruptionbudgets", "budget", namespace)["status"]
    assert counted["disruptionsAllowed"] == 0
    assert list(counted["disruptedPods"]) == ["low-n1-0"]
    assert_alive_without_a_traceback(bayplan)


def test_a_pod_that_may_not_preempt_yet_does_so_when_its_delay_is_over_and_nothing_else_happens(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    _fill(client, namespace, "n1")
    bayplan = run_bayplan(_preempting(preemptionDelaySeconds=6))
    started = time.monotonic()
    _high(client, namespace)
    assert "preemptionDelaySeconds=6" in wait_refused(client, namespace, "high")["message"]
    wait_nominated(client, namespace, "high", "n1")
    # The API server cuts creation times to whole seconds.
    assert time.monotonic() - started >= 5
    assert_alive_without_a_traceback(bayplan)


def test_a_pod_preempts_as_soon_as_a_victim_has_run_long_enough(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    _fill(client, namespace, "n1")
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    client.patch("pods", "low-n1-0", _status(startTime=now), namespace=namespace, subresource="status")
    started = time.monotonic()
    bayplan = run_bayplan(_preempting(minimumRuntimeSeconds=12))
    _high(client, namespace)
    assert "No preemption victims found" in wait_refused(client, namespace, "high")["message"]
    wait_nominated(client, namespace, "high", "n1")
    assert time.monotonic() - started >= 11
    assert_alive_without_a_traceback(bayplan)


def _last_node(_: str, body: Object) -> object:
    """Leaves of the candidates only the one whose name comes last, with its victims."""
    told = body["NodeNameToMetaVictims"]
    if told is None:
        told = {
            name: {**victims, "Pods": [{"UID": each["metadata"]["uid"]} for each in victims["Pods"]]}
            for name, victims in body["NodeNameToVictims"].items()
        }
    last = max(told)
    return {"NodeNameToMetaVictims": {last: told[last]}}


@pytest.mark.parametrize("capable", [True, False], ids=["by-uid", "whole-pods"])
def test_kube_scheduler_and_bayplan_evict_where_the_same_extender_lets_them(
    control_plane: ControlPlane, namespace: str, run_bayplan: RunBayplan, *, capable: bool
) -> None:
    client = control_plane.client
    for scheduler in SCHEDULERS:
        names = [f"{scheduler}-{index}" for index in (1, 2, 3)]
        _fill(client, namespace, *names)
        for name in names:
            client.patch("nodes", name, {"metadata": {"labels": {"for": scheduler}}})
    with both_schedulers(control_plane, run_bayplan, _last_node, preemptVerb="preempt", nodeCacheCapable=capable):
        for scheduler in SCHEDULERS:
            _high(client, namespace, f"high-{scheduler}", scheduler=scheduler, nodeSelector={"for": scheduler})
        for scheduler in SCHEDULERS:
            wait_nominated(client, namespace, f"high-{scheduler}", f"{scheduler}-3")
        wait_until(
            lambda: terminating(client, namespace).keys() == {"low-bayplan-3-0", "low-reference-3-0"},
            "both victims to be terminating, and no others",
        )
