"""Gangs on a real API server: all of their pods start, or none, also when the scheduler dies in the middle."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.recorder import PodRecorder
from e2e.controlplane.waiting import wait_until
from e2e.gangs.objects import GROUPS, group, install_crd, member
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    assert_each_bound_once,
    nodes_bound,
    wait_bound,
    wait_event,
    wait_refused,
)

pytestmark = pytest.mark.controlplane

ONE_CPU = {"cpu": "1", "memory": "64Mi"}
NATIVE = "podgroups"


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    served, gates = ("scheduling.k8s.io/v1beta1",), ("GenericWorkload",)
    started = start_control_plane(ControlPlaneOptions(served=served, feature_gates=gates))
    install_crd(started)
    return started


@pytest.fixture
def client(plane: ControlPlane) -> Iterator[ApiClient]:
    yield plane.client
    plane.client.delete_all("pods", "default")
    for kind in (NATIVE, GROUPS):
        plane.client.delete_all(kind, "default")
    plane.client.delete_all("nodes")


def put_gang(client: ApiClient, kind: str, name: str, count: int, priority: str = "", **fields: object) -> list[str]:
    """Creates a gang that needs all its pods, of a CPU each, and returns their names.

    `priority` is the PriorityClass of all, `fields` are those of `pod`.
    """
    of_class: dict[str, Any] = {"priorityClassName": priority} if priority else {}
    made = group(name, "default", count)
    one: Callable[..., Object] = partial(member, namespace="default", of=name)
    if kind == NATIVE:
        policy = {"schedulingPolicy": {"gang": {"minCount": count}}}
        made |= {"apiVersion": "scheduling.k8s.io/v1beta1", "spec": {**policy, **of_class}}
        one = partial(pod, namespace="default", schedulingGroup={"podGroupName": name})
    client.create(kind, made)
    pods: list[Object] = [one(f"{name}-{index:03d}", requests=ONE_CPU, **of_class, **fields) for index in range(count)]
    client.create_all("pods", pods)
    return [each["metadata"]["name"] for each in pods]


@pytest.mark.parametrize("kind", [NATIVE, GROUPS])
def test_a_gang_starts_whole_or_waits_until_it_can(
    plane: ControlPlane, client: ApiClient, kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Events of the other kind's pods stay.
    short = "native" if kind == NATIVE else "crd"
    client.create("nodes", node("n1", cpu="6"))
    with BayplanProcess(tmp_path_factory.mktemp("gangs"), kubeconfig=install_bayplan(plane)) as process:
        process.wait_ready()
        fits = put_gang(client, kind, f"fits-{short}", 4)
        wait_bound(client, "default", fits)
        waits = put_gang(client, kind, f"waits-{short}", 3)
        told = [wait_refused(client, "default", name)["message"] for name in waits]
        verdict = "pod group is unschedulable, minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
        assert sorted((verdict in text, "1 Insufficient cpu" in text) for text in told) == [
            (False, True),
            (True, False),
            (True, False),
        ]
        wait_event(client, "default", waits[0], "FailedScheduling")
        assert nodes_bound(client, "default").keys() == set(fits)
        client.create("nodes", node("n2", cpu="1"))
        wait_bound(client, "default", [*fits, *waits])
        assert_alive_without_a_traceback(process)


@pytest.mark.parametrize("kind", [NATIVE, GROUPS])
def test_a_gang_evicts_whom_it_must_and_nobody_where_it_would_not_fit_even_so(
    plane: ControlPlane, client: ApiClient, kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for name, value in (("low", 1), ("high", 1000)):
        if name not in {each["metadata"]["name"] for each in client.list("priorityclasses")}:
            client.create("priorityclasses", {"metadata": {"name": name}, "value": value})
    client.create_all("nodes", [node(f"n{index}", cpu="2") for index in range(8)])
    # Without a controller that says more, a budget allows no disruption.
    budget = {
        "metadata": {"name": f"kept-{len(kind)}", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "kept"}}},
    }
    client.create("poddisruptionbudgets", budget)
    for app in ("kept", "free"):
        placed = partial(pod, scheduler="another", requests=ONE_CPU, labels={"app": app}, priorityClassName="low")
        client.create_all("pods", [placed(f"{app}-{at}", "default", node_name=f"n{at}") for at in range(8)])
    low = nodes_bound(client, "default").keys()
    with BayplanProcess(tmp_path_factory.mktemp("evicts"), kubeconfig=install_bayplan(plane)) as process:
        process.wait_ready()
        larger = put_gang(client, kind, f"larger-{len(kind)}", 17, "high")
        # Which of them had a place depends on the order in which they came.
        assert any("cannot be satisfied" in wait_refused(client, "default", name)["message"] for name in larger)
        assert nodes_bound(client, "default").keys() == low
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "gang"}},
        }
        apart = {"labels": {"app": "gang"}, "topologySpreadConstraints": [spread]}
        fits = put_gang(client, kind, f"one-each-{len(kind)}", 8, "high", **apart)
        wait_bound(client, "default", fits)
        assert nodes_bound(client, "default").keys() == {*fits, *(f"kept-{at}" for at in range(8))}
        assert_alive_without_a_traceback(process)


def test_a_gang_is_whole_after_the_scheduler_was_killed_in_the_middle_of_its_binds(
    plane: ControlPlane, client: ApiClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    count = 400
    client.create_all("nodes", [node(f"n{index}", cpu="100") for index in range(4)])
    names = put_gang(client, GROUPS, "large", count)
    uids = [each["metadata"]["uid"] for each in client.list("pods", "default")]
    kubeconfig = install_bayplan(plane)
    with PodRecorder(client) as recorder:
        with BayplanProcess(tmp_path_factory.mktemp("killed"), kubeconfig=kubeconfig) as first:
            wait_until(lambda: len(recorder.bound_at()) >= 10, "the first binds")
            first.kill()
        recorder.catch_up()
        assert 10 <= len(recorder.bound_at()) < count
        with BayplanProcess(tmp_path_factory.mktemp("restarted"), kubeconfig=kubeconfig) as second:
            wait_bound(client, "default", names)
            recorder.catch_up()
            assert_each_bound_once(recorder, uids)
            assert_alive_without_a_traceback(second)
