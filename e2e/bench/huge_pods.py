"""What pods of more than a megabyte cost a scheduler in memory: `python -m e2e.bench.huge_pods --pods 300`.

On a real API server, with nodes that have no room for them, there are such pods before the scheduler starts: most wait
for it, some wait for another scheduler, some have a node. What is large in them is what no decision reads: environment
variables and annotations. Then the API server is restarted, so that everything is listed anew, at last as many pods
again are created while all watches are open. It prints the largest resident memory during each of these, and fails if
that is more than the shipped manifests allow.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from e2e.controlplane.bayplan_process import REPOSITORY, BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.objects import container, node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.waiting import wait_until

LIMIT_BYTES = 2**30
"""The memory limit of the shipped Deployment (manifests/base/deployment.yaml)."""
NODES = 10
_ANNOTATIONS_BYTES = 200_000
_VALUE_BYTES = 64
_WORKERS = 8
_JSON_BYTES_PER_VARIABLE = 171
"""Of a variable as the API server sends it: name, value, and their two names in metadata.managedFields."""
_REST_SECONDS = 6.0
_AT_REST = 0.1


def huge_pod(
    name: str, namespace: str, size: int, *, scheduler: str = "bayplan", node_name: str | None = None
) -> Object:
    """Returns a pod that takes about `size` bytes as JSON; without a node it asks for more than any has."""
    variables = (size - _ANNOTATIONS_BYTES) // _JSON_BYTES_PER_VARIABLE
    environment = [{"name": f"VARIABLE_{number:06}", "value": "v" * _VALUE_BYTES} for number in range(variables)]
    amounts = {"cpu": "100"} if node_name is None else {}
    made = pod(
        name,
        namespace,
        scheduler=scheduler,
        node_name=node_name,
        containers=[container(amounts, env=environment)],
    )
    made["metadata"]["annotations"] = {"example.com/bulk": "a" * _ANNOTATIONS_BYTES}
    return made


def create_huge_pods(client: ApiClient, namespace: str, pods: int, size: int) -> None:
    """Has `pods` of them wait for us, a tenth as many wait for others, and a tenth as many be on nodes."""
    others = pods // 10
    with ThreadPoolExecutor(_WORKERS, thread_name_prefix="create") as pool:
        for name, count, options in (
            ("waits", pods, {}),
            ("theirs", others, {"scheduler": "another"}),
            ("placed", others, {"node_name": "n0"}),
        ):

            def create(number: int, name: str = name, options: dict[str, str] = options) -> None:
                client.create("pods", huge_pod(f"{name}-{number}", namespace, size, **options))

            for _ in pool.map(create, range(count)):
                pass


def wait_for_rest(process: BayplanProcess) -> None:
    """Return when the process is ready and has little left to do."""

    def is_at_rest() -> bool:
        before = process.cpu_seconds()
        time.sleep(_REST_SECONDS / 2)
        return process.is_ready() and process.cpu_seconds() - before < _AT_REST * _REST_SECONDS / 2

    time.sleep(_REST_SECONDS)
    wait_until(lambda: is_at_rest() or None, "bayplan at rest", timeout_seconds=300.0)


def measure(plane: ControlPlane, checkout: Path, pods: int, size: int) -> Iterator[tuple[str, BayplanProcess]]:
    """What was done last, and the process that it was done to."""
    client = plane.client
    client.create_all("nodes", [node(f"n{number}", cpu="0") for number in range(NODES)])
    for namespace in ("before", "after"):
        client.create("namespaces", {"metadata": {"name": namespace}})
    create_huge_pods(client, "before", pods, size)
    kubeconfig = install_bayplan(plane)
    with (
        tempfile.TemporaryDirectory() as folder,
        BayplanProcess(Path(folder), kubeconfig=kubeconfig, checkout=checkout) as process,
    ):
        process.wait_ready(timeout_seconds=120.0)
        wait_for_rest(process)
        yield "started", process
        plane.restart_apiserver()
        wait_for_rest(process)
        yield "API server restarted", process
        create_huge_pods(client, "after", pods, size)
        wait_for_rest(process)
        yield "as many created", process


def main() -> int:
    """Measure and print; 1 if the limit would have been met."""
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.huge_pods", description=__doc__)
    parser.add_argument("--pods", type=int, default=300, help="that wait for bayplan")
    parser.add_argument("--size", type=int, default=1_200_000, help="bytes of each as JSON")
    parser.add_argument("--checkout", type=Path, default=REPOSITORY, help="whose source runs")
    options = parser.parse_args()
    largest = 0
    with ControlPlane.start(ControlPlaneOptions(bench=True)) as plane:
        for done, process in measure(plane, options.checkout, options.pods, options.size):
            peak = process.peak_rss_bytes()
            largest = max(largest, peak)
            now = process.rss_bytes()
            Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # the next peak is that of what comes next
            sys.stdout.write(f"{done}: {options.pods} pods, peak {peak / 1e6:.0f} MB, now {now / 1e6:.0f} MB\n")
            sys.stdout.flush()
    return int(largest > LIMIT_BYTES)


if __name__ == "__main__":
    sys.exit(main())
