"""Ways to log in to the API server: an exec plugin, and the token of the pod bayplan runs in."""

import json
import sys
from pathlib import Path

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import REPOSITORY, BayplanProcess
from e2e.controlplane.client import ApiClient
from e2e.controlplane.credentials import write_kubeconfig
from e2e.controlplane.installation import NAMESPACE, SERVICE_ACCOUNT
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.service_account import request_token
from e2e.scenarios.outcomes import assert_alive_without_a_traceback, configuration, wait_bound

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("bayplan_identity")]

# Python runs this at its start: the folder a kubelet would fill cannot be made on every machine.
_SITE = """
import functools, pathlib
from bayplan.api import credentials
folder = pathlib.Path({folder!r})
credentials.load_credentials = functools.partial(credentials.load_credentials, service_account_folder=folder)
"""


def put_pods(client: ApiClient, namespace: str, prefix: str) -> list[str]:
    names = [f"{prefix}-{index}" for index in range(3)]
    client.create_all("pods", [pod(name, namespace) for name in names])
    return names


def test_a_kubeconfig_may_name_an_exec_plugin(
    control_plane: ControlPlane,
    client: ApiClient,
    namespace: str,
    run_bayplan: RunBayplan,
    tmp_path: Path,
) -> None:
    token = request_token(client, NAMESPACE, SERVICE_ACCOUNT)
    version = "client.authentication.k8s.io/v1"
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}}
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!{sys.executable}\nprint({json.dumps(credential)!r})\n")
    plugin.chmod(0o755)
    user: dict[str, object] = {"exec": {"apiVersion": version, "command": "./plugin", "interactiveMode": "Never"}}
    kubeconfig = tmp_path / "exec"
    write_kubeconfig(kubeconfig, url=control_plane.url, ca_file=control_plane.ca_file, user=user)
    client.create("nodes", node("n1"))
    process = run_bayplan(configuration(), kubeconfig=kubeconfig, arguments=["-v", "10"])
    wait_bound(client, namespace, put_pods(client, namespace, "plugged"))
    assert_alive_without_a_traceback(process)
    assert token not in process.log()


def revocable_token(client: ApiClient, secret_name: str) -> str:
    """A token of the scheduler's account that dies with a new secret of that name."""
    secret = client.create("secrets", {"metadata": {"name": secret_name, "namespace": NAMESPACE}})
    bound_to = {"kind": "Secret", "apiVersion": "v1", "name": secret_name, "uid": secret["metadata"]["uid"]}
    return request_token(client, NAMESPACE, SERVICE_ACCOUNT, boundObjectRef=bound_to)


def test_in_a_pod_the_token_is_read_again_when_it_was_rotated(
    control_plane: ControlPlane, client: ApiClient, namespace: str, tmp_path: Path
) -> None:
    volume = control_plane.in_cluster_dir(NAMESPACE, SERVICE_ACCOUNT)
    old = revocable_token(client, "dies-early")
    volume.write(old)
    (tmp_path / "sitecustomize.py").write_text(_SITE.format(folder=str(volume.directory)))
    path = f"{tmp_path}:{REPOSITORY / 'operator'}"
    environment = {**volume.environment, "PYTHONPATH": path, "KUBECONFIG": "", "HOME": str(tmp_path)}
    with BayplanProcess(tmp_path, kubeconfig=None, environment=environment) as process:
        client.create("nodes", node("n1"))
        wait_bound(client, namespace, put_pods(client, namespace, "old"))

        new = volume.rotate()
        client.delete("secrets", "dies-early", namespace=NAMESPACE)
        control_plane.restart_apiserver()  # it remembers for a while which tokens were good
        wait_bound(client, namespace, put_pods(client, namespace, "new"))
        assert_alive_without_a_traceback(process)
        assert not [token for token in (old, new) if token in process.log()]
