"""A real Prometheus scrapes two replicas among strangers, and every query of the dashboard finds the replicas alone.

It asks as the shipped ServiceMonitor says: over HTTPS, with the token of the account that the component lets in.
"""

import asyncio
import contextlib
import itertools
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.health import get_local
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.objects import node, pod, pod_of_class
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import STOP_SECONDS, free_ports, stop_all
from e2e.controlplane.waiting import wait_until
from e2e.gangs.objects import GROUPS, group, install_crd, member
from e2e.scenarios.grafana import dashboard_queries, fill_in, query_of, resolve_variables, selectors_of
from e2e.scenarios.monitoring import bayplan_targets, install_scraper
from e2e.scenarios.outcomes import assert_alive_without_a_traceback, configuration, wait_bound
from e2e.scenarios.prometheus_server import PrometheusServer, Target, local_instance, secured_by
from tests.server.samples import metrics, observe_a_bound_pod, observe_a_rejected_pod, observe_everything

from bayplan.server.health import HealthChecks
from bayplan.server.http import HttpServer

pytestmark = pytest.mark.controlplane

QUERIES = list(dashboard_queries())
PODS_AT_ONCE = 10
START_SECONDS = 60.0
DATA_SECONDS = 60.0
SETTLED_SECONDS = 5.0
# Longer than this file's tests last on a busy machine: the replica that leads first leads to the end.
ELECTION = {"leaderElect": True, "leaseDuration": "600s", "renewDeadline": "500s"}


@contextlib.asynccontextmanager
async def serving_with_traffic() -> AsyncIterator[int]:
    subject = metrics()
    server = HttpServer(subject.registry, HealthChecks())

    async def schedule_pods() -> None:
        observe_everything(subject)
        while True:
            for attempts in range(1, 4):
                observe_a_bound_pod(subject, attempts=attempts)
            observe_a_rejected_pod(subject)
            await asyncio.sleep(0.05)

    port = await server.start("127.0.0.1", 0)
    traffic = asyncio.create_task(schedule_pods())
    try:
        yield port
    finally:
        traffic.cancel()
        await asyncio.wait([traffic])
        await server.stop()


@pytest.fixture(scope="module")
def sample_port() -> Iterator[int]:
    """The HTTP port of metrics with known figures, of no scheduler."""
    started: list[int] = []
    ready, done = threading.Event(), threading.Event()

    async def serve() -> None:
        async with serving_with_traffic() as port:
            started.append(port)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(START_SECONDS)
        yield started[0]
    finally:
        done.set()
        thread.join()


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    plane = start_control_plane(ControlPlaneOptions())
    install_crd(plane)
    for name, value in (("low", 1), ("high", 1000)):
        plane.client.create("priorityclasses", {"metadata": {"name": name}, "value": value})
    plane.client.create_all("nodes", [node(f"busy-{index}") for index in range(3)])
    taint = {"key": "room", "value": "one", "effect": "NoSchedule"}
    plane.client.create("nodes", node("full", cpu="1", labels={"room": "one"}, taints=[taint]))
    return plane


def put_work(client: ApiClient, turn: int) -> None:
    """Has pods and a gang bound, one pod preempted and one refused, and removes them."""
    on_full: Object = {"nodeSelector": {"room": "one"}, "tolerations": [{"key": "room", "operator": "Exists"}]}
    names = [f"turn-{turn}-{index}" for index in range(PODS_AT_ONCE * 2)]
    client.create_all("pods", [pod(name, "default") for name in names])
    client.create(GROUPS, group(f"gang-{turn}", "default", 2))
    members = [f"gang-{turn}-{index}" for index in range(2)]
    client.create_all("pods", [member(name, "default", f"gang-{turn}") for name in members])
    client.create("pods", pod_of_class(f"low-{turn}", "default", "low", **on_full))
    wait_bound(client, "default", [*names, *members, f"low-{turn}"])
    client.create("pods", pod_of_class(f"high-{turn}", "default", "high", **on_full))
    client.create("pods", pod(f"never-{turn}", "default", requests={"cpu": "1000"}))
    wait_until(
        lambda: "deletionTimestamp" in client.get("pods", f"low-{turn}", "default")["metadata"],
        f"the end of low-{turn}",
    )
    client.delete_all("pods", "default")
    client.delete_all(GROUPS, "default")


@pytest.fixture(scope="module")
def replicas(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[BayplanProcess]]:
    """Two replicas with pods that come and go, and too small a request rate for them; the first one leads."""
    identity, stop = install_bayplan(plane), threading.Event()
    settings = {**configuration(qps=PODS_AT_ONCE), "leaderElection": ELECTION}
    running: list[BayplanProcess] = []

    def traffic() -> None:
        for turn in itertools.count():
            put_work(plane.client, turn)
            if stop.wait(0.5):
                return

    thread = threading.Thread(target=traffic)
    try:
        for index in range(2):
            directory = tmp_path_factory.mktemp(f"replica-{index}")
            (secure_port,) = free_ports(1)
            running.append(BayplanProcess(directory, config=settings, kubeconfig=identity, secure_port=secure_port))
            running[-1].wait_ready()
        thread.start()
        yield running
        for process in running:
            assert_alive_without_a_traceback(process)
    finally:
        stop.set()
        if thread.ident is not None:
            thread.join()
        stop_all(running, STOP_SECONDS)


@pytest.fixture(scope="module")
def prometheus(
    prometheus_binaries: None,
    plane: ControlPlane,
    replicas: Sequence[BayplanProcess],
    sample_port: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[PrometheusServer]:
    """Prometheus with both replicas, kube-scheduler and kube-apiserver in one cluster, and the sample in another.

    The sample shares its job with Prometheus itself, as pods do that are found by their annotations.
    """
    directory = tmp_path_factory.mktemp("prometheus")
    token = install_scraper(plane, directory)
    kube_scheduler = plane.start_kube_scheduler({})
    targets = [
        *(target for process in replicas for target in bayplan_targets(process, token)),
        Target("kube-scheduler", kube_scheduler.port, settings=secured_by(token)),
        Target("apiserver", plane.ports.apiserver, settings=secured_by(token)),
        Target("kubernetes-pods", sample_port, cluster="there", namespace="scheduling"),
    ]
    with PrometheusServer(directory, targets) as server:
        wait_until(
            lambda: {one["health"] for one in server.api("targets", state="active")["activeTargets"]} == {"up"},
            "a scrape of every target",
            timeout_seconds=START_SECONDS,
            detail=lambda: str(server.api("targets", state="active")["activeTargets"]),
        )
        yield server


@pytest.fixture(scope="module")
def schedulers(replicas: Sequence[BayplanProcess], sample_port: int) -> set[str]:
    """The instances that are bayplan's, in both clusters."""
    return {*(local_instance(process.secure_port) for process in replicas), local_instance(sample_port)}


def test_strangers_export_metrics_of_the_same_names(prometheus: PrometheusServer, schedulers: set[str]) -> None:
    names = {selector.partition("{")[0] for _, query in QUERIES for selector in selectors_of(query)}
    shared = {name for name in names if {one["instance"] for one in prometheus.series(name)} - schedulers}
    assert {"scheduler_pending_pods", "process_resident_memory_bytes", "rest_client_requests_total"} <= shared


@pytest.mark.parametrize(("title", "query"), QUERIES)
def test_a_query_finds_data_of_bayplan_and_of_nobody_else(
    prometheus: PrometheusServer, schedulers: set[str], title: str, query: str
) -> None:
    of_replicas = fill_in(query, resolve_variables(prometheus, cluster="here"))
    values = wait_until(
        lambda: prometheus.values(of_replicas),
        f"data for {title}: {of_replicas}",
        timeout_seconds=DATA_SECONDS,
    )
    assert all(value >= 0 for value in values)
    for selector in selectors_of(fill_in(query, resolve_variables(prometheus))):
        assert {one["instance"] for one in prometheus.series(selector)} <= schedulers


@pytest.mark.parametrize(
    ("title", "chosen", "expected"),
    [
        ("Replicas", {}, 3),
        ("Replicas", {"cluster": "here"}, 2),
        ("Replicas", {"cluster": "there"}, 1),
        ("Replicas", {"namespace": "kube-system"}, 2),
        ("Replicas", {"job": "kubernetes-pods"}, 1),
        ("Nodes in use now", {"cluster": "there"}, 4),
        ("CPU allocated", {"cluster": "there"}, 0.75),
    ],
)
def test_a_panel_shows_what_is_chosen(
    prometheus: PrometheusServer, title: str, chosen: dict[str, str], expected: float
) -> None:
    query = fill_in(query_of(title), resolve_variables(prometheus, **chosen))
    assert prometheus.values(query) == [expected]


def test_a_pod_that_waits_is_counted_once_although_the_standby_knows_it_too(
    prometheus: PrometheusServer, replicas: Sequence[BayplanProcess]
) -> None:
    leader, standby = (local_instance(process.secure_port) for process in replicas)
    variables = resolve_variables(prometheus, cluster="here")
    query = fill_in(query_of("Pending pods"), variables)

    def of_both() -> tuple[list[float], list[float], list[float]]:
        # A scrape that fails changes what was known at its beginning, so ask about a moment that is settled.
        then = f"{time.time() - SETTLED_SECONDS}"
        of = 'sum(scheduler_pending_pods{{queue!="gated", instance="{}"}})'
        first, second = (prometheus.values(of.format(one), time=then) for one in (leader, standby))
        return first, second, prometheus.values(query, time=then)

    def both_know_some() -> bool:
        first, second, shown = of_both()
        assert shown == first
        return first > [0] and second > [0]

    wait_until(both_know_some, "pods that wait at both replicas", timeout_seconds=DATA_SECONDS)


def test_health_checks_are_scraped_beside_the_metrics_and_say_nothing_twice(
    prometheus: PrometheusServer, replicas: Sequence[BayplanProcess]
) -> None:
    ours = {local_instance(process.secure_port) for process in replicas}
    checks = wait_until(
        lambda: prometheus.series('kubernetes_healthcheck{job="bayplan", type="readyz"}'), "results of probes"
    )
    assert {one["instance"] for one in checks} == ours
    for metric, count in (("process_start_time_seconds", 2), ('up{metrics_path=""}', 2), ("up", 4)):
        name, _, matcher = metric.partition("{")
        found = prometheus.series(f'{name}{{job="bayplan", {matcher or "}"}')
        assert len(found) == count, metric


def test_promtool_finds_no_fault_in_the_metrics(
    prometheus_binaries: None, replicas: Sequence[BayplanProcess], sample_port: int
) -> None:
    status, sample = get_local(sample_port, "/metrics")
    assert status == 200
    for text in (sample, *(process.metrics() for process in replicas)):
        checked = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
        )
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
