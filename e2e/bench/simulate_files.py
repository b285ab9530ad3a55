"""How long `bayplan simulate` takes on a file as kubectl writes it: `python -m e2e.bench.simulate_files`.

Writes a cluster of so many nodes, running and pending pods, of 200 workloads, and has the command read and schedule it.
CPU time is that of the command alone, which other work on the machine disturbs less than the clock on the wall.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path

from e2e.controlplane.client import Object

WORKLOADS = 200
_IN_ONE_FILE = 100_000
_CREATED = "2026-01-01T00:00:00Z"
_ROW = "{:34}{:>9}{:>9}{:>10}\n"


def cluster(nodes: int, running: int, pending: int, seed: int) -> Iterator[Object]:
    """Give the objects of a cluster, with the bulk that an API server keeps about them."""
    rng = random.Random(seed)
    shapes = [(rng.choice((250, 500, 1000, 2000, 4000)), rng.choice((256, 512, 1024, 4096, 8192))) for _ in range(20)]
    for number in range(nodes):
        yield _node(number)
    for number in range(running + pending):
        workload = rng.randrange(WORKLOADS)
        on = f"node-{rng.randrange(nodes):06}" if number < running else None
        yield _pod(number, workload, shapes[workload % len(shapes)], on)


def _node(number: int) -> Object:
    name = f"node-{number:06}"
    amounts = {"cpu": "96", "memory": "384Gi", "pods": "110", "ephemeral-storage": "500Gi"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    conditions = [
        {"type": kind, "status": str(kind == "Ready"), "lastTransitionTime": _CREATED, "message": "kubelet says so"}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {"names": [f"registry.example.com/app-{each}@sha256:{'ab' * 32}"], "sizeBytes": 50 << 20} for each in range(5)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"node-{number}", "resourceVersion": str(number + 1), "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": conditions, "images": images},
    }


def _pod(number: int, workload: int, shape: tuple[int, int], on: str | None) -> Object:
    app = f"app-{workload}"
    tolerations = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    requests = {"cpu": f"{shape[0]}m", "memory": f"{shape[1]}Mi"}
    image = f"registry.example.com/team/{app}:v1"
    spec: Object = {
        "schedulerName": "bayplan",
        "priority": 0,
        "containers": [{"name": "main", "image": image, "resources": {"requests": requests}}],
        "tolerations": tolerations,
        "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
    }
    status: Object = {"phase": "Pending"}
    if on is not None:
        spec["nodeName"] = on
        state = {"name": "main", "ready": True, "image": image, "imageID": f"sha256:{'cd' * 32}"}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": _CREATED}
        status = {"phase": "Running", "startTime": _CREATED, "conditions": [ready], "containerStatuses": [state]}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-7d4b9c6f5d", "uid": app, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-7d4b9c6f5d-{number:07}",
            "namespace": f"team-{workload % 20}",
            "uid": f"10000000-0000-4000-8000-{number:012}",
            "resourceVersion": str(number + 1),
            "creationTimestamp": _CREATED,
            "labels": {"app": app, "pod-template-hash": "7d4b9c6f5d"},
            "ownerReferences": [owner],
        },
        "spec": spec,
        "status": status,
    }


def measure(arguments: list[str]) -> tuple[float, float, float]:
    """Run the command; return its seconds, its CPU seconds, and its peak of resident memory in MB."""
    started = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "bayplan", "simulate", *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"bayplan simulate ended with {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Measure the table, the explained table, and a count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--running", type=int, default=50_000)
    parser.add_argument("--pending", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given, settled, more = (Path(folder, name) for name in ("cluster", "settled", "more"))
        write(given, cluster(options.nodes, options.running, options.pending, options.seed))
        write(settled, cluster(options.nodes, options.running, 0, options.seed))
        write(more, [_pod(options.running + options.pending, 0, (1000, 1024), None)])
        megabytes = sum(each.stat().st_size for each in given.iterdir()) / 1e6
        sys.stdout.write(
            f"{options.nodes} nodes, {options.running} running, {options.pending} pending: {megabytes:.0f} MB\n"
        )
        sys.stdout.write(_ROW.format("", "seconds", "CPU s", "peak MB"))
        for name, arguments in (
            ("simulate", ["--cluster", given]),
            ("simulate --explain", ["--cluster", given, "--explain"]),
            ("simulate --count max, none pending", ["--cluster", settled, "--add", more, "--count", "max"]),
        ):
            seconds, cpu, peak = measure(list(map(str, arguments)))
            sys.stdout.write(_ROW.format(name, f"{seconds:.1f}", f"{cpu:.1f}", f"{peak:.0f}"))
            sys.stdout.flush()


def write(folder: Path, objects: Iterable[Object]) -> None:
    """Write objects as lists of some, one after the other: all of them would not fit into memory twice, nor one file.

    One file of a million pods is larger than the command takes.
    """
    folder.mkdir()
    left = iter(objects)
    for number in count():
        first = next(left, None)
        if first is None:
            return
        with (folder / f"{number:03}.json").open("w") as file:
            file.write('{"apiVersion":"v1","kind":"List","items":[')
            file.write(json.dumps(first, separators=(",", ":")))
            for each in islice(left, _IN_ONE_FILE - 1):
                file.write(",\n" + json.dumps(each, separators=(",", ":")))
            file.write("]}\n")


if __name__ == "__main__":
    main()
