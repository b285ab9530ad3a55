"""The control plane the other scenarios stand on does what they take for granted."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.build import BINARIES, binary, build_directory
from e2e.controlplane.client import ApiClient, ApiError, Object
from e2e.controlplane.kubernetes_version import kubernetes_version
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.recorder import PodRecorder
from e2e.controlplane.service_account import request_token
from e2e.controlplane.toolchain import required_version
from e2e.controlplane.waiting import wait_until

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module")
def full_plane(start_control_plane: StartControlPlane) -> ControlPlane:
    return start_control_plane(ControlPlaneOptions(kube_controller_manager=True, kwok=True, audit=True))


def test_the_api_server_and_kubectl_report_the_version_that_was_built(control_plane: ControlPlane) -> None:
    version = f"v{kubernetes_version()}"
    assert control_plane.client.request("GET", "/version")["gitVersion"] == version
    assert control_plane.kubectl("version").count(version) == 2


def test_a_user_without_a_role_may_do_nothing(control_plane: ControlPlane) -> None:
    stranger = control_plane.kubeconfig_for("stranger")
    assert control_plane.kubectl("auth", "whoami", kubeconfig=stranger).count("stranger") == 1
    assert control_plane.kubectl("auth", "can-i", "list", "pods", kubeconfig=stranger, check=False) == "no\n"


def test_a_service_account_is_who_its_token_says(control_plane: ControlPlane, namespace: str) -> None:
    account = {"metadata": {"name": "robot", "namespace": namespace}}
    control_plane.client.create("serviceaccounts", account)
    kubeconfig = control_plane.service_account_kubeconfig(namespace, "robot")
    whoami = control_plane.kubectl("auth", "whoami", kubeconfig=kubeconfig)
    assert f"system:serviceaccount:{namespace}:robot" in whoami


def test_rotating_a_service_account_volume_swaps_the_token_behind_one_link(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.client.create("serviceaccounts", {"metadata": {"name": "robot", "namespace": namespace}})
    volume = control_plane.in_cluster_dir(namespace, "robot")
    token_file = volume.directory / "token"
    first, first_target = token_file.read_text(), token_file.resolve()
    second = volume.rotate()
    assert token_file.read_text() == second != first
    assert token_file.resolve() != first_target
    assert (volume.directory / "namespace").read_text() == namespace
    assert (volume.directory / "ca.crt").read_bytes() == control_plane.ca_file.read_bytes()
    assert volume.environment["KUBERNETES_SERVICE_PORT"] == str(control_plane.ports.apiserver)


def test_a_node_is_free_of_taints_where_no_controller_would_take_them_off(
    control_plane: ControlPlane, namespace: str
) -> None:
    created = control_plane.client.create("nodes", node("n1", resources={"example.com/gpu": "8"}))
    assert "taints" not in created["spec"]
    assert created["status"]["allocatable"]["example.com/gpu"] == "8"


def test_many_objects_are_created_at_once_and_listed_over_pages(control_plane: ControlPlane, namespace: str) -> None:
    names = [f"p{number}" for number in range(60)]
    control_plane.client.create_all("pods", (pod(name, namespace) for name in names))
    listed = control_plane.client.list("pods", namespace, limit="25")
    assert sorted(found["metadata"]["name"] for found in listed) == sorted(names)


def test_the_client_raises_the_reason_of_a_refusal(control_plane: ControlPlane, namespace: str) -> None:
    with pytest.raises(ApiError, match=f"GET /api/v1/namespaces/{namespace}/pods/none") as refusal:
        control_plane.client.get("pods", "none", namespace)
    assert (refusal.value.status, refusal.value.reason) == (404, "NotFound")


def test_the_recorder_sees_the_one_binding_and_not_the_refused_one(control_plane: ControlPlane, namespace: str) -> None:
    client = control_plane.client
    client.create_all("nodes", [node("n1"), node("n2")])
    with PodRecorder(client) as recorder:
        bound = client.create("pods", pod("bound", namespace))["metadata"]["uid"]
        waiting = client.create("pods", pod("waiting", namespace))["metadata"]["uid"]
        client.bind(namespace, "bound", "n2")
        with pytest.raises(ApiError, match="409 Conflict"):
            client.bind(namespace, "bound", "n1")
        client.delete("pods", "waiting", namespace=namespace, grace_seconds=0)
        events = recorder.catch_up()
        assert recorder.nodes_by_uid() == {bound: ["n2"], waiting: []}
        assert set(recorder.bound_at()) == {f"{namespace}/bound"}
    assert [event.type for event in events if event.uid == waiting] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [event.resource_version for event in events]
    assert versions == sorted(versions)


def test_a_recreated_pod_is_another_one_to_the_recorder(control_plane: ControlPlane, namespace: str) -> None:
    client = control_plane.client
    client.create_all("nodes", [node("n1"), node("n2")])
    with PodRecorder(client) as recorder:
        for target in ("n1", "n2"):
            client.create("pods", pod("again", namespace))
            client.bind(namespace, "again", target)
            client.delete("pods", "again", namespace=namespace, grace_seconds=0)
        recorder.catch_up()
    assert list(recorder.nodes_by_uid().values()) == [["n1"], ["n2"]]


def test_objects_and_the_record_survive_a_restart_of_the_api_server(
    control_plane: ControlPlane, namespace: str
) -> None:
    client = control_plane.client
    client.create("nodes", node("n1"))
    with PodRecorder(client) as recorder:
        before = client.create("pods", pod("before", namespace))["metadata"]["uid"]
        gone = client.create("pods", pod("gone", namespace))["metadata"]["uid"]
        recorder.catch_up()
        control_plane.stop_apiserver()
        with pytest.raises(ConnectionRefusedError):
            client.get("pods", "before", namespace)
        control_plane.start_apiserver()
        client.bind(namespace, "before", "n1")
        client.delete("pods", "gone", namespace=namespace, grace_seconds=0)
        events = recorder.catch_up()
        assert recorder.nodes_by_uid() == {before: ["n1"], gone: []}
    assert [event.type for event in events if event.uid == gone][-1] == "DELETED"


def test_kwok_and_the_controllers_keep_nodes_ready_and_run_bound_pods(full_plane: ControlPlane) -> None:
    client = full_plane.client
    client.create("nodes", node("kwok-1"))
    wait_until(
        lambda: not client.get("nodes", "kwok-1")["spec"].get("taints"),
        "the controllers taking the not-ready taint off",
    )
    wait_until(lambda: client.list("serviceaccounts", "default"), "a default service account")
    client.create("pods", pod("runs", "default", terminationGracePeriodSeconds=2))
    client.bind("default", "runs", "kwok-1")
    wait_until(lambda: client.get("pods", "runs", "default")["status"]["phase"] == "Running", "the pod running")
    with PodRecorder(client) as recorder:
        client.delete("pods", "runs", namespace="default")
        wait_until(lambda: any(event.type == "DELETED" for event in recorder.events), "the end of the deleted pod")
        changes = [(event.type, event.deleting) for event in recorder.events]
    assert changes[0] == ("MODIFIED", True)  # terminating first: the grace period is honoured
    assert changes[-1] == ("DELETED", True)


def test_the_audit_log_tells_who_bound_a_pod_and_with_what_body(full_plane: ControlPlane) -> None:
    client = full_plane.client
    client.create("nodes", node("audited"))
    wait_until(lambda: client.list("serviceaccounts", "default"), "a default service account")
    client.create("pods", pod("audited", "default"))
    client.bind("default", "audited", "audited")
    bindings = [event for event in full_plane.audit_events() if event.resource == "pods/binding"]
    mine = [event for event in bindings if event.key == "default/audited"]
    assert [(event.user, event.verb, event.code) for event in mine] == [("test-admin", "create", 201)]
    assert mine[0].document["target"]["name"] == "audited"


def test_the_audit_log_tells_a_missing_right_from_a_refusal_of_admission(full_plane: ControlPlane) -> None:
    stranger = ApiClient(
        full_plane.url, full_plane.tls(None), token=request_token(full_plane.client, "default", "default")
    )
    with contextlib.closing(stranger), pytest.raises(ApiError, match="403"):
        stranger.list("nodes")
    with pytest.raises(ApiError, match="403"):  # admission knows no such class
        full_plane.client.create("pods", pod("odd", "default", priorityClassName="unknown"))
    refused = {
        (event.verb, event.resource): event.forbidden for event in full_plane.audit_events() if event.code == 403
    }
    assert refused == {("list", "nodes"): True, ("create", "pods"): False}


def test_a_node_keeps_the_addresses_it_came_with(full_plane: ControlPlane) -> None:
    addressed = node("addressed")
    addressed["status"] |= {"addresses": [{"type": "InternalIP", "address": "192.0.2.7"}], "conditions": []}
    full_plane.client.create_all("nodes", [addressed])

    def status() -> Object:
        found: Object = full_plane.client.get("nodes", "addressed")["status"]
        return found

    wait_until(lambda: status().get("phase") == "Running", "kwok playing the node")
    assert status()["addresses"] == addressed["status"]["addresses"]


def test_the_audit_log_is_refused_where_none_is_written(control_plane: ControlPlane) -> None:
    with pytest.raises(ValueError, match="audit=True"):
        control_plane.audit_events()


def test_kube_scheduler_runs_beside_it_with_its_bootstrap_role(full_plane: ControlPlane) -> None:
    client = full_plane.client
    client.create("nodes", node("oracle", labels={"only": "here"}))
    scheduler = full_plane.start_kube_scheduler({"profiles": [{"schedulerName": "oracle"}]})
    wait_until(lambda: client.list("serviceaccounts", "default"), "a default service account")
    client.create("pods", pod("oracle", "default", scheduler="oracle", nodeSelector={"only": "here"}))
    wait_until(
        lambda: client.get("pods", "oracle", "default")["spec"].get("nodeName") == "oracle",
        "kube-scheduler binding the pod",
        detail=scheduler.log_tail,
    )
    assert scheduler.cpu_seconds() > 0
    assert scheduler.peak_rss_bytes() >= scheduler.rss_bytes() > 10_000_000
    scheduler.stop(10.0)
    assert scheduler.exit_code is not None


def test_the_admin_client_needs_the_authority_of_its_own_control_plane(
    control_plane: ControlPlane, full_plane: ControlPlane
) -> None:
    mixed = ApiClient(full_plane.url, control_plane.tls("test-admin"))
    with pytest.raises(OSError, match="certificate verify failed"):
        mixed.get("namespaces", "default")


def test_a_part_that_cannot_start_is_named_with_the_end_of_its_log(control_plane_binaries: None) -> None:
    options = ControlPlaneOptions(disable_admission=("NoSuchPlugin",))
    with pytest.raises(RuntimeError, match=r"kube-apiserver exited with 1:\n(.|\n)*NoSuchPlugin"):
        ControlPlane.start(options)


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; import time;"
        "from e2e.controlplane.process import Process;"
        f"child = Process('sleep', ['sleep', '600'], log_path=Path({str(tmp_path / 'log')!r}));"
        "print(child.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        wait_until(lambda: b"sleep" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0], "the child")
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not _is_running(child), "the child ending")


def test_every_binary_is_found_under_a_key_that_changes_with_go_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    assert all(os.access(binary(name), os.X_OK) for name in BINARIES)
    assert build_directory().name == binary("kwok").parent.name
    with pytest.raises(ValueError, match="'kubelet' is not one of etcd, "):
        binary("kubelet")


def test_kubebuilder_assets_win_only_when_they_hold_a_whole_api_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    (tmp_path / "etcd").touch()
    assert binary("etcd").parent == build_directory()
    (tmp_path / "kube-apiserver").touch()
    assert binary("etcd") == tmp_path / "etcd"
    assert binary("kwok").parent == build_directory()


def test_the_go_that_is_needed_is_read_from_go_mod(tmp_path: Path) -> None:
    go_mod = tmp_path / "go.mod"
    go_mod.write_text("module x\n\ngo 1.26.3\n\ngodebug default=go1.25\n")
    assert required_version(go_mod) == (1, 26, 3)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie waits for whoever adopted it, and runs no more.
    return "Z (zombie)" not in Path(f"/proc/{pid}/status").read_text()
