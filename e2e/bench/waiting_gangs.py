"""`python -m e2e.bench.waiting_gangs`: what gangs that wait cost, where pods of lower priority run on all nodes.

None of them fits, also not without those pods. Once they have been tried for a while, bayplan's share of a CPU is
taken: while nothing happens, or with `--busy` while pods come and end, and nodes are closed and opened.
"""

import argparse
import itertools
import re
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from e2e.bench.workload import bench_node, node_name
from e2e.controlplane.bayplan_process import REPOSITORY, BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.objects import pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.gangs.objects import GROUPS, group, install_crd, member

_NAMESPACE = "waiting"
_SMALL = {"cpu": "100m", "memory": "64Mi"}
_LARGE = {"cpu": "100"}
_SMALL_PODS = 50
# By default 50 requests a second would be what the first texts of all pods wait for.
_CONFIGURATION: Object = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "clientConnection": {"qps": 5000, "burst": 5000},
    "profiles": [{"schedulerName": "bayplan"}],
}
_ROUNDS = re.compile(r"^scheduler_podgroup_schedule_attempts_total\{.*\} (\d+)", re.MULTILINE)


def put(plane: ControlPlane, nodes: int, lower: int, gangs: int, size: int) -> None:
    """Has pods of lower priority run on all nodes, and gangs wait whose pods are larger than a node."""
    client = plane.client
    client.create("namespaces", {"metadata": {"name": _NAMESPACE}})
    for name, value in (("low", 1), ("high", 1000)):
        client.create("priorityclasses", {"metadata": {"name": name}, "value": value})
    client.create_all("nodes", [bench_node(index) for index in range(nodes)])
    names = [bench_node(index)["metadata"]["name"] for index in range(nodes)]
    low = partial(pod, namespace=_NAMESPACE, scheduler="another", requests=_SMALL, priorityClassName="low")
    client.create_all("pods", [low(f"low-{at:05d}", node_name=names[at % nodes]) for at in range(lower)])
    client.create_all(GROUPS, [group(f"gang-{at:04d}", _NAMESPACE, size) for at in range(gangs)])
    high = partial(member, namespace=_NAMESPACE, requests=_LARGE, priorityClassName="high")
    numbers = itertools.product(range(gangs), range(size))
    client.create_all("pods", [high(f"gang-{at:04d}-{each}", of=f"gang-{at:04d}") for at, each in numbers])


def happen(client: ApiClient, nodes: int, number: int) -> None:
    """Has one more small pod run and an older one end, and closes a node or opens it again."""
    node = node_name(number // 2 % nodes)
    small = pod(
        f"small-{number:06d}", _NAMESPACE, scheduler="another", requests=_SMALL, priorityClassName="low", node_name=node
    )
    client.create("pods", small)
    if number >= _SMALL_PODS:
        client.delete("pods", f"small-{number - _SMALL_PODS:06d}", namespace=_NAMESPACE, grace_seconds=0)
    client.patch("nodes", node, {"spec": {"unschedulable": None if number % 2 else True}})


def rest(client: ApiClient, seconds: float, nodes: int, per_second: float, numbers: Iterator[int]) -> None:
    """Lets time pass, in which something happens so many times a second."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 1 / per_second if per_second else left))
        if per_second:
            happen(client, nodes, next(numbers))


def rounds(process: BayplanProcess) -> int:
    """Returns how many rounds there were."""
    return sum(int(each) for each in _ROUNDS.findall(process.metrics()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, and prints a line; 1 if it is a twentieth of a CPU or more."""
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.waiting_gangs", description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--lower", type=int, default=4000, help="pods of lower priority")
    parser.add_argument("--gangs", type=int, default=500)
    parser.add_argument("--size", type=int, default=8, help="pods of a gang")
    parser.add_argument("--busy", type=float, default=0.0, help="how often a second something happens")
    parser.add_argument("--settle-seconds", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--checkout", type=Path, default=REPOSITORY, help="whose bayplan")
    chosen = parser.parse_args(arguments)
    with ControlPlane.start(ControlPlaneOptions(bench=True)) as plane:
        install_crd(plane)
        put(plane, chosen.nodes, chosen.lower, chosen.gangs, chosen.size)
        (directory := plane.directory / "waiting").mkdir()
        kubeconfig = install_bayplan(plane)
        with BayplanProcess(
            directory, config=_CONFIGURATION, kubeconfig=kubeconfig, checkout=chosen.checkout
        ) as process:
            process.wait_ready()
            numbers = itertools.count()
            rest(plane.client, chosen.settle_seconds, chosen.nodes, chosen.busy, numbers)
            first, cpu, began = rounds(process), process.cpu_seconds(), time.monotonic()
            print(f"first {chosen.settle_seconds:.0f} s: {first} rounds, {cpu:.1f} s of CPU", flush=True)
            rest(plane.client, chosen.seconds, chosen.nodes, chosen.busy, numbers)
            seconds = time.monotonic() - began
            share = (process.cpu_seconds() - cpu) / seconds
            print(
                f"{chosen.gangs} gangs of {chosen.size}, {chosen.nodes} nodes, {chosen.lower} pods of lower priority: "
                f"{next(numbers)} happenings, {share:.1%} of a CPU over {seconds:.0f} s, "
                f"{rounds(process) - first} rounds"
            )
            process.check_alive()
    return int(share >= 0.05)


if __name__ == "__main__":
    sys.exit(main())
