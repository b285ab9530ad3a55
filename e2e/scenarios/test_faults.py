"""Between bayplan and the API server things break: answers, watches, and what happens while nobody watches."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.installation import NAMESPACE, SERVICE_ACCOUNT
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.recorder import PodRecorder
from e2e.controlplane.service_account import request_token
from e2e.scenarios.faulty_proxy import FaultyProxy, Match
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    assert_each_bound_once,
    configuration,
    metric,
    overcommitted,
    wait_bound,
    wait_metric,
    wait_refused,
)
from tests.faults.faults import CutLine, DropReply, Fault, HalfReply, Refuse, Reset, StreamError

pytestmark = pytest.mark.controlplane

ONE_CPU = {"cpu": "1"}
RESYNC_SECONDS = 60.0
STOP_SECONDS = 10.0


def is_bind(request: web.BaseRequest) -> bool:
    return request.path.endswith("/binding")


def watches_nodes(request: web.BaseRequest) -> bool:
    return "watch" in request.query and request.path == "/api/v1/nodes"


def watches_assigned_pods(request: web.BaseRequest) -> bool:
    return "watch" in request.query and "spec.nodeName!=" in request.query.get("fieldSelector", "")


def watches_pending_pods(request: web.BaseRequest) -> bool:
    return "watch" in request.query and "spec.nodeName=," in request.query.get("fieldSelector", "")


@pytest.fixture(scope="module", autouse=True)
def unwatched(
    control_plane: ControlPlane, bayplan_identity: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BayplanProcess]:
    """A scheduler that missed two deletions: of a pod in its queue, and of one it had bound."""
    client, directory = control_plane.client, tmp_path_factory.mktemp("unwatched")
    taint = {"key": "unwatched", "effect": "NoSchedule"}

    def ours(name: str, cpu: str) -> Object:
        tolerations = [{"key": "unwatched", "operator": "Exists"}]
        return pod(name, "default", scheduler="unwatched", requests={"cpu": cpu}, tolerations=tolerations)

    with FaultyProxy(control_plane) as proxy:
        kubeconfig = proxy.kubeconfig(directory / "kubeconfig", request_token(client, NAMESPACE, SERVICE_ACCOUNT))
        flags = ["--scheduler-name", "unwatched"]
        process = BayplanProcess(directory, config=None, kubeconfig=kubeconfig, arguments=flags)
        try:
            process.wait_ready()
            client.create("nodes", node("unwatched", taints=[taint]))
            client.create("pods", ours("waiting", "100"))
            wait_refused(client, "default", "waiting")
            with proxy.failing(Refuse(503), watches_pending_pods):
                client.delete("pods", "waiting", namespace="default", grace_seconds=0)
                proxy.inject(StreamError(410), watches_pending_pods)
            with proxy.failing(Refuse(503), watches_assigned_pods):
                client.create("pods", ours("brief", "1"))
                wait_bound(client, "default", ["brief"])
                client.delete("pods", "brief", namespace="default", grace_seconds=0)
                proxy.inject(StreamError(410), watches_assigned_pods)
            client.delete("nodes", "unwatched")
            assert metric(process, "scheduler_cache_size", type="assumed_pods") == 1
            yield process
        finally:
            process.stop(STOP_SECONDS)


@pytest.fixture
def proxy(control_plane: ControlPlane) -> Iterator[FaultyProxy]:
    with FaultyProxy(control_plane) as running:
        yield running


@pytest.fixture
def proxied(
    client: ApiClient, bayplan_identity: Path, proxy: FaultyProxy, run_bayplan: RunBayplan, tmp_path: Path
) -> BayplanProcess:
    """A ready scheduler that reaches the API server through `proxy` only."""
    token = request_token(client, NAMESPACE, SERVICE_ACCOUNT)
    return run_bayplan(configuration(), kubeconfig=proxy.kubeconfig(tmp_path / "proxied", token))


@pytest.mark.parametrize(
    "fault",
    [DropReply(), HalfReply(), Reset(), Refuse(500), Refuse(503), Refuse(429, retry_after=1)],
    ids=["answer-lost", "answer-cut", "request-lost", "500", "503", "429"],
)
def test_binds_of_which_the_answer_is_lost_or_bad_happen_exactly_once(
    client: ApiClient, namespace: str, proxy: FaultyProxy, proxied: BayplanProcess, fault: Fault
) -> None:
    # Pods fill the nodes to the last milli-CPU: an assumption given up too early, or never, would show.
    client.create_all("nodes", [node(f"n{index}", cpu="1") for index in range(2)])
    names = [f"p{index}" for index in range(20)]
    with PodRecorder(client) as recorder:
        proxy.inject(fault, is_bind, times=5)
        created = client.create_all("pods", [pod(name, namespace) for name in names])
        wait_bound(client, namespace, names)
        recorder.catch_up()
        assert_each_bound_once(recorder, [one["metadata"]["uid"] for one in created])
    assert overcommitted(client) == {}
    wait_metric(proxied, 0, "scheduler_pending_pods")
    assert_alive_without_a_traceback(proxied)


@pytest.mark.parametrize("watches", [watches_nodes, watches_assigned_pods, watches_pending_pods])
def test_a_watch_that_breaks_in_any_way_is_taken_up_again(
    client: ApiClient, namespace: str, proxy: FaultyProxy, proxied: BayplanProcess, watches: Match
) -> None:
    faults: list[Fault] = [StreamError(410), Refuse(503), CutLine(), StreamError(500)]
    for number, fault in enumerate(faults):
        small, large = f"small-{number}", f"large-{number}"
        client.create("nodes", node(small, cpu="1"))
        client.create("pods", pod(f"first-{number}", namespace, requests=ONE_CPU))
        wait_bound(client, namespace, [f"first-{number}"])
        wait_metric(proxied, 0, "scheduler_cache_size", type="assumed_pods")
        proxy.inject(fault, watches)
        proxy.cut(watches)
        client.create("nodes", node(large, cpu="1"))
        client.create("pods", pod(f"second-{number}", namespace, requests=ONE_CPU))
        assert wait_bound(client, namespace, [f"second-{number}"]) == {f"second-{number}": large}
        client.delete("pods", f"first-{number}", namespace=namespace, grace_seconds=0)
        client.create("pods", pod(f"third-{number}", namespace, requests=ONE_CPU))
        assert wait_bound(client, namespace, [f"third-{number}"]) == {f"third-{number}": small}
    # kopf logs what ends it, and is started again.
    assert_alive_without_a_traceback(proxied, but_of="kopf")


def test_room_freed_and_nodes_removed_while_nobody_watched_are_noticed(
    client: ApiClient, namespace: str, proxy: FaultyProxy, proxied: BayplanProcess
) -> None:
    def watches(request: web.BaseRequest) -> bool:
        return watches_assigned_pods(request) or watches_nodes(request)

    client.create_all("nodes", [node("n1", cpu="1"), node("n2", cpu="8", unschedulable=True)])
    client.create("pods", pod("leaves", namespace, requests=ONE_CPU))
    wait_bound(client, namespace, ["leaves"])
    wait_metric(proxied, 0, "scheduler_cache_size", type="assumed_pods")
    with proxy.failing(Refuse(503), watches):
        client.delete("pods", "leaves", namespace=namespace, grace_seconds=0)
        client.delete("nodes", "n2")
        proxy.inject(StreamError(410), watches, times=2)
    client.create("pods", pod("comes", namespace, requests=ONE_CPU))
    assert wait_bound(client, namespace, ["comes"]) == {"comes": "n1"}
    wait_metric(proxied, 1, "scheduler_cache_size", type="nodes")
    assert_alive_without_a_traceback(proxied)


def test_pods_that_came_and_went_while_nobody_watched_leave_the_queue_and_the_node(unwatched: BayplanProcess) -> None:
    """Last in the file: what was missed at its start is found within a minute."""
    wait_metric(unwatched, 0, "scheduler_cache_size", type="assumed_pods")
    wait_metric(unwatched, 0, "scheduler_pending_pods", timeout_seconds=RESYNC_SECONDS + 20)
    assert_alive_without_a_traceback(unwatched)
