"""Where a family's workload is put, and a contestant among it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.bench.contestants import Contestant, Stage
from e2e.bench.families.workloads import Workload
from e2e.bench.watched import Watched, watched
from e2e.controlplane.client import ApiClient
from e2e.controlplane.plane import ControlPlane


def create_namespaces(client: ApiClient, workload: Workload) -> None:
    """Creates the namespaces of a workload's pods, with their labels."""
    for name, labels in workload.namespaces.items():
        client.create("namespaces", {"metadata": {"name": name, "labels": labels}})


@contextmanager
def watched_among(
    workload: Workload, plane: ControlPlane, contestant: Contestant, kubeconfig: Path
) -> Iterator[Watched]:
    """Starts a contestant, with a watch of the measured pods; nothing of either is left after the block."""
    with tempfile.TemporaryDirectory(prefix="family-", dir=plane.directory) as name:
        directory = Path(name)
        # Nobody reads the file but the bare binder, which takes no part in families.
        stage = Stage(plane, kubeconfig, directory, workload.measured_namespace, directory / "none.txt")
        with watched(contestant, stage) as running:
            yield running
