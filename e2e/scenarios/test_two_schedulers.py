"""Beside kube-scheduler on the same nodes: what both decide at one moment is rejected by kubelets, and seen."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.kubelet_admission import KubeletAdmission
from e2e.scenarios.outcomes import (
    WAIT_SECONDS,
    assert_alive_without_a_traceback,
    configuration,
    profile,
    wait_metric,
)

pytestmark = pytest.mark.controlplane

NODES, CPUS = 10, 4
OURS, THEIRS = "bayplan", "default-scheduler"


def web(name: str, namespace: str, scheduler: str) -> Object:
    return pod(name, namespace, scheduler=scheduler, requests={"cpu": "1"})


def replaces(client: ApiClient, namespace: str) -> Callable[[Object], None]:
    """Creates another pod of the same scheduler for each that failed, at once, as a ReplicaSet does."""
    serial = itertools.count()

    def replace(failed: Object) -> None:
        client.create("pods", web(f"again-{next(serial)}", namespace, failed["spec"]["schedulerName"]))

    return replace


def test_what_two_schedulers_fight_for_is_filled_by_neither_too_much_and_every_rejection_is_seen(
    control_plane: ControlPlane, client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    room = {f"n{index}": CPUS for index in range(NODES)}
    client.create_all("nodes", [node(name, cpu=str(CPUS)) for name in room])
    process = run_bayplan()
    other = control_plane.start_kube_scheduler(configuration(profile(THEIRS, plugins=without_scores())))
    try:
        with KubeletAdmission(client, namespace, room, replaces(client, namespace)) as kubelets:
            documents = [web(f"{kind}-{index}", namespace, kind) for index in range(30) for kind in (OURS, THEIRS)]
            client.create_all("pods", documents)
            wait_until(
                lambda: running(client, namespace) == room,
                "the room being used, and no more than that",
                timeout_seconds=WAIT_SECONDS,
                detail=lambda: str(running(client, namespace)),
            )
            wait_until(
                lambda: log_of(process) == {found["metadata"]["name"] for found in kubelets.of_scheduler(OURS)},
                "every rejection of a pod of ours being logged",
            )
            wait_metric(process, len(kubelets.of_scheduler(OURS)), "bayplan_kubelet_rejections_total")
    finally:
        other.stop(10)
    assert_alive_without_a_traceback(process)


def running(client: ApiClient, namespace: str) -> Counter[str]:
    """How many pods that have not failed are on each node, of one CPU each."""
    pods = client.list("pods", namespace, fieldSelector="spec.nodeName!=,status.phase!=Failed")
    return Counter(found["spec"]["nodeName"] for found in pods)


def without_scores() -> Object:
    """Scores by nothing: kube-scheduler goes for any node, bayplan for the fullest."""
    return {"score": {"disabled": [{"name": "*"}]}}


def log_of(process: BayplanProcess) -> set[str]:
    """The names of the pods that the log says were rejected."""
    lines = [line for line in process.log().splitlines() if "kubelet rejected a pod" in line]
    return {line.split("pod='")[1].split("'")[0].partition("/")[2] for line in lines}


@pytest.fixture
def liar(client: ApiClient, namespace: str) -> Iterator[KubeletAdmission]:
    """A node that says it has a CPU more than its kubelet has, the first choice of who packs; and an honest one."""
    client.create_all("nodes", [node("liar", cpu="2"), node("honest", cpu="4")])
    client.create("pods", pod("running", namespace, scheduler="another", requests={"cpu": "1"}, node_name="liar"))
    with KubeletAdmission(client, namespace, {"liar": 1, "honest": 4}, replaces(client, namespace)) as kubelets:
        wait_until(lambda: kubelets.admitted["liar"] == 1, "the pod that was there running")
        yield kubelets


def test_replacements_do_not_pile_up_on_a_node_that_rejects_them_if_it_is_to_be_backed_off(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan, liar: KubeletAdmission
) -> None:
    process = run_bayplan(arguments=("--kubelet-rejection-backoff", "3600"))
    client.create("pods", web("web", namespace, OURS))
    wait_until(lambda: liar.admitted["honest"] == 1, "the replacement running", timeout_seconds=WAIT_SECONDS)
    assert [found["metadata"]["name"] for found in liar.rejected] == ["web"]
    wait_metric(process, 1, "bayplan_kubelet_rejections_total", reason="OutOfcpu")
    assert client.get("nodes", "liar")["spec"].get("taints") is None
    assert_alive_without_a_traceback(process)


def test_without_being_asked_it_decides_on_such_a_node_as_kube_scheduler_does(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan, liar: KubeletAdmission
) -> None:
    process = run_bayplan()
    client.create("pods", web("web", namespace, OURS))
    wait_until(
        lambda: len(liar.rejected) >= 5,
        "rejection after rejection",
        timeout_seconds=WAIT_SECONDS,
        detail=lambda: f"{len(liar.rejected)} rejected, admitted {dict(liar.admitted)}",
    )
    assert liar.admitted["honest"] == 0
    assert_alive_without_a_traceback(process)
