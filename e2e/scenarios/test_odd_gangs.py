"""Groups that are wrong, gone or somebody else's: their pods wait, and nobody else does."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from e2e.conftest import StartControlPlane
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object, path_of
from e2e.controlplane.installation import NAMESPACE, SERVICE_ACCOUNT, install_bayplan
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.service_account import request_token
from e2e.controlplane.waiting import wait_until
from e2e.gangs.objects import GROUPS, group, install_crd, member
from e2e.scenarios.faulty_proxy import FaultyProxy
from e2e.scenarios.outcomes import assert_alive_without_a_traceback, nodes_bound, wait_bound, wait_refused
from tests.faults.faults import Refuse

pytestmark = pytest.mark.controlplane

ONE_CPU = {"cpu": "1"}
NATIVE = "podgroups"
MOST = 2**31 - 1
FOREIGN = {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Elsewhere", "message": "by another"}


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    """A control plane that serves groups of both kinds."""
    served, gates = ("scheduling.k8s.io/v1beta1",), ("GenericWorkload",)
    # Its finalizers no controller would take off here.
    off = ("PodGroupProtection",)
    started = start_control_plane(ControlPlaneOptions(served=served, feature_gates=gates, disable_admission=off))
    install_crd(started)
    return started


@pytest.fixture
def client(plane: ControlPlane) -> Iterator[ApiClient]:
    yield plane.client
    plane.client.delete_all("pods", "default")
    for kind in (NATIVE, GROUPS):
        plane.client.delete_all(kind, "default")
    plane.client.delete_all("nodes")


def set_status(client: ApiClient, resource: str, name: str, status: Object) -> None:
    path = path_of(resource, name, "status", namespace="default")
    client.request("PATCH", path, {"status": status}, "application/merge-patch+json")


def native_group(name: str, least: int) -> Object:
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def native_member(name: str, of: str) -> Object:
    return pod(name, "default", requests=ONE_CPU, schedulingGroup={"podGroupName": of})


def crd_group(name: str, least: int) -> Object:
    return group(name, "default", least)


def crd_member(name: str, of: str) -> Object:
    return member(name, "default", of, requests=ONE_CPU)


def test_a_group_that_cannot_be_whole_holds_up_nobody(plane: ControlPlane, client: ApiClient, tmp_path: Path) -> None:
    client.create("nodes", node("n1", cpu="16"))
    client.create_all(NATIVE, [native_group("most", MOST)])
    client.create_all(GROUPS, [crd_group("most", MOST), group("any", "default", None), crd_group("two", 2)])
    client.create("namespaces", {"metadata": {"name": "elsewhere"}})
    client.create(GROUPS, group("abroad", "elsewhere", 1))
    waiting = [
        native_member("native-most", "most"),
        crd_member("crd-most", "most"),
        crd_member("of-nothing", "nothing"),
        crd_member("of-abroad", "abroad"),
        crd_member("alone-of-two", "two"),
    ]
    client.create_all("pods", waiting)
    # One that ended is no member any more.
    client.create("pods", member("ended", "default", "two", requests=ONE_CPU, node_name="n1"))
    set_status(client, "pods", "ended", {"phase": "Succeeded"})
    with BayplanProcess(tmp_path, kubeconfig=install_bayplan(plane)) as process:
        process.wait_ready()
        client.create_all("pods", [crd_member("of-any", "any"), pod("single", "default", requests=ONE_CPU)])
        wait_bound(client, "default", ["of-any", "single"])
        assert nodes_bound(client, "default").keys() <= {"of-any", "single", "ended"}
        client.create("pods", crd_member("second-of-two", "two"))
        client.create(GROUPS, crd_group("nothing", 1))
        wait_bound(client, "default", ["alone-of-two", "second-of-two", "of-nothing"])
        assert not nodes_bound(client, "default").keys() & {"native-most", "crd-most", "of-abroad"}
        assert_alive_without_a_traceback(process)


@pytest.mark.parametrize("kind", [NATIVE, GROUPS])
def test_a_group_made_again_counts_with_its_new_least_number_and_the_members_that_are_left(
    plane: ControlPlane, client: ApiClient, kind: str, tmp_path: Path
) -> None:
    client.create("nodes", node("n1", cpu="2"))
    made, one = (native_group, native_member) if kind == NATIVE else (crd_group, crd_member)
    client.create(kind, made("again", 4))
    names = [f"again-{index}" for index in range(4)]
    client.create_all("pods", [one(name, "again") for name in names])
    with BayplanProcess(tmp_path, kubeconfig=install_bayplan(plane)) as process:
        wait_refused(client, "default", names[0])
        client.delete("pods", names[0], namespace="default")
        client.delete_all(kind, "default")
        client.create(kind, made("again", 3))
        assert nodes_bound(client, "default") == {}
        client.create("nodes", node("n2", cpu="1"))
        wait_bound(client, "default", names[1:])
        assert_alive_without_a_traceback(process)


def test_no_gang_starts_half_because_the_crd_is_deleted(plane: ControlPlane, client: ApiClient, tmp_path: Path) -> None:
    client.create_all("nodes", [node(f"n{index}", cpu="1") for index in range(2)])
    client.create(GROUPS, crd_group("orphan", 3))
    names = [f"orphan-{index}" for index in range(3)]
    client.create_all("pods", [crd_member(name, "orphan") for name in names])
    with BayplanProcess(tmp_path, kubeconfig=install_bayplan(plane)) as process:
        wait_refused(client, "default", names[0])
        try:
            plane.kubectl("delete", "crd", GROUPS)
            wait_until(lambda: "this kind is gone, pods that need it wait" in process.log_path.read_text(), "a warning")
            client.create("pods", pod("single", "default", requests=ONE_CPU))
            wait_bound(client, "default", ["single"])
            assert nodes_bound(client, "default").keys() == {"single"}
        finally:
            # For the scenarios after this one.
            install_crd(plane)
        assert_alive_without_a_traceback(process)


def test_a_gang_waits_while_the_api_server_does_not_serve_its_kind_and_starts_when_it_does_again(
    plane: ControlPlane, client: ApiClient, tmp_path: Path
) -> None:
    client.create_all("nodes", [node(f"n{index}", cpu="1") for index in range(2)])
    client.create(NATIVE, native_group("orphan", 3))
    names = [f"orphan-{index}" for index in range(3)]
    client.create_all("pods", [native_member(name, "orphan") for name in names])
    options = plane.options
    with BayplanProcess(tmp_path, kubeconfig=install_bayplan(plane)) as process:
        wait_refused(client, "default", names[0])
        try:
            plane.options = replace(options, served=(), feature_gates=())
            plane.restart_apiserver()
            wait_until(lambda: "this kind is gone, pods that need it wait" in process.log_path.read_text(), "a warning")
            client.create("pods", pod("single", "default", requests=ONE_CPU))
            wait_bound(client, "default", ["single"])
        finally:
            plane.options = options
            plane.restart_apiserver()
        assert nodes_bound(client, "default").keys() == {"single"}
        client.create_all("nodes", [node(f"more{index}", cpu="1") for index in range(2)])
        wait_bound(client, "default", names, timeout_seconds=60)
        assert_alive_without_a_traceback(process)


@pytest.mark.parametrize("code", [403, 409, 500])
def test_a_gang_runs_although_the_condition_of_its_group_is_refused(
    plane: ControlPlane, client: ApiClient, code: int, tmp_path: Path
) -> None:
    client.create("nodes", node("n1", cpu="2"))
    client.create(NATIVE, native_group("unwritten", 2))
    install_bayplan(plane)
    with FaultyProxy(plane) as proxy:

        def is_condition(request: web.BaseRequest) -> bool:
            return request.path.endswith("/podgroups/unwritten/status")

        proxy.inject(Refuse(code), is_condition, times=2**31)
        kubeconfig = proxy.kubeconfig(tmp_path / "proxied", request_token(client, NAMESPACE, SERVICE_ACCOUNT))
        (tmp_path / "process").mkdir()
        with BayplanProcess(tmp_path / "process", kubeconfig=kubeconfig) as process:
            names = [f"unwritten-{code}-{index}" for index in range(2)]
            client.create_all("pods", [native_member(name, "unwritten") for name in names])
            client.create("pods", pod(f"single-{code}", "default", requests={}))
            wait_bound(client, "default", [*names, f"single-{code}"])
            if code == 403:
                given_up = "about='default/unwritten' problem='status 403"
                wait_until(lambda: given_up in process.log_path.read_text(), "what the API server refused, in the log")
            assert_alive_without_a_traceback(process)


def test_what_another_scheduler_said_of_the_group_stays_while_it_does_not_fit(
    plane: ControlPlane, client: ApiClient, tmp_path: Path
) -> None:
    client.create("nodes", node("n1", cpu="1"))
    client.create(NATIVE, native_group("foreign", 2))
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    set_status(client, NATIVE, "foreign", {"conditions": [{**FOREIGN, **since}]})
    client.create_all("pods", [native_member(f"foreign-{index}", "foreign") for index in range(2)])
    with BayplanProcess(tmp_path, kubeconfig=install_bayplan(plane)) as process:
        wait_refused(client, "default", "foreign-0")
        (shown,) = client.get(NATIVE, "foreign", "default")["status"]["conditions"]
        assert (shown["status"], shown["reason"], shown["message"]) == ("True", "Elsewhere", "by another")
        assert_alive_without_a_traceback(process)
