"""Alerts fire when something really breaks, and end when it is mended, in a Prometheus that also scrapes strangers.

It scrapes as the shipped ServiceMonitor says, over HTTPS with a token. The shipped rules have the short durations of
`alert_rules.shortened`; thresholds and expressions stay. test_alert_rules.py has promtool try the shipped durations.
"""

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import Object
from e2e.controlplane.health import get_local
from e2e.controlplane.installation import NAMESPACE, SERVICE_ACCOUNT, install_bayplan
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import STOP_SECONDS, free_ports, stop_all
from e2e.controlplane.replicas import holder_of
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.alert_rules import shipped_groups, shortened, write_groups
from e2e.scenarios.monitoring import bayplan_targets, install_scraper
from e2e.scenarios.outcomes import configuration, wait_refused
from e2e.scenarios.prometheus_server import PrometheusServer, Target, local_instance, secured_by

pytestmark = pytest.mark.controlplane

# So long that only what never happens takes it.
ALERT_SECONDS = 300.0
LEASE = "bayplan"
SCRAPED = 'count(up{job="bayplan", metrics_path=""} == 1)'
# Twice the defaults: nobody loses the Lease because the machine is busy.
ELECTION = {"leaderElect": True, "leaseDuration": "30s", "renewDeadline": "20s"}


class Installation:
    """Two replicas on a control plane of their own; each starts again on its ports, as a pod does, and is probed."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.config = folder / "config.yaml"
        self.settings: Object = {**configuration(), "leaderElection": ELECTION}
        self.config.write_text(json.dumps(self.settings))
        self._folders = [folder / "a", folder / "b"]
        for each in self._folders:
            each.mkdir()
        self._identity = install_bayplan(plane)
        ports = free_ports(4)
        self._ports = [(ports[0], ports[1]), (ports[2], ports[3])]
        self.replicas: list[BayplanProcess] = []
        for index in range(2):
            self.replicas.append(self._start(index))
            self.replicas[index].wait_ready()

    def _start(self, index: int, arguments: Sequence[str] = ()) -> BayplanProcess:
        http_port, secure_port = self._ports[index]
        return BayplanProcess(
            self._folders[index],
            config=self.config,
            kubeconfig=self._identity,
            arguments=arguments,
            http_port=http_port,
            secure_port=secure_port,
        )

    def instance(self, index: int) -> str:
        """What Prometheus calls a replica."""
        return local_instance(self._ports[index][1])

    def leader(self) -> int:
        """Returns which replica leads."""
        leads = f'leader_election_master_status{{name="{LEASE}"}} 1.0'

        def found() -> list[int]:
            return [
                index for index, each in enumerate(self.replicas) if each.exit_code is None and leads in each.metrics()
            ]

        (index,) = wait_until(found, "a leader", timeout_seconds=ALERT_SECONDS)
        return index

    def start_what_ended(self, arguments: Sequence[str] = ()) -> None:
        """Starts the replicas that ended, each on the ports it had, and waits until they are ready."""
        for index, process in enumerate(self.replicas):
            if process.exit_code is not None:
                self.replicas[index] = self._start(index, arguments)
                self.replicas[index].wait_ready()

    def restart(self, index: int) -> None:
        """Has a replica end at once and start again; does not wait for it."""
        self.end(index)
        self.replicas[index] = self._start(index)

    def end(self, index: int) -> None:
        """Has a replica end at once."""
        self.replicas[index].kill()
        self.replicas[index].wait()

    def free_lease(self) -> None:
        """Takes the Lease of a leader that ended away; that it runs out is shown in test_leader_election.py."""
        self.plane.client.delete("leases", LEASE, namespace=NAMESPACE)

    def probe(self) -> None:
        """Asks every replica once whether it is ready, as its kubelet does."""
        for _, secure_port in self._ports:
            with contextlib.suppress(OSError, http.client.HTTPException):
                get_local(secure_port, "/readyz", tls=True)


@pytest.fixture(scope="module")
def installation(
    start_control_plane: StartControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    plane = start_control_plane(ControlPlaneOptions())
    plane.client.create("nodes", node("n1"))
    installed = Installation(plane, tmp_path_factory.mktemp("installation"))
    stop = threading.Event()

    def probe() -> None:
        while not stop.wait(1.0):
            installed.probe()

    kubelet = threading.Thread(target=probe)
    kubelet.start()
    yield installed
    stop.set()
    kubelet.join()
    stop_all(installed.replicas, STOP_SECONDS)


@pytest.fixture(scope="module")
def prometheus(
    prometheus_binaries: None, installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrometheusServer]:
    """Prometheus with both replicas, kube-scheduler and kube-apiserver, and the rules with shorter durations."""
    directory, plane = tmp_path_factory.mktemp("prometheus"), installation.plane
    token = install_scraper(plane, directory)
    kube_scheduler = plane.start_kube_scheduler({})
    targets = [
        *(target for process in installation.replicas for target in bayplan_targets(process, token)),
        Target("kube-scheduler", kube_scheduler.port, settings=secured_by(token)),
        Target("apiserver", plane.ports.apiserver, settings=secured_by(token)),
    ]
    with PrometheusServer(directory, targets, [write_groups(directory, shortened(shipped_groups()))]) as server:
        yield server


def firing(prometheus: PrometheusServer) -> dict[str, dict[str, Any]]:
    """The alerts that fire now, by name; of several of one name the last."""
    alerts: list[dict[str, Any]] = prometheus.api("alerts")["alerts"]
    return {each["labels"]["alertname"]: each for each in alerts if each["state"] == "firing"}


def wait_calm(installation: Installation, prometheus: PrometheusServer) -> None:
    """Waits until both replicas are scraped, one leads, and no alert fires or is about to."""

    def is_calm() -> bool:
        return prometheus.values(SCRAPED) == [2.0] and not prometheus.api("alerts")["alerts"]

    installation.leader()
    wait_until(
        is_calm, "no alert", timeout_seconds=ALERT_SECONDS, detail=lambda: str(prometheus.api("alerts")["alerts"])
    )


@pytest.fixture
def calm(installation: Installation, prometheus: PrometheusServer) -> None:
    """Both replicas run, and nothing fires."""
    installation.start_what_ended()
    wait_calm(installation, prometheus)


def wait_firing(prometheus: PrometheusServer, alert: str) -> dict[str, Any]:
    """Waits until an alert fires, and returns it."""
    return wait_until(
        lambda: firing(prometheus).get(alert),
        f"{alert} firing",
        timeout_seconds=ALERT_SECONDS,
        detail=lambda: str(prometheus.api("alerts")),
    )


def wait_resolved(prometheus: PrometheusServer, alert: str) -> None:
    """Waits until an alert has ended."""
    wait_until(
        lambda: alert not in firing(prometheus),
        f"the end of {alert}",
        timeout_seconds=ALERT_SECONDS,
        detail=lambda: str(prometheus.api("alerts")),
    )


def lease_allowed(plane: ControlPlane, *, allowed: bool) -> None:
    """Gives the scheduler's account its right to the Lease, or takes it."""
    subject = {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE}
    plane.client.patch("rolebindings", "bayplan", {"subjects": [subject] if allowed else []}, namespace=NAMESPACE)


@pytest.mark.usefixtures("calm")
def test_a_killed_leader_whose_lease_nobody_can_get_is_told_until_the_standby_leads(
    installation: Installation, prometheus: PrometheusServer
) -> None:
    leader = installation.leader()
    # Otherwise the standby takes over within seconds, and whether an alert sees it is a matter of speed.
    lease_allowed(installation.plane, allowed=False)
    try:
        installation.replicas[leader].kill()
        alert = wait_firing(prometheus, "BayplanNoLeader")
        assert alert["labels"]["severity"] == "critical"
        assert f"the Lease {LEASE}." in alert["annotations"]["description"]
        wait_firing(prometheus, "BayplanReplicaDown")
        assert "BayplanDown" not in firing(prometheus)
    finally:
        installation.free_lease()
        lease_allowed(installation.plane, allowed=True)
    wait_resolved(prometheus, "BayplanNoLeader")
    assert "BayplanReplicaDown" in firing(prometheus)
    installation.start_what_ended()
    wait_resolved(prometheus, "BayplanReplicaDown")
    assert installation.leader() != leader


@pytest.mark.usefixtures("calm")
def test_while_the_api_server_is_away_no_replica_knows_prometheus_and_that_is_told_until_it_is_back(
    installation: Installation, prometheus: PrometheusServer
) -> None:
    installation.plane.stop_apiserver()
    try:
        alert = wait_firing(prometheus, "BayplanDown")
        assert alert["labels"]["severity"] == "critical"
    finally:
        installation.plane.start_apiserver()
    wait_resolved(prometheus, "BayplanDown")


@pytest.mark.usefixtures("calm")
def test_where_everybody_may_read_the_metrics_an_api_server_that_is_away_is_told_as_what_it_is(
    installation: Installation, prometheus: PrometheusServer
) -> None:
    for index in range(2):
        installation.end(index)
    installation.free_lease()
    installation.start_what_ended(["--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics"])
    wait_calm(installation, prometheus)
    standby = 1 - installation.leader()
    installation.plane.stop_apiserver()
    try:
        alert = wait_firing(prometheus, "BayplanAPIServerUnreachable")
        assert alert["labels"]["severity"] == "critical"
        # The leader ends, for it cannot renew; the standby stays.
        alert = wait_firing(prometheus, "BayplanReplicaDown")
        assert alert["labels"]["instance"] == installation.instance(1 - standby)
    finally:
        installation.plane.start_apiserver()
    wait_resolved(prometheus, "BayplanAPIServerUnreachable")
    installation.free_lease()
    wait_until(lambda: holder_of(installation.plane, LEASE), "a leader", timeout_seconds=ALERT_SECONDS)
    assert installation.leader() == standby


def rights_of(plane: ControlPlane) -> list[Object]:
    """The rules of the scheduler's ClusterRole."""
    rules: list[Object] = json.loads(plane.kubectl("get", "clusterrole", "bayplan", "-o", "json"))["rules"]
    return rules


@pytest.mark.usefixtures("calm")
def test_a_replica_that_may_not_list_nodes_is_told_until_it_may(
    installation: Installation, prometheus: PrometheusServer
) -> None:
    standby = 1 - installation.leader()
    rules = rights_of(installation.plane)
    without = [rule for rule in rules if "nodes" not in rule["resources"]]
    assert without != rules
    installation.plane.client.patch("clusterroles", "bayplan", {"rules": without})
    try:
        installation.restart(standby)
        alert = wait_firing(prometheus, "BayplanNotReady")
        assert alert["labels"]["instance"] == installation.instance(standby)
        assert alert["labels"]["severity"] == "warning"
    finally:
        installation.plane.client.patch("clusterroles", "bayplan", {"rules": rules})
    wait_resolved(prometheus, "BayplanNotReady")
    assert installation.replicas[standby].is_ready()


@pytest.mark.usefixtures("calm")
def test_a_refused_configuration_is_told_until_a_good_one_is_in_force(
    installation: Installation, prometheus: PrometheusServer
) -> None:
    def put(settings: Object) -> None:
        complete = installation.config.with_suffix(".new")
        complete.write_text(json.dumps(settings))
        complete.rename(installation.config)

    put({**installation.settings, "parallelism": -1})
    alert = wait_firing(prometheus, "BayplanConfigRefused")
    assert alert["labels"]["severity"] == "warning"
    put(installation.settings)
    wait_resolved(prometheus, "BayplanConfigRefused")


@pytest.mark.usefixtures("calm")
def test_a_pod_that_finds_no_room_is_told_until_it_is_gone(
    installation: Installation, prometheus: PrometheusServer
) -> None:
    client = installation.plane.client
    client.create("pods", pod("too-big", "default", requests={"cpu": "1000"}))
    wait_refused(client, "default", "too-big")
    alert = wait_firing(prometheus, "BayplanPendingPodsGrowOld")
    assert alert["annotations"]["description"].startswith("The pod that waits longest is tried for 1")
    client.delete("pods", "too-big", namespace="default")
    wait_resolved(prometheus, "BayplanPendingPodsGrowOld")


@pytest.mark.usefixtures("calm")
def test_an_installation_that_is_gone_is_told_until_it_is_back(
    installation: Installation, prometheus: PrometheusServer
) -> None:
    for index in range(2):
        installation.end(index)
    alert = wait_firing(prometheus, "BayplanDown")
    assert alert["labels"]["severity"] == "critical"
    installation.start_what_ended()
    wait_resolved(prometheus, "BayplanDown")
