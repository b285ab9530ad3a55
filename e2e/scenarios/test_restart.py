"""Ends and new starts: binds under way are finished, and no pod is lost, bound twice, or squeezed in."""

import time

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.client import ApiClient, Objects
from e2e.controlplane.objects import node, pod
from e2e.controlplane.recorder import PodRecorder
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    assert_each_bound_once,
    condition_of,
    configuration,
    overcommitted,
)

pytestmark = pytest.mark.controlplane

EXIT_SECONDS = 10.0
NODES = 100
REQUESTS = {"cpu": "100m", "memory": "64Mi"}


def put_nodes(client: ApiClient, count: int = NODES) -> None:
    """Room for 20 pods on each node, of which 20 fit exactly by CPU."""
    client.create_all("nodes", [node(f"n{index:03}", cpu="2", memory="4Gi") for index in range(count)])


def put_pods(client: ApiClient, namespace: str, count: int, first: int = 0) -> list[str]:
    """Creates pods and returns their UIDs."""
    names = (f"p{index:04}" for index in range(first, first + count))
    created = client.create_all("pods", (pod(name, namespace, requests=REQUESTS) for name in names))
    return [one["metadata"]["uid"] for one in created]


def wait_until_bound(recorder: PodRecorder, count: int) -> None:
    wait_until(lambda: len(recorder.bound_at()) >= count, f"binding of {count} pods")


def unfinished(pods: Objects) -> list[str]:
    """The pods that are neither bound with a true condition nor untouched."""
    return [
        found["metadata"]["name"]
        for found in pods
        if condition_of(found).get("status", "") != ("True" if found["spec"].get("nodeName") else "")
    ]


@pytest.mark.alone
def test_sigterm_finishes_the_binds_under_way_and_a_new_start_does_the_rest(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    put_nodes(client, NODES + 10)
    uids = put_pods(client, namespace, 2000)
    with PodRecorder(client) as recorder:
        first = run_bayplan(configuration(), wait_ready=False, by_command=True)
        wait_until_bound(recorder, 50)
        started = time.monotonic()
        first.terminate()
        assert first.wait(EXIT_SECONDS) == 0, first.log_tail()
        assert time.monotonic() - started < EXIT_SECONDS
        assert "Traceback" not in first.log()
        assert "left=" not in first.log()

        recorder.catch_up()
        bound = set(recorder.bound_at())
        # All that were decided are bound, which may be every one on a fast machine.
        assert 50 <= len(bound) <= len(uids)
        assert unfinished(client.list("pods", namespace)) == []
        scheduled = {
            f"{namespace}/{event['regarding']['name']}"
            for event in client.list("events", namespace)
            if event["reason"] == "Scheduled"
        }
        assert scheduled == bound

        uids += put_pods(client, namespace, 200, first=2000)
        second = run_bayplan(configuration(), wait_ready=False)
        wait_until_bound(recorder, len(uids))
        recorder.catch_up()
        assert_each_bound_once(recorder, uids)
        assert_alive_without_a_traceback(second)
    assert overcommitted(client) == {}


def test_2000_pods_are_bound_once_each_although_the_scheduler_is_killed_in_the_middle(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    put_nodes(client)
    uids = put_pods(client, namespace, 2000)
    with PodRecorder(client) as recorder:
        for bound in (200, 1000):
            process = run_bayplan(configuration(), wait_ready=False)
            wait_until_bound(recorder, bound)
            process.kill()
            process.wait(EXIT_SECONDS)
        last = run_bayplan(configuration(), wait_ready=False)
        wait_until_bound(recorder, len(uids))
        recorder.catch_up()
        assert_each_bound_once(recorder, uids)
        assert_alive_without_a_traceback(last)
    # The pods fill the nodes to the last milli-CPU, so one counted twice would have left another without room.
    assert overcommitted(client) == {}
