"""Fixtures of the scenarios: one scheduler that serves all tests of a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient
from e2e.controlplane.plane import ControlPlane
from e2e.scenarios.outcomes import assert_alive_without_a_traceback

STOP_SECONDS = 10.0


@pytest.fixture(scope="module")
def bayplan(bayplan_identity: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BayplanProcess]:
    """A running scheduler without a configuration file; it must survive the whole file and then end in order."""
    process = BayplanProcess(tmp_path_factory.mktemp("bayplan"), config=None, kubeconfig=bayplan_identity)
    try:
        process.wait_ready()
        yield process
        assert_alive_without_a_traceback(process)
        process.terminate()
        assert process.wait(STOP_SECONDS) == 0, process.log_tail()
        assert "Traceback" not in process.log()
    finally:
        process.stop(STOP_SECONDS)


@pytest.fixture
def client(control_plane: ControlPlane) -> ApiClient:
    """The admin's client of the shared control plane."""
    return control_plane.client


@pytest.fixture
def priority_classes(client: ApiClient) -> Iterator[None]:
    """The classes `low` (1) and `high` (1000)."""
    values = {"low": 1, "high": 1000}
    for name, value in values.items():
        client.create("priorityclasses", {"metadata": {"name": name}, "value": value})
    yield
    for name in values:
        client.delete("priorityclasses", name)
