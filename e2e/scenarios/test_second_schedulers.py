"""Manifests of second kube-schedulers run bayplan when their image and their command are changed, and nothing else.

They are in second-schedulers/. The scheduler has the rights that they give to kube-scheduler. Where one is missing, it
goes on with what it may do as kube-scheduler does, and its log says what is missing.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from e2e.conftest import StartControlPlane
from e2e.controlplane.audit import AuditTail
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.deployed import DeployedReplica, pod_of_deployment
from e2e.controlplane.health import get_local
from e2e.controlplane.objects import claim, local_volume, node, pod, pod_of_class, storage_class
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import STOP_SECONDS, stop_all
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    end_pod,
    fill_nodes,
    terminating,
    wait_bound,
    wait_event,
    wait_refused,
)

pytestmark = pytest.mark.controlplane

MANIFESTS = Path(__file__).parent / "second-schedulers"
NAMESPACE = "kube-system"
HOSTNAME = "kubernetes.io/hostname"
RBAC = "rbac.authorization.k8s.io"
NAMES = ("my-scheduler", "bin-pack-scheduler")
"""Deployment, ServiceAccount and scheduler have one name in each of the files."""
MISSING = {
    "my-scheduler": {("list", "leases"), ("list", "podgroups")},
    "bin-pack-scheduler": {("get", "configmaps"), ("list", "podgroups")},
}
"""What no role allows, and is done without: who does not contend looks whether another leads for the same pods; without
the RoleBinding of the first file kube-scheduler is refused its ConfigMap as well; and who may not read groups of pods
places pods one by one."""


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    plane = start_control_plane(ControlPlaneOptions(audit=True))
    for name, value in (("low", 1), ("high", 1000)):
        plane.client.create("priorityclasses", {"metadata": {"name": name}, "value": value})
    return plane


def with_bayplan(name: str) -> list[Object]:
    """The objects of a file with bayplan's image and command."""
    documents: list[Object] = list(yaml.safe_load_all((MANIFESTS / f"{name}.yaml").read_text()))
    (deployment,) = [each for each in documents if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    program, *flags = container["command"]
    assert program.endswith("kube-scheduler")
    container["image"], container["command"] = "bayplan:0.1.0", ["bayplan", "run", *flags]
    return documents


def with_less_rights() -> list[Object]:
    """The same, where the account may read what a scheduler reads, and bind, and nothing else."""
    documents = [
        each for each in with_bayplan("my-scheduler") if each["kind"] not in {"RoleBinding", "ClusterRoleBinding"}
    ]
    reads = {"apiGroups": ["", "apps", "policy", "storage.k8s.io"], "resources": ["*"], "verbs": ["list", "watch"]}
    bind = {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "reads-and-binds"}}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reads-and-binds"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "reads-and-binds"},
        "subjects": [{"kind": "ServiceAccount", "name": "my-scheduler", "namespace": NAMESPACE}],
    }
    return [{**role, "rules": [reads, bind]}, binding, *documents]


@dataclass(frozen=True)
class Site:
    """A namespace of its own with nodes of its own, whose pods one second scheduler serves."""

    plane: ControlPlane
    name: str
    replica: DeployedReplica
    namespace: str
    asked: AuditTail

    @property
    def client(self) -> ApiClient:
        return self.plane.client

    def there(self, node_name: str) -> str:
        return f"{node_name}-{self.namespace}"

    def pod(self, name: str, node_name: str, **fields: object) -> Object:
        """A pod for one of the nodes."""
        only_there = {HOSTNAME: self.there(node_name)}
        return pod(name, self.namespace, scheduler=self.name, nodeSelector=only_there, **fields)  # type: ignore[arg-type]

    def refusals(self) -> set[tuple[str, str]]:
        """Verb and resource of what the scheduler asked for and no role allows."""
        user = f"system:serviceaccount:{NAMESPACE}:{self.name}"
        return {(each.verb, each.resource) for each in self.asked.poll() if each.user == user and each.forbidden}


Install = Callable[[str, list[Object]], Site]
numbers = itertools.count(1)


@pytest.fixture
def install(plane: ControlPlane, tmp_path: Path) -> Iterator[Install]:
    """Applies objects, and runs what the container of the Deployment among them would run."""
    running: list[DeployedReplica] = []
    rendered = tmp_path / "manifests.yaml"

    def run(name: str, documents: list[Object]) -> Site:
        rendered.write_text(yaml.safe_dump_all(documents))
        plane.kubectl("apply", "-f", rendered)
        replica = DeployedReplica(
            pod_of_deployment(plane.client, NAMESPACE, name, deployment=name),
            plane,
            tmp_path,
            kubeconfig=plane.service_account_kubeconfig(NAMESPACE, name),
        )
        running.append(replica)
        site = Site(plane, name, replica, f"team-{next(numbers)}", plane.audit_tail())
        plane.client.create("namespaces", {"metadata": {"name": site.namespace}})
        plane.client.create("nodes", node(site.there("n0")))
        return site

    yield run
    stop_all(running, STOP_SECONDS)
    plane.client.delete_all("nodes")
    plane.kubectl("delete", "-f", rendered, "--ignore-not-found", "--wait=false")


@pytest.mark.parametrize("name", NAMES)
def test_with_another_image_and_command_it_does_all_that_a_scheduler_does(install: Install, name: str) -> None:
    site = install(name, with_bayplan(name))
    site.replica.wait_ready()
    assert get_local(site.replica.port, "/healthz", tls=True) == (200, "ok")
    _bind_and_refuse(site)
    _preempt(site)
    _bind_a_volume(site)
    if name == "bin-pack-scheduler":
        holder = site.client.get("leases", site.name, NAMESPACE)["spec"]["holderIdentity"]
        assert f"leading lease={NAMESPACE}/{site.name} identity={holder}" in site.replica.log()
    assert site.refusals() == MISSING[name]
    assert_alive_without_a_traceback(site.replica)


def _bind_and_refuse(site: Site) -> None:
    site.client.create_all("pods", [site.pod(f"p{index}", "n0") for index in range(5)])
    wait_bound(site.client, site.namespace, [f"p{index}" for index in range(5)])
    wait_event(site.client, site.namespace, "p0", "Scheduled")
    site.client.create("pods", site.pod("big", "n0", requests={"cpu": "100"}))
    assert "Insufficient cpu" in wait_refused(site.client, site.namespace, "big")["message"]
    wait_event(site.client, site.namespace, "big", "FailedScheduling")


def _preempt(site: Site) -> None:
    (low,) = fill_nodes(site.client, site.namespace, site.there("full"))
    only_there = {HOSTNAME: site.there("full")}
    site.client.create(
        "pods", pod_of_class("high", site.namespace, "high", scheduler=site.name, nodeSelector=only_there)
    )
    wait_until(lambda: low in terminating(site.client, site.namespace), "the victim to end")
    end_pod(site.client, site.namespace, low)
    wait_bound(site.client, site.namespace, ["high"])


def _bind_a_volume(site: Site) -> None:
    client, name = site.client, f"local-{site.namespace}"
    client.create("storageclasses", storage_class(name))
    hosts = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [site.there("n0")]}]}
    client.create("persistentvolumes", local_volume(name, name, hosts))
    client.patch("persistentvolumes", name, {"status": {"phase": "Available"}}, subresource="status")
    client.create("persistentvolumeclaims", claim("data", site.namespace, name))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    client.create("pods", site.pod("with-data", "n0", volumes=volumes))
    wait_until(
        lambda: client.get("persistentvolumes", name)["spec"].get("claimRef", {}).get("name") == "data",
        "the volume to be reserved",
    )
    bound: Object = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": name},
    }
    client.patch("persistentvolumeclaims", "data", bound, namespace=site.namespace)
    wait_bound(client, site.namespace, ["with-data"])


def test_who_may_only_read_and_bind_binds_and_is_told_what_is_missing(install: Install) -> None:
    site = install("my-scheduler", with_less_rights())
    site.replica.wait_ready()
    (low,) = fill_nodes(site.client, site.namespace, site.there("full"))
    only_there = {HOSTNAME: site.there("full")}
    site.client.create(
        "pods", pod_of_class("high", site.namespace, "high", scheduler=site.name, nodeSelector=only_there)
    )
    site.client.create("pods", site.pod("big", "n0", requests={"cpu": "100"}))
    for index in range(5):
        site.client.create("pods", site.pod(f"p{index}", "n0"))
    wait_bound(site.client, site.namespace, [f"p{index}" for index in range(5)])
    assert get_local(site.replica.port, "/healthz", tls=True) == (200, "ok")
    assert get_local(site.replica.port, "/metrics", tls=True, token="anything")[0] == 401
    wanted = {
        ("create", "events"),
        ("patch", "pods/status"),
        ("create", "tokenreviews"),
        ("get", "configmaps"),
    }
    wait_until(lambda: site.refusals() >= wanted, "everything to be tried", detail=lambda: str(site.refusals()))
    assert low not in terminating(site.client, site.namespace)
    for told in ('cannot get resource "configmaps"', 'cannot create resource "tokenreviews"', "status 403"):
        wait_until(lambda told=told: told in site.replica.log(), f"{told} in the log")  # type: ignore[misc]
    assert_alive_without_a_traceback(site.replica)


def test_a_right_to_read_that_kube_scheduler_would_wait_for_is_named_and_healthz_answers(install: Install) -> None:
    documents = [each for each in with_bayplan("my-scheduler") if "volume" not in each["metadata"]["name"]]
    site = install("my-scheduler", documents)
    wait_until(lambda: "permission missing" in site.replica.log(), "what is missing to be named")
    assert "grant list and watch resource=storageclasses apiGroup='storage.k8s.io'" in site.replica.log()
    assert get_local(site.replica.port, "/healthz", tls=True) == (200, "ok")
    assert get_local(site.replica.port, "/readyz", tls=True)[0] == 500
