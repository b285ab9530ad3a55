"""Fixtures of all end-to-end tests: one control plane, and bayplan running on it with its shipped rights."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from e2e.controlplane.bayplan_process import BayplanProcess, modules_loaded_once
from e2e.controlplane.build import BINARIES, binary, say_on_stderr
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import STOP_SECONDS, stop_all

# No test looks at kube-apiserver's memory, and several of them share the machine: fewer collections are less CPU.
GARBAGE_PERCENT = 400

StartControlPlane = Callable[[ControlPlaneOptions], ControlPlane]

# These take the longest: started last, one of them would run alone at the end.
LONGEST = (
    "test_readme.py",
    "test_typed_installation.py",
    "test_same_decisions.py",
    "test_alerts.py",
    "test_applying.py",
    "test_production.py",
    "test_simulate_foretells.py",
    "test_huge_pods.py",
    "test_control_plane_faults.py",
    "test_hostile_inputs.py",
    "test_image.py",
    "test_restart.py",
    "test_kube_scheduler_flags.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Has the files that take the longest go first."""
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options that tests with random clusters take their dice and their size from."""
    parser.addoption("--seed", type=int, default=1, help="of the random clusters that schedulers are compared on")
    parser.addoption("--plans", type=int, default=3, help="how many plans are made and carried out")
    parser.addoption(
        "--pods", type=int, default=100, help="how many of them decisions are compared about; `make oracle` has 200"
    )


class RunBayplan(Protocol):
    """Starts `bayplan run`; `config` is a file or a document, without one bayplan's default is used.

    It is forked from a process that has the modules loaded, unless it is given an environment or started `by_command`.
    """

    def __call__(
        self,
        config: Path | Mapping[str, Any] | None = None,
        *,
        kubeconfig: Path | None = None,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        wait_ready: bool = True,
        by_command: bool = False,
    ) -> BayplanProcess: ...


@pytest.fixture(autouse=True, scope="session")
def _modules_loaded_once() -> Iterator[None]:
    with modules_loaded_once():
        yield


@pytest.fixture(scope="session")
def control_plane_binaries(request: pytest.FixtureRequest) -> None:
    """Builds the control plane where it is not cached, with progress past pytest's capturing."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        for name in BINARIES:
            binary(name, say=say_on_stderr)


@pytest.fixture(scope="session")
def control_plane(control_plane_binaries: None) -> Iterator[ControlPlane]:
    """Etcd and kube-apiserver with RBAC on, shared by the session; `namespace` keeps tests apart."""
    with ControlPlane.start(ControlPlaneOptions(garbage_percent=GARBAGE_PERCENT)) as plane:
        yield plane


@pytest.fixture(scope="module")
def start_control_plane(control_plane_binaries: None) -> Iterator[StartControlPlane]:
    """Starts control planes with other options; all end with the module."""
    planes: list[ControlPlane] = []

    def start(options: ControlPlaneOptions) -> ControlPlane:
        planes.append(ControlPlane.start(replace(options, garbage_percent=GARBAGE_PERCENT)))
        return planes[-1]

    yield start
    for plane in planes:
        plane.stop()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace no other test has used; afterwards the cluster has no nodes and no pods at all."""
    name = f"test-{secrets.token_hex(4)}"
    client = control_plane.client
    client.create("namespaces", {"metadata": {"name": name}})
    yield name
    client.delete_all("nodes")
    for used in {found["metadata"]["namespace"] for found in client.list("pods")}:
        client.delete_all("pods", used)


@pytest.fixture(scope="session")
def bayplan_identity(control_plane: ControlPlane) -> Path:
    """A kubeconfig of the shipped service account with all shipped rights, applied with kubectl."""
    return install_bayplan(control_plane)


@pytest.fixture
def run_bayplan(bayplan_identity: Path, tmp_path: Path) -> Iterator[RunBayplan]:
    """Starts bayplan processes that end with the test; their logs are in the test's folder."""
    running: list[BayplanProcess] = []

    def run(
        config: Path | Mapping[str, Any] | None = None,
        *,
        kubeconfig: Path | None = None,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        wait_ready: bool = True,
        by_command: bool = False,
    ) -> BayplanProcess:
        process = BayplanProcess(
            tmp_path,
            config=config,
            kubeconfig=kubeconfig or bayplan_identity,
            arguments=arguments,
            environment=environment,
            name=f"bayplan-{len(running)}",
            by_command=by_command,
        )
        running.append(process)
        if wait_ready:
            process.wait_ready()
        return process

    yield run
    stop_all(running, STOP_SECONDS)
