"""`python -m e2e.bench.writes`: how much schedulers write while many pods wait.

Each contestant meets two workloads on the same control plane. In `flapping` nodes are full, more pods wait than can
be placed, taints come and go on node after node, and pods are deleted and created, so some are bound all the time.
In `storm` pods that no node can hold are created as fast as the API server takes them. Writes are counted by the
API server, from the start of the churn until nothing is written any more.
"""

import argparse
import asyncio
import itertools
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bayplan.cli.process import end_process
from e2e.bench.churn import Churn
from e2e.bench.cluster import delete_until_gone
from e2e.bench.contestants import BAYPLAN, BEFORE, SAMPLED, Contestant, Stage, contestants
from e2e.bench.workload import SCHEDULER_NAME, node_name
from e2e.controlplane.client import Object
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import Process

_NAMESPACE = "writes"
_STOP_SECONDS = 20.0
_POLL_SECONDS = 1.0
_QUIET_SECONDS = 15.0
"""Longer than pods back off: then nothing comes any more."""
_LIMIT_SECONDS = 300.0
_PODS_PER_NODE = 10
_HOLDABLE, _UNHOLDABLE = "100m", "1000"
_METRIC = re.compile(r"^apiserver_request_total\{(.*)\} ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_KINDS = {
    ("POST", "pods", "binding"): "binds",
    ("PATCH", "pods", "status"): "patches",
    ("POST", "events", ""): "events made",
    ("PATCH", "events", ""): "events changed",
}
_WRITES = tuple(_KINDS.values())


@dataclass(frozen=True, slots=True)
class Written:
    """What was written by kind; `churned` and `quiet` are seconds; CPU is in seconds of scheduler and API server."""

    counts: Counter[str]
    churned: float
    quiet: float
    cpu: float
    apiserver_cpu: float


def parse_writes(metrics: str) -> Counter[str]:
    """Returns the requests that an API server answered, by the kind of write, from the text of its metrics."""
    counts: Counter[str] = Counter(dict.fromkeys(_WRITES, 0))
    for labels, value in _METRIC.findall(metrics):
        each = dict(_LABEL.findall(labels))
        kind = _KINDS.get((each["verb"], each["resource"], each["subresource"]))
        if kind is not None:
            counts[kind] += int(float(value))
    return counts


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of things; rates are a second."""

    nodes: int
    waiting: int
    flaps: float
    deletions: float
    seconds: float
    storm: int


class Turn:
    """One contestant among one workload."""

    def __init__(self, plane: ControlPlane, contestant: Contestant, kubeconfig: Path, size: Size) -> None:
        self.plane, self.size = plane, size
        self._contestant, self._kubeconfig = contestant, kubeconfig
        self._serial = itertools.count()

    def flapping(self) -> Written:
        """Full nodes, more pods than they hold, taints that come and go, pods that are deleted and created."""
        return self._measure(self._pods(self.size.nodes * _PODS_PER_NODE + self.size.waiting), self._flap)

    def storm(self) -> Written:
        """Pods that no node can hold, as fast as they are taken."""

        async def burst(churn: Churn) -> None:
            await churn.create("pods", self._pods(self.size.storm, cpu=_UNHOLDABLE))

        return self._measure([], burst)

    async def _flap(self, churn: Churn) -> None:
        nodes, seconds = self.size.nodes, self.size.seconds
        bound = iter([each["metadata"]["name"] for each in self._bound()])

        # Of each node in order, however slow the API server is: whoever comes meets the same nodes at the end.
        turns = [asyncio.Lock() for _ in range(nodes)]

        async def taint(beat: int) -> None:
            index = beat // 2 % nodes
            async with turns[index]:
                await churn.taint(node_name(index), tainted=beat % 2 == 0)

        async def replace(_: int) -> None:
            await churn.delete_pod(_NAMESPACE, next(bound))
            await churn.create("pods", self._pods(1))

        async with asyncio.TaskGroup() as group:
            group.create_task(churn.on_the_beat(self.size.flaps, seconds, taint))
            group.create_task(churn.on_the_beat(self.size.deletions, seconds, replace))

    def _measure(self, before: Sequence[Object], churn: Callable[[Churn], Awaitable[None]]) -> Written:
        with tempfile.TemporaryDirectory(prefix="writes-", dir=self.plane.directory) as name:
            stage = Stage(self.plane, self._kubeconfig, Path(name), _NAMESPACE, Path(name) / "none.txt")
            process = self._contestant.start(stage)
            try:
                self._wait_until_quiet(process, _QUIET_SECONDS / 3)
                if before:
                    self._churn(lambda each: each.create("pods", before))
                    self._wait_until_quiet(process)
                return self._count(process, churn)
            finally:
                process.stop(_STOP_SECONDS)
                delete_until_gone(self.plane.client, [("pods", _NAMESPACE), ("events", _NAMESPACE)])
                for index in range(self.size.nodes):
                    self.plane.client.patch("nodes", node_name(index), {"spec": {"taints": None}})

    def _count(self, process: Process, churn: Callable[[Churn], Awaitable[None]]) -> Written:
        apiserver = self.plane.process("kube-apiserver")
        before, cpu, apiserver_cpu = self._writes(), process.cpu_seconds(), apiserver.cpu_seconds()
        started = time.monotonic()
        self._churn(churn)
        churned = time.monotonic()
        quiet = self._wait_until_quiet(process)
        counts = Counter({kind: number - before[kind] for kind, number in self._writes().items()})
        return Written(
            counts,
            churned - started,
            quiet - churned,
            process.cpu_seconds() - cpu,
            apiserver.cpu_seconds() - apiserver_cpu,
        )

    def _churn(self, act: Callable[[Churn], Awaitable[None]]) -> None:
        async def run() -> None:
            async with Churn(self.plane.admin_kubeconfig) as churn:
                await act(churn)

        asyncio.run(run())

    def _wait_until_quiet(self, process: Process, seconds: float = _QUIET_SECONDS) -> float:
        """Waits until nothing has been written for a while, and returns the moment of the last write."""
        deadline = time.monotonic() + _LIMIT_SECONDS
        seen, moment = self._writes(), time.monotonic()
        while time.monotonic() - moment < seconds:
            if time.monotonic() > deadline:
                raise TimeoutError("writes did not end")
            process.check_alive()
            time.sleep(_POLL_SECONDS)
            now = self._writes()
            if now != seen:
                seen, moment = now, time.monotonic()
        return moment

    def _writes(self) -> Counter[str]:
        status, body = self.plane.client.exchange("GET", "/metrics")
        if status != 200:
            raise RuntimeError(f"/metrics answered {status}")
        return parse_writes(body.decode())

    def _bound(self) -> list[Object]:
        return self.plane.client.list("pods", _NAMESPACE, fieldSelector="spec.nodeName!=")

    def _pods(self, count: int, *, cpu: str = _HOLDABLE) -> list[Object]:
        names = (f"pod-{next(self._serial):06d}" for _ in range(count))
        return [pod(name, _NAMESPACE, scheduler=SCHEDULER_NAME, requests={"cpu": cpu}) for name in names]


def _row(workload: str, contestant: Contestant, found: Written, pods: int) -> str:
    counts = found.counts
    writes, binds = sum(counts.values()), counts["binds"]
    each = f"{writes / binds:.2f} a bind" if binds else f"{writes / pods:.2f} a pod"
    return (
        f"{workload:9} {contestant.name:16} {each:>14}  "
        + "  ".join(f"{kind} {counts[kind]}" for kind in _WRITES)
        + f"  churn {found.churned:.1f} s, last write {found.quiet:.1f} s later, "
        f"CPU {found.cpu:.1f} s, API server {found.apiserver_cpu:.1f} s\n"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures everybody and prints a line for each workload."""
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.writes", description=__doc__)
    parser.add_argument("--nodes", type=int, default=200, help=f"nodes, each with room for {_PODS_PER_NODE} pods")
    parser.add_argument("--waiting", type=int, default=1900, help="pods beyond what the nodes hold")
    parser.add_argument("--flaps", type=float, default=20.0, help="changes of a taint a second")
    parser.add_argument("--deletions", type=float, default=20.0, help="pods deleted and created a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long")
    parser.add_argument("--storm", type=int, default=1500, help="pods that no node can hold, created at once")
    parser.add_argument("--before", type=Path, help=f"another checkout, whose bayplan takes part as {BEFORE}")
    parser.add_argument("--only", type=lambda text: text.split(","), help="contestants, in order")
    parser.add_argument("--workloads", type=lambda text: text.split(","), default=["flapping", "storm"])
    options = parser.parse_args(arguments)
    everyone = contestants(before=options.before)
    names = options.only or [SAMPLED, *([BEFORE] if options.before else []), BAYPLAN]
    size = Size(options.nodes, options.waiting, options.flaps, options.deletions, options.seconds, options.storm)
    with ControlPlane.start(ControlPlaneOptions(bench=True)) as plane:
        kubeconfig = install_bayplan(plane)
        plane.client.create("namespaces", {"metadata": {"name": _NAMESPACE}})
        nodes = (node(node_name(index), cpu="32", pods=str(_PODS_PER_NODE)) for index in range(size.nodes))
        plane.client.create_all("nodes", nodes)
        for workload in options.workloads:
            for name in names:
                turn = Turn(plane, everyone[name], kubeconfig, size)
                found: Written = getattr(turn, workload)()
                sys.stdout.write(_row(workload, everyone[name], found, size.storm))
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    end_process(main())
