"""The API server is not there, goes away, or loses nodes while pods are bound."""

import time
from datetime import datetime
from functools import partial
from itertools import pairwise

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.client import ApiClient
from e2e.controlplane.health import is_healthy
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.recorder import PodRecorder
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    assert_each_bound_once,
    configuration,
    overcommitted,
    wait_bound,
    wait_metric,
)

# How soon an outage and its end are noticed is judged, which other scenarios on the machine prolong.
pytestmark = [pytest.mark.controlplane, pytest.mark.alone]

EXIT_SECONDS = 10.0
OUTAGE_SECONDS = 26.0
# Four seconds between two tries, and some for a machine that is busy; it was thirty.
LONGEST_WAIT_SECONDS = 10.0


def put_pods(client: ApiClient, namespace: str, prefix: str, count: int) -> dict[str, str]:
    """Creates small pods and returns their UIDs by name."""
    created = client.create_all("pods", [pod(f"{prefix}-{index}", namespace) for index in range(count)])
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in created}


def test_bayplan_started_before_the_api_server_waits_and_then_works(
    control_plane: ControlPlane, client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    client.create("nodes", node("n1"))
    pods = put_pods(client, namespace, "early", 5)
    control_plane.stop_apiserver()
    try:
        patient, impatient = (run_bayplan(configuration(), wait_ready=False) for _ in range(2))
        for one in (patient, impatient):
            wait_until(partial(is_healthy, one.http_port, path="/livez"), "liveness", detail=one.log_tail)
        assert patient.get("/readyz")[0] == 500
        impatient.terminate()
        assert impatient.wait(EXIT_SECONDS) == 0, impatient.log_tail()
    finally:
        control_plane.start_apiserver()
    patient.wait_ready()
    wait_bound(client, namespace, pods)
    assert_alive_without_a_traceback(patient)


def test_an_api_server_that_is_killed_and_comes_back_costs_no_pod_and_binds_none_twice(
    control_plane: ControlPlane, client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    client.create_all("nodes", [node(f"n{index}", cpu="4", pods="40") for index in range(20)])
    with PodRecorder(client) as recorder:
        pods = put_pods(client, namespace, "before", 300)
        process = run_bayplan(configuration(), wait_ready=False)
        wait_until(lambda: len(recorder.bound_at()) >= 50, "the first binds", detail=process.log_tail)
        control_plane.restart_apiserver()
        pods |= put_pods(client, namespace, "after", 100)
        wait_bound(client, namespace, pods)
        recorder.catch_up()
        assert_each_bound_once(recorder, pods.values())
    assert overcommitted(client) == {}
    assert_alive_without_a_traceback(process)
    wait_metric(process, 0, "scheduler_pending_pods")


def test_what_changes_at_the_end_of_a_long_outage_is_heard_of_by_every_watch_within_seconds(
    control_plane: ControlPlane, client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    client.create("nodes", node("small", cpu="1"))
    process = run_bayplan(configuration(), arguments=["-v", "4"])
    wait_bound(client, namespace, put_pods(client, namespace, "before", 1))
    control_plane.stop_apiserver()
    try:
        # Long enough for every wait to have grown as long as it may, and to be seen where it grows longer.
        time.sleep(OUTAGE_SECONDS)
        away_until = time.time()
    finally:
        control_plane.start_apiserver()
    back = time.time()
    client.create("nodes", node("large", cpu="8"))
    client.create("pods", pod("needs-large", namespace, requests={"cpu": "4"}))
    wait_bound(client, namespace, ["needs-large"])
    waits = _waits_between_tries(process.log(), away_until)
    assert waits
    assert max(waits) <= LONGEST_WAIT_SECONDS
    print(f"bound {time.time() - back:.1f} s after the API server's return")
    assert_alive_without_a_traceback(process)


def _waits_between_tries(log: str, until: float) -> list[float]:
    """The seconds between one try and the next of each watch, and those since its last.

    `until` then nobody listened, so a try took no time.
    """
    tries: dict[str, list[float]] = {}
    for line in log.splitlines():
        if " watch interrupted watch=" in line:
            moment = datetime.strptime(" ".join(line.split()[:2]), "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp()
            if moment <= until:
                tries.setdefault(line.partition("watch=")[2].split()[0], []).append(moment)
    return [after - before for moments in tries.values() for before, after in pairwise((*moments, until))]


def test_sigterm_while_the_api_server_is_away_ends_the_process_in_time(
    control_plane: ControlPlane, client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    client.create("nodes", node("n1"))
    process = run_bayplan(configuration())
    wait_bound(client, namespace, put_pods(client, namespace, "first", 1))
    control_plane.stop_apiserver()
    try:
        process.terminate()
        assert process.wait(EXIT_SECONDS) == 0, process.log_tail()
        assert "Traceback" not in process.log()
    finally:
        control_plane.start_apiserver()


def test_no_pod_is_bound_to_a_node_that_was_deleted(client: ApiClient, namespace: str, run_bayplan: RunBayplan) -> None:
    client.create_all("nodes", [node(f"n{index}", cpu="4") for index in range(10)])
    process = run_bayplan(configuration())
    gone: dict[str, float] = {}
    pods: dict[str, str] = {}
    with PodRecorder(client) as recorder:
        for index in range(9):
            pods |= put_pods(client, namespace, f"batch-{index}", 40)
            client.delete("nodes", f"n{index}")
            gone[f"n{index}"] = time.monotonic()
            client.create("nodes", node(f"m{index}", cpu="4"))
        wait_until(lambda: len(recorder.bound_at()) == len(pods), "all binds", detail=process.log_tail)
        events = recorder.catch_up()
        assert_each_bound_once(recorder, pods.values())
        bound_at = recorder.bound_at()
    # A second is for the watch event on its way; a bind that has left cannot be called back.
    late = {one.key: one.node for one in events if one.node in gone and bound_at[one.key] > gone[one.node] + 1}
    assert late == {}
    assert_alive_without_a_traceback(process)


def test_a_deleted_node_that_comes_back_is_used_again_with_the_pods_it_still_has(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    client.create("nodes", node("n1", cpu="2"))
    process = run_bayplan(configuration())
    client.create("pods", pod("stays", namespace, requests={"cpu": "1"}))
    wait_bound(client, namespace, ["stays"])
    client.delete("nodes", "n1")
    client.create("nodes", node("n1", cpu="2"))
    for index in range(2):
        client.create("pods", pod(f"more-{index}", namespace, requests={"cpu": "1"}))
    wait_until(lambda: len(client.list("pods", namespace, fieldSelector="spec.nodeName!=")) == 2, "one more bind")
    wait_metric(process, 1, "scheduler_pending_pods", queue="unschedulable")
    assert overcommitted(client) == {}
