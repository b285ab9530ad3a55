"""What a scheduler says on a real API server whose role lacks a right."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import node_of, wait_bound

pytestmark = pytest.mark.controlplane


@contextmanager
def role_without(plane: ControlPlane, resource: str) -> Iterator[None]:
    """Takes a resource out of the shipped ClusterRole while the block runs."""
    rules = json.loads(plane.kubectl("get", "clusterrole", "bayplan", "-o", "json"))["rules"]
    without = [rule for rule in rules if resource not in rule["resources"]]
    assert without != rules
    plane.client.patch("clusterroles", "bayplan", {"rules": without})
    try:
        yield
    finally:
        plane.client.patch("clusterroles", "bayplan", {"rules": rules})


def test_a_bind_that_the_role_does_not_allow_is_named_once_and_done_once_it_does(
    control_plane: ControlPlane, client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    client.create("nodes", node("n1"))
    told = f"permission missing, grant create resource=pods/binding namespace={namespace!r} grantedBy=manifests/base"
    with role_without(control_plane, "pods/binding"):
        process = run_bayplan()
        client.create_all("pods", [pod(name, namespace) for name in ("a", "b")])
        wait_until(lambda: told in process.log(), "the line that names the right")
        assert process.log().count(told) == 1
        assert node_of(client, namespace, "a") == ""
    wait_bound(client, namespace, ["a", "b"])


def test_who_may_not_read_leases_is_refused_in_one_line_and_schedules_where_that_is_forced(
    control_plane: ControlPlane, client: ApiClient, namespace: str, tmp_path: Path, run_bayplan: RunBayplan
) -> None:
    client.create("nodes", node("n1"))
    client.create("pods", pod("a", namespace))
    plane = control_plane
    plane.kubectl("create", "serviceaccount", "no-leases", "-n", namespace)
    user = f"--serviceaccount={namespace}:no-leases"
    plane.kubectl("create", "clusterrolebinding", "no-leases", "--clusterrole=bayplan", user)
    identity = plane.service_account_kubeconfig(namespace, "no-leases")
    try:
        with BayplanProcess(tmp_path, kubeconfig=identity, heeds_other_leases=True) as refused:
            assert refused.wait() == 2
            (line,) = [each for each in refused.log().splitlines() if "refused:" in each]
            assert "--leader-elect=false schedules all the same" in line
            assert "cannot get resource" in line
            assert node_of(client, namespace, "a") == ""
        run_bayplan(kubeconfig=identity, arguments=["--leader-elect=false"])
        wait_bound(client, namespace, ["a"])
    finally:
        plane.kubectl("delete", "clusterrolebinding", "no-leases")
