"""Two replicas at work with the identity, the rights and the policies of the production overlay, and nothing else.

Everything is shown twice: of the overlay as it is, and with a component that has its own rights and no use for more.

What they do takes all that they may do: binds, a gang, verdicts, a preemption, volumes, a lost request, a change of
leaders, and metrics for who may see them. The audit log shows that nothing was refused, and that nothing is granted
that was not used.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pytest
import yaml
from e2e.conftest import StartControlPlane
from e2e.controlplane.audit import AuditEvent
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.container import config_maps_of
from e2e.controlplane.deployed import DeployedReplica, pod_of_deployment
from e2e.controlplane.devices import claiming, device_class, resource_claim, resource_slice
from e2e.controlplane.health import get_local, post_local, trusting_anybody
from e2e.controlplane.installation import OVERLAYS, SERVICE_ACCOUNT, granted, write_kustomization
from e2e.controlplane.objects import claim, local_volume, node, pod, pod_of_class, storage_class
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import STOP_SECONDS, stop_all
from e2e.controlplane.service_account import request_token
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.faulty_proxy import FaultyProxy
from e2e.scenarios.monitoring import install_scraper
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    end_pod,
    fill_nodes,
    terminating,
    wait_bound,
    wait_event_counts,
    wait_refused,
)
from tests.faults.faults import Reset

pytestmark = pytest.mark.controlplane

NAMESPACE = "bayplan-system"
TEAM = "team"
USER = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"
HOSTNAME = "kubernetes.io/hostname"
SERVICE: Object = {"selector": {"app": "web"}, "ports": [{"port": 80}]}


@dataclass(frozen=True)
class World:
    """A cluster where the production overlay is installed, and two replicas; the first reaches it through a proxy."""

    plane: ControlPlane
    proxy: FaultyProxy
    leader: DeployedReplica
    standby: DeployedReplica
    components: Collection[str]

    @property
    def client(self) -> ApiClient:
        return self.plane.client


@pytest.fixture(scope="module", params=[(), ("default-spreading",)], ids=["production", "with-default-spreading"])
def world(
    start_control_plane: StartControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[World]:
    served, gates = ("scheduling.k8s.io/v1beta1",), ("GenericWorkload",)
    plane = start_control_plane(ControlPlaneOptions(audit=True, served=served, feature_gates=gates))
    overlay = tmp_path_factory.mktemp("overlay")
    write_kustomization(overlay, base=OVERLAYS / "production", components=request.param)
    plane.kubectl("apply", "-k", overlay)
    plane.client.create("namespaces", {"metadata": {"name": TEAM}})
    plane.client.create("services", {"metadata": {"name": "web", "namespace": TEAM}, "spec": SERVICE})
    # The API server puts the zone on each Binding before it asks the policies.
    zone = {"topology.kubernetes.io/zone": "a"}
    plane.client.create_all("nodes", [node(name, labels=zone) for name in ("n0", "other")])
    for name, value in (("low", 1), ("high", 1000)):
        plane.client.create("priorityclasses", {"metadata": {"name": name}, "value": value})
    # On a machine that is slow for a while no other one leads.
    _change_configuration(plane.client, leaderElection={"leaseDuration": "90s", "renewDeadline": "60s"})
    running: list[DeployedReplica] = []
    with FaultyProxy(plane) as proxy:
        try:
            token = request_token(plane.client, NAMESPACE, SERVICE_ACCOUNT)
            first = proxy.kubeconfig(tmp_path_factory.mktemp("first") / "kubeconfig", token)
            second = plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
            for name, kubeconfig in (("first", first), ("second", second)):
                replica = DeployedReplica(
                    pod_of_deployment(plane.client, NAMESPACE, name),
                    plane,
                    tmp_path_factory.mktemp("replica"),
                    kubeconfig=kubeconfig,
                )
                running.append(replica)
                replica.wait_ready()
                # The first one leads.
                wait_until(lambda: plane.client.list("leases", NAMESPACE), "a lease in the overlay's namespace")
            leader, standby = running
            yield World(plane, proxy, leader, standby, request.param)
        finally:
            stop_all(running, STOP_SECONDS)


def _change_configuration(client: ApiClient, **fields: Object) -> None:
    """Writes other fields into the ConfigMap that the Deployment mounts."""
    (name,) = config_maps_of(pod_of_deployment(client, NAMESPACE, "any")).values()
    document = yaml.safe_load(client.get("configmaps", name, NAMESPACE)["data"]["config.yaml"])
    changed = {key: {**document.get(key, {}), **value} for key, value in fields.items()}
    text = yaml.safe_dump(document | changed)
    client.patch("configmaps", name, {"data": {"config.yaml": text}}, namespace=NAMESPACE)


@pytest.fixture(scope="module")
def answers(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, int]]:
    """The statuses that each replica answers with over HTTPS, by who asks for what."""
    plane = world.plane
    scraper = install_scraper(plane, tmp_path_factory.mktemp("scraper")).read_text()
    plane.client.create("serviceaccounts", {"metadata": {"name": "stranger", "namespace": NAMESPACE}})
    stranger = request_token(plane.client, NAMESPACE, "stranger")
    certificate = trusting_anybody(plane.tls("test-admin"))
    found: list[dict[str, int]] = []
    for port in (world.leader.port, world.standby.port):

        def certified(port: int = port) -> bool:
            return get_local(port, "/configz", tls=certificate)[0] == 200

        wait_until(certified, "the cluster's authorities to be looked up")
        statuses = {f"probe {path}": get_local(port, path, tls=True)[0] for path in ("/livez", "/readyz")}
        for name, token in (("nobody", None), ("stranger", stranger), ("Prometheus", scraper)):
            statuses[f"{name} /metrics"] = get_local(port, "/metrics", tls=True, token=token)[0]
        found.append(statuses)
    return found


@pytest.fixture(scope="module")
def asked(world: World, answers: list[dict[str, int]]) -> list[AuditEvent]:
    """What the ServiceAccount asked for while the replicas did everything that they are for."""
    assert answers
    client = world.client
    _bind_pods_of_a_service(world)
    _have_a_gang_placed(client)
    _bind_although_a_request_is_lost(world)
    _have_room_made(client)
    _have_a_verdict_repeated(client)
    _have_volumes_bound(client)
    _have_a_device_allocated(client)
    _ask_about_a_pod(world)
    # Counts are written twice a minute, so this one is waited for last.
    wait_event_counts(client, TEAM, "big", "FailedScheduling", [2])
    world.leader.terminate()
    assert world.leader.wait(STOP_SECONDS) == 0
    client.create("pods", pod("last", TEAM))
    wait_bound(client, TEAM, ["last"])
    assert_alive_without_a_traceback(world.standby)
    # A watch is in the audit log when it ends.
    world.standby.terminate()
    assert world.standby.wait(STOP_SECONDS) == 0
    watched = {resource for verb, resource in granted(world.plane, NAMESPACE) if verb == "watch"}
    wait_until(lambda: watched <= {each.resource for each in _asked(world) if each.verb == "watch"}, "watches to end")
    return _asked(world)


def _asked(world: World) -> list[AuditEvent]:
    return [event for event in world.plane.audit_events() if event.user == USER]


def _bind_pods_of_a_service(world: World) -> None:
    """They are packed, but where the component has them spread."""
    client = world.client
    for name in ("first", "second"):
        client.create("pods", pod(name, TEAM, labels={"app": "web"}))
        wait_bound(client, TEAM, [name])
    nodes = set(wait_bound(client, TEAM, ["first", "second"]).values())
    assert len(nodes) == (2 if "default-spreading" in world.components else 1)
    for name in ("first", "second"):
        client.delete("pods", name, namespace=TEAM, grace_seconds=0)
    client.delete("nodes", "other")


def _have_a_gang_placed(client: ApiClient) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    client.create("podgroups", {"metadata": {"name": "gang", "namespace": TEAM}, "spec": spec})
    names = ["member-0", "member-1"]
    client.create_all("pods", [pod(name, TEAM, schedulingGroup={"podGroupName": "gang"}) for name in names])
    wait_bound(client, TEAM, names)
    wait_until(
        lambda: client.get("podgroups", "gang", TEAM).get("status", {}).get("conditions"), "the gang's condition"
    )
    client.delete_all("pods", TEAM)


def _bind_although_a_request_is_lost(world: World) -> None:
    world.proxy.inject(Reset(), lambda request: request.path.endswith("/binding"))
    world.client.create_all("pods", [pod(f"p{index}", TEAM) for index in range(10)])
    wait_bound(world.client, TEAM, [f"p{index}" for index in range(10)])


def _have_a_verdict_repeated(client: ApiClient) -> None:
    client.create("pods", pod("big", TEAM, requests={"cpu": "100"}))
    wait_refused(client, TEAM, "big")
    client.delete("pods", "p0", namespace=TEAM, grace_seconds=0)


def _ask_about_a_pod(world: World) -> None:
    token = request_token(world.client, NAMESPACE, "bayplan-reader")
    body = json.dumps(pod_of_class("asked", TEAM, "high", cpu="100m")).encode()
    status, text = post_local(world.leader.port, "/bayplan/v1/simulate", body, token=token)
    assert status == 200, text
    assert json.loads(text)["pods"][0]["attempts"][-1]["node"] == "n0"


def _have_volumes_bound(client: ApiClient) -> None:
    """One that is there is reserved, one that is not is asked for; the test does the volume controller's part."""
    client.create("storageclasses", storage_class("local"))
    client.create("storageclasses", storage_class("made", "csi.example"))
    hosts = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n0"]}]}
    client.create("persistentvolumes", local_volume("v", "local", hosts))
    client.patch("persistentvolumes", "v", {"status": {"phase": "Available"}}, subresource="status")
    for name in ("local", "made"):
        client.create("persistentvolumeclaims", claim(name, TEAM, name))
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        client.create("pods", pod(f"with-{name}", TEAM, volumes=volumes))

    def reserved() -> bool:
        return bool(client.get("persistentvolumes", "v")["spec"].get("claimRef", {}).get("name") == "local")

    def asked_for() -> bool:
        annotations = client.get("persistentvolumeclaims", "made", TEAM)["metadata"].get("annotations", {})
        return "volume.kubernetes.io/selected-node" in annotations

    wait_until(reserved, "the volume to be reserved")
    wait_until(asked_for, "a volume to be asked for")
    client.create("persistentvolumes", local_volume("w", "made", hosts))
    for name, volume in (("local", "v"), ("made", "w")):
        bound: Object = {
            "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": volume},
        }
        client.patch("persistentvolumeclaims", name, bound, namespace=TEAM)
    wait_bound(client, TEAM, ["with-local", "with-made"])


def _have_a_device_allocated(client: ApiClient) -> None:
    client.create("deviceclasses", device_class())
    client.create("resourceslices", resource_slice("n0", 1))
    client.create("resourceclaims", resource_claim("device", TEAM))
    client.create("pods", claiming("with-device", TEAM, "device"))
    wait_bound(client, TEAM, ["with-device"])


def _have_room_made(client: ApiClient) -> None:
    """A pod of high priority takes the room of a stranger's pod of low priority."""
    only_there = {HOSTNAME: "n1"}
    (low,) = fill_nodes(client, TEAM, "n1")
    client.create("pods", pod_of_class("high", TEAM, "high", nodeSelector=only_there))
    wait_until(lambda: low in terminating(client, TEAM), "the victim to end")
    end_pod(client, TEAM, low)
    assert wait_bound(client, TEAM, ["high"]) == {"high": "n1"}


def test_nothing_that_the_replicas_asked_for_was_refused(asked: list[AuditEvent]) -> None:
    assert [(event.verb, event.uri, event.code) for event in asked if event.code in {401, 403}] == []


def test_nothing_is_granted_that_was_not_used(world: World, asked: list[AuditEvent]) -> None:
    used = {(event.verb, event.resource) for event in asked if event.resource}
    # A claim is read after a conflict, and that it may be allocated is asked within the request that does it. None is
    # made where no DeviceClass provides an extended resource, and none replaced where parameters have no white space.
    not_seen = {(verb, "resourceclaims") for verb in ("get", "update", "create", "delete")}
    not_seen.add(("patch", "resourceclaims/binding"))
    assert granted(world.plane, NAMESPACE) - used == not_seen
    assert used - granted(world.plane, NAMESPACE) == set()


def test_both_replicas_answer_probes_from_anybody_and_show_metrics_to_prometheus_only(
    answers: list[dict[str, int]],
) -> None:
    expected = {
        "probe /livez": 200,
        "probe /readyz": 200,
        "nobody /metrics": 401,
        "stranger /metrics": 403,
        "Prometheus /metrics": 200,
    }
    assert answers == [expected, expected]


def test_both_replicas_contend_for_the_lease_in_the_namespace_of_the_overlay(
    world: World, asked: list[AuditEvent]
) -> None:
    leases = [event for event in asked if event.resource == "leases"]
    assert {(event.namespace, event.name) for event in leases} == {(NAMESPACE, "bayplan")}
    assert len({event.credential for event in leases if event.verb == "update"}) == 2


def test_no_request_of_the_schedulers_waits_behind_those_of_others(world: World, asked: list[AuditEvent]) -> None:
    metrics = world.client.exchange("GET", "/metrics")[1].decode()
    requests = [
        line for line in metrics.splitlines() if line.startswith("apiserver_flowcontrol_dispatched_requests_total")
    ]
    flows = {name for name in ("bayplan", "bayplan-leases") for line in requests if f'flow_schema="{name}"' in line}
    assert flows == {"bayplan", "bayplan-leases"}
