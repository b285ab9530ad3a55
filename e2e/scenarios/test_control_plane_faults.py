"""API server and etcd stop, die and forget while pods are bound; afterwards the cache equals what they hold."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, ApiError
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Process
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

pytestmark = pytest.mark.controlplane

NODES = 20
PODS = 300
STOPPED_SECONDS = 15.0


@contextmanager
def stopped(process: Process) -> Iterator[None]:
    """Keeps a process from running, as a machine that hangs does."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def put_nodes(client: ApiClient) -> None:
    """Room for 20 pods of 200m on each node, exactly."""
    client.create_all("nodes", [node(f"n{index}", cpu="4", pods="40") for index in range(NODES)])


def put_pods(client: ApiClient, namespace: str, prefix: str, count: int) -> dict[str, str]:
    """Creates pods of 200m and returns their UIDs by name."""
    pods = (pod(f"{prefix}-{index}", namespace, requests={"cpu": "200m"}) for index in range(count))
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in client.create_all("pods", pods)}


def assert_cache_is_truth(process: BayplanProcess) -> None:
    """Fails unless `/debug/cache` finds nothing that differs."""
    wait_metric(process, 0, "scheduler_cache_size", type="assumed_pods")
    status, text = process.get("/debug/cache")
    assert status == 200, text
    assert json.loads(text)["differences"] == {}, text


def assert_served(client: ApiClient) -> None:
    """Waits until the API server answers from etcd again."""

    def is_served() -> bool:
        try:
            client.list("nodes")
        except (ApiError, OSError, HTTPException):
            return False
        return True

    wait_until(is_served, "the API server")


def finish(
    client: ApiClient, namespace: str, recorder: PodRecorder, pods: dict[str, str], process: BayplanProcess
) -> None:
    """All pods are bound once, to nodes with room, and the cache knows it."""
    assert_served(client)
    wait_bound(client, namespace, pods)
    recorder.catch_up()
    assert_each_bound_once(recorder, pods.values())
    assert overcommitted(client) == {}
    wait_metric(process, 0, "scheduler_pending_pods")
    assert_cache_is_truth(process)
    assert_alive_without_a_traceback(process)


def outlive(fault: Callable[[], None], client: ApiClient, namespace: str, run_bayplan: RunBayplan) -> None:
    """Pods come before a fault that strikes while they are bound, and after it, and `finish` holds."""
    put_nodes(client)
    with PodRecorder(client) as recorder:
        pods = put_pods(client, namespace, "before", PODS)
        process = run_bayplan(configuration(qps=200), wait_ready=False)
        wait_until(lambda: len(recorder.bound_at()) >= 30, "the first binds", detail=process.log_tail)
        fault()
        assert_served(client)
        pods |= put_pods(client, namespace, "after", 80)
        finish(client, namespace, recorder, pods, process)


@pytest.mark.parametrize("part", ["kube-apiserver", "etcd"])
def test_a_part_of_the_control_plane_that_hangs_for_a_while_costs_nothing(
    control_plane: ControlPlane, client: ApiClient, namespace: str, run_bayplan: RunBayplan, part: str
) -> None:

    def stop_for_a_while() -> None:
        with stopped(control_plane.process(part)):
            time.sleep(STOPPED_SECONDS)

    outlive(stop_for_a_while, client, namespace, run_bayplan)


def test_an_etcd_that_is_killed_and_comes_back_costs_no_pod_and_binds_none_twice(
    control_plane: ControlPlane, client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    outlive(control_plane.restart_etcd, client, namespace, run_bayplan)


def test_what_happened_before_a_compaction_is_known_although_no_watch_can_tell(
    control_plane: ControlPlane, client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    """The API server forgets its history when it restarts, and etcd when it is compacted: watches get 410."""
    put_nodes(client)
    process = run_bayplan(configuration())
    pods = put_pods(client, namespace, "first", 100)
    wait_bound(client, namespace, pods)
    wait_metric(process, 0, "scheduler_cache_size", type="assumed_pods")
    with stopped(process):
        for index in range(50):
            client.delete("pods", f"first-{index}", namespace=namespace, grace_seconds=0)
        client.delete("nodes", "n0")
        client.create("nodes", node("n0", cpu="4", pods="40"))
        client.delete("nodes", "n1")
        control_plane.stop_apiserver()
        control_plane.compact_etcd()
        control_plane.start_apiserver()
        pods = put_pods(client, namespace, "second", 30)
    wait_bound(client, namespace, pods)
    wait_metric(process, NODES - 1, "scheduler_cache_size", type="nodes")
    wait_metric(process, 80, "scheduler_cache_size", type="pods")
    assert_cache_is_truth(process)
    assert metric_of_relists(process) > 0


def metric_of_relists(process: BayplanProcess) -> float:
    """How often any watch listed again."""
    lines = [line for line in process.metrics().splitlines() if line.startswith("bayplan_watch_relists_total{")]
    return sum(float(line.split()[-1]) for line in lines)


def test_the_comparison_tells_of_nothing_under_load_and_of_what_a_scheduler_does_not_know(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    put_nodes(client)
    process = run_bayplan(configuration(qps=100))
    pods = put_pods(client, namespace, "p", PODS)
    status, text = process.get("/debug/cache")
    assert (status, json.loads(text)["differences"]) == (200, {}), text
    assert json.loads(text)["compared"]["nodes"] == NODES
    wait_bound(client, namespace, pods)
    assert_cache_is_truth(process)
