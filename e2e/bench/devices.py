"""`python -m e2e.bench.devices`: pods that claim a device each, before both schedulers, on nodes that are partly taken.

The claims are made with the pods, as no controller makes them from templates here. At the end of each turn all claims
are read: no device may have been given away twice.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from e2e.bench import environment
from e2e.bench.contestants import BAYPLAN, SAMPLED, contestants
from e2e.bench.families.turn import Result, take_turn
from e2e.bench.families.workloads import Workload
from e2e.bench.report import markdown
from e2e.bench.workload import SCHEDULER_NAME, bench_node, node_name
from e2e.controlplane.client import ApiClient
from e2e.controlplane.devices import DRIVER, claiming, device_class, devices_of, resource_claim, resource_slice
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions

_REQUESTS = {"cpu": "100m", "memory": "500Mi"}
_MB = 1_000_000
_WORKERS = 16


@dataclass(frozen=True, slots=True)
class Row:
    """A turn: how much of the devices was taken before, and how many of them two claims had afterwards."""

    full: float
    repeat: int
    given_twice: int
    result: Result


def workload(nodes: int, devices: int, pods: int, full: float, namespace: str) -> Workload:
    """Returns as many pods as there are devices left, and no more than `pods`, each with a claim of its own."""
    taken = round(nodes * devices * full)
    measured = [f"pod-{index:05d}" for index in range(min(pods, nodes * devices - taken))]
    claims = [resource_claim(f"taken-{index:05d}", namespace) for index in range(taken)]
    claims += [resource_claim(name, namespace) for name in measured]
    return Workload(
        [],
        {namespace: {}},
        [claiming(name, namespace, name, scheduler=SCHEDULER_NAME, requests=_REQUESTS) for name in measured],
        objects=[
            ("deviceclasses", device_class()),
            *(("resourceslices", resource_slice(node_name(index), devices)) for index in range(nodes)),
            *(("resourceclaims", claim) for claim in claims),
        ],
    )


def take(client: ApiClient, made: Workload, nodes: int) -> None:
    """Allocates the claims that are taken before, over all nodes in turn."""
    namespace = made.measured_namespace
    names = [each["metadata"]["name"] for kind, each in made.objects if kind == "resourceclaims"]

    def allocate(index: int) -> None:
        where = node_name(index % nodes)
        result = {"request": "gpus", "driver": DRIVER, "pool": where, "device": f"gpu-{index // nodes}"}
        field = {"key": "metadata.name", "operator": "In", "values": [where]}
        selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        change = {"status": {"allocation": {"devices": {"results": [result]}, "nodeSelector": selector}}}
        client.patch("resourceclaims", names[index], change, namespace=namespace, subresource="status")

    with ThreadPoolExecutor(_WORKERS) as pool:
        list(pool.map(allocate, range(sum(name.startswith("taken") for name in names))))


def table(rows: Sequence[Row]) -> str:
    """Returns a line for each turn."""
    heads = ["taken before", "scheduler", "pods/s", "CPU ms/pod", "peak MB", "bound", "given twice"]
    cells = [
        [
            f"{row.full:.0%}",
            row.result.contestant,
            f"{row.result.pods_per_second:.1f}",
            f"{row.result.cpu_ms_per_pod:.2f}",
            f"{row.result.peak_rss / _MB:.0f}",
            f"{row.result.bound}/{row.result.pods}",
            str(row.given_twice),
        ]
        for row in rows
    ]
    return "\n".join(markdown(heads, cells))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, and prints the table; 1 if pods were left unbound or a device was given away twice."""
    chosen = _options(arguments)
    rows: list[Row] = []
    with ControlPlane.start(ControlPlaneOptions()) as plane:
        kubeconfig = install_bayplan(plane)
        plane.client.create_all("nodes", [bench_node(index) for index in range(chosen.nodes)])
        for repeat in range(chosen.repeat):
            for full in chosen.full:
                for name in chosen.only if repeat % 2 == 0 else chosen.only[::-1]:
                    made = workload(chosen.nodes, chosen.devices, chosen.pods, full, f"devices-{len(rows):03d}")
                    twice: list[int] = []

                    def count(namespace: str = made.measured_namespace, twice: list[int] = twice) -> None:
                        given = devices_of(plane.client.list("resourceclaims", namespace))
                        twice.append(len(given) - len(set(given)))

                    result = take_turn(
                        plane,
                        contestants()[name],
                        made,
                        kubeconfig,
                        limit=chosen.limit_seconds,
                        before=lambda made=made: take(plane.client, made, chosen.nodes),  # type: ignore[misc]
                        after=count,
                    )
                    rows.append(Row(full, repeat, sum(twice), result))
                    print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    print(f"\n{environment.date()}  {environment.commit()}  {json.dumps(asdict(environment.machine()))}\n")
    print(f"{chosen.nodes} nodes, {chosen.devices} devices each, {chosen.pods} pods\n\n{table(rows)}")
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    return int(any(row.given_twice or row.result.bound < row.result.pods for row in rows))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.devices", description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--devices", type=int, default=8, help="of each node")
    parser.add_argument("--pods", type=int, default=4000)
    parser.add_argument("--full", type=float, nargs="+", default=[0.0, 0.5, 0.9], help="share of devices taken before")
    parser.add_argument("--only", nargs="+", choices=[SAMPLED, BAYPLAN], default=[SAMPLED, BAYPLAN], help="contestants")
    parser.add_argument("--repeat", type=int, default=1, help="turns of each; every second one in reverse order")
    parser.add_argument("--limit-seconds", type=float, default=240.0, help="a turn ends after this long")
    parser.add_argument("--json", type=Path, help="file for all figures")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
