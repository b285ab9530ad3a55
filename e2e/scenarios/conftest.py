"""Fixtures of the scenarios: one scheduler that serves all tests of a file."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, ApiError, Object, path_of
from e2e.controlplane.objects import pod_of_class
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import STOP_SECONDS
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.dry_runs import DRY_RUN
from e2e.scenarios.guarded_cluster import guard
from e2e.scenarios.outcomes import assert_alive_without_a_traceback


class CreateClass(Protocol):
    """Creates a PriorityClass."""

    def __call__(self, name: str, value: int, **fields: object) -> Object: ...


@pytest.fixture(scope="module")
def bayplan(bayplan_identity: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BayplanProcess]:
    """A running scheduler without a configuration file; it must survive the whole file and then end in order."""
    with BayplanProcess(tmp_path_factory.mktemp("bayplan"), kubeconfig=bayplan_identity) as process:
        yield process
        assert_alive_without_a_traceback(process)
        process.terminate()
        assert process.wait(STOP_SECONDS) == 0, process.log_tail()
        assert "Traceback" not in process.log()


@pytest.fixture
def client(control_plane: ControlPlane) -> ApiClient:
    """The admin's client of the shared control plane."""
    return control_plane.client


@pytest.fixture(scope="module")
def guarded_plane(start_control_plane: StartControlPlane) -> ControlPlane:
    """A control plane of the file's own with the production overlay's policies in force."""
    return guard(start_control_plane(ControlPlaneOptions()))


@pytest.fixture
def admin(guarded_plane: ControlPlane) -> ApiClient:
    """The admin's client of the guarded control plane."""
    return guarded_plane.client


@pytest.fixture
def create_class(client: ApiClient) -> Iterator[CreateClass]:
    """Creates PriorityClasses that go with the test."""
    made: list[str] = []

    def create(name: str, value: int, **fields: object) -> Object:
        created = client.create("priorityclasses", {"metadata": {"name": name}, "value": value, **fields})
        made.append(name)
        # The API server's admission hears of a class by a watch.
        wait_until(lambda: _is_known(client, name), f"admission to know PriorityClass {name}")
        return created

    yield create
    for name in made:
        with contextlib.suppress(ApiError):
            client.delete("priorityclasses", name)


def _is_known(client: ApiClient, name: str) -> bool:
    """Whether a pod of the PriorityClass would be admitted as far as its class goes."""
    try:
        client.request(
            "POST", path_of("pods", namespace="default") + DRY_RUN, pod_of_class("asked-about", "default", name)
        )
    except ApiError as error:
        return "no PriorityClass" not in str(error)
    return True


@pytest.fixture
def priority_classes(create_class: CreateClass) -> None:
    """The classes `low` (1) and `high` (1000)."""
    create_class("low", 1)
    create_class("high", 1000)


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
