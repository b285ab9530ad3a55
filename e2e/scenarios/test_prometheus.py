"""A real Prometheus scrapes a scheduler at work and answers every query of the dashboard."""

import asyncio
import contextlib
import itertools
import json
import math
import os
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.health import get_local, is_healthy
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import STOP_SECONDS, Process, free_ports
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import assert_alive_without_a_traceback, configuration, wait_bound
from tests.server.samples import metrics, observe_a_bound_pod, observe_a_rejected_pod, observe_everything

from bayplan.server.health import HealthChecks
from bayplan.server.http import HttpServer

pytestmark = pytest.mark.controlplane

DASHBOARD = Path(__file__).parents[2] / "manifests/dashboards/bayplan.json"
JOB = "bayplan"
SAMPLE_JOB = "sample"
VARIABLES = {"$job": JOB, "$instance": ".+", "$__rate_interval": "10s"}
PODS_AT_ONCE = 10
START_SECONDS = 60.0
DATA_SECONDS = 30.0


def dashboard_queries() -> list[str]:
    queries = []
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            queries.append(expression)
    return queries


class Prometheus:
    """A Prometheus server of this test's own, asked over its HTTP API."""

    def __init__(self, port: int) -> None:
        self._port = port

    def api(self, path: str, **parameters: str) -> dict[str, Any]:
        status, text = get_local(self._port, f"/api/v1/{path}?{urlencode(parameters)}")
        answer = json.loads(text)
        assert (status, answer["status"]) == (200, "success"), text
        assert not answer.get("warnings"), text
        data: dict[str, Any] = answer["data"]
        return data

    def values(self, query: str) -> list[float]:
        """The numbers an instant query gives now; a quantile over no observations is not a number and left out."""
        series = self.api("query", query=query)["result"]
        return [number for one in series if not math.isnan(number := float(one["value"][1]))]


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
def busy_scheduler(
    control_plane: ControlPlane, bayplan_identity: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BayplanProcess]:
    """A running bayplan with pods that come and go, one that never fits, and too small a request rate for them."""
    client, directory = control_plane.client, tmp_path_factory.mktemp("busy")
    stop = threading.Event()

    def traffic() -> None:
        for turn in itertools.count():
            names = [f"turn-{turn}-{index}" for index in range(PODS_AT_ONCE * 2)]
            client.create_all("pods", [pod(name, "default") for name in names])
            wait_bound(client, "default", names)
            client.delete_all("pods", "default")
            client.create("pods", pod(f"never-{turn}", "default", requests={"cpu": "1000"}))
            if stop.wait(0.5):
                return

    process = BayplanProcess(directory, config=configuration(qps=PODS_AT_ONCE), kubeconfig=bayplan_identity)
    thread = threading.Thread(target=traffic)
    try:
        process.wait_ready()
        client.create_all("nodes", [node(f"busy-{index}") for index in range(3)])
        thread.start()
        yield process
        assert_alive_without_a_traceback(process)
    finally:
        stop.set()
        if thread.ident is not None:
            thread.join()
        process.stop(STOP_SECONDS)
        client.delete_all("nodes")
        client.delete_all("pods", "default")


@pytest.fixture(scope="session")
def prometheus_binaries() -> None:
    """Installs Debian's prometheus package where it is missing; without it these tests fail, they do not skip."""
    if shutil.which("prometheus") and shutil.which("promtool"):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.fail("prometheus and promtool are needed: install the Debian package `prometheus`")
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "prometheus"]):
        result = subprocess.run(
            ["apt-get", *command],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            pytest.fail(f"`apt-get {' '.join(command)}` failed; install prometheus by hand:\n{result.stderr}")


@pytest.fixture(scope="module")
def prometheus(
    prometheus_binaries: None,
    busy_scheduler: BayplanProcess,
    sample_port: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Prometheus]:
    """Prometheus with the scheduler and the sample to scrape, once a second."""
    directory = tmp_path_factory.mktemp("prometheus")
    config = directory / "prometheus.yml"
    ports = {JOB: busy_scheduler.http_port, SAMPLE_JOB: sample_port}
    scrapes = [{"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]} for job, port in ports.items()]
    # JSON is YAML too.
    config.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": scrapes}))
    (port,) = free_ports(1)
    process = Process(
        "prometheus",
        [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=warn",
        ],
        log_path=directory / "prometheus.log",
        directory=directory,
    )
    try:
        process.wait_ready(lambda: is_healthy(port, path="/-/ready"))
        yield Prometheus(port)
    finally:
        process.stop(STOP_SECONDS)


def test_prometheus_scrapes_without_an_error(prometheus: Prometheus) -> None:
    def scraped() -> list[tuple[str, str]]:
        targets = prometheus.api("targets", state="active")["activeTargets"]
        known = [(one["health"], one["lastError"]) for one in targets if one["health"] != "unknown"]
        return known if len(known) == 2 else []

    assert wait_until(scraped, "the first scrapes", timeout_seconds=START_SECONDS) == [("up", "")] * 2


@pytest.mark.parametrize("query", dashboard_queries())
def test_prometheus_answers_a_query_of_the_dashboard_with_data(prometheus: Prometheus, query: str) -> None:
    assert "$" not in query
    values = wait_until(
        lambda: prometheus.values(query),
        f"data for {query}",
        timeout_seconds=DATA_SECONDS,
    )
    assert all(value >= 0 for value in values)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('max(bayplan_nodes_in_use{job="sample"})', 4.0),
        ('max(bayplan_allocation_ratio{job="sample", resource="cpu"})', 0.75),
    ],
)
def test_prometheus_reads_the_packing_as_it_is(prometheus: Prometheus, query: str, expected: float) -> None:
    assert wait_until(lambda: prometheus.values(query), query, timeout_seconds=DATA_SECONDS) == [expected]


def test_promtool_finds_no_fault_in_the_metrics(
    prometheus_binaries: None, busy_scheduler: BayplanProcess, sample_port: int
) -> None:
    for port in (busy_scheduler.http_port, sample_port):
        status, text = get_local(port, "/metrics")
        assert status == 200
        checked = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
        )
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
