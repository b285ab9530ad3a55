"""`python -m e2e.bench.crowd`: how long others wait while one tenant's costly pods come, beside kube-scheduler.

Ordinary pods come at a fixed rate, first by themselves, then once for each shape of crowd, whose pods come at the same
time as fast as the API server takes them. Printed is the time from the sending of an ordinary pod's creation to its
bind, and how long after its first pod the crowd was bound.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from e2e.bench import environment
from e2e.bench.cluster import BenchCluster
from e2e.bench.contestants import BAYPLAN, SAMPLED, Contestant, Stage, contestants
from e2e.bench.measure import REST_SECONDS, flow, turn_of
from e2e.bench.results import Steady
from e2e.bench.watched import watched
from e2e.bench.workload import SCHEDULER_NAME
from e2e.controlplane.client import Object
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.objects import container, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.waiting import wait_until

_LIMIT_SECONDS = 300.0
_CREATORS = 4
_WARM_PODS = 100
_TERMS = 100
_MEGABYTE = 1_000_000
_APP = {"app": "crowd"}


def _preferring(*selectors: Object, kind: str = "podAntiAffinity") -> Object:
    terms = [
        {
            "weight": 1 + index % 100,
            "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector},
        }
        for index, selector in enumerate(selectors)
    ]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


def _expression(key: str, operator: str, *values: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


def _equal(_: int) -> Object:
    return _preferring(*({"matchLabels": {"app": f"app-{each}"}} for each in range(_TERMS)))


def _own(index: int) -> Object:
    return _preferring(*({"matchLabels": {"app": f"app-{index}-{each}"}} for each in range(_TERMS)))


def _own_matching(index: int) -> Object:
    return _preferring(*(_expression("app", "In", "crowd", f"a-{index}-{each}") for each in range(_TERMS)))


def _own_near(index: int) -> Object:
    selectors = (_expression("app", "In", "crowd", f"a-{index}-{each}") for each in range(_TERMS))
    return _preferring(*selectors, kind="podAffinity")


def _own_negative(index: int) -> Object:
    return _preferring(*(_expression(f"key-{index}-{each}", "DoesNotExist") for each in range(_TERMS)))


def _tolerations(_: int) -> Object:
    tolerations = [{"key": f"key-{each}", "operator": "Exists"} for each in range(_MEGABYTE // 40)]
    return {"tolerations": tolerations}


def _environment(_: int) -> Object:
    variables = [{"name": f"V{each}", "value": "x" * 1000} for each in range(_MEGABYTE // 1030)]
    return {"containers": [container({"cpu": "10m"}, env=variables)]}


def _node_terms(_: int) -> Object:
    terms = [_expression("kubernetes.io/hostname", "NotIn", f"no-{each}") for each in range(_MEGABYTE // 95)]
    required = {"nodeSelectorTerms": terms}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def _pod_terms(_: int) -> Object:
    return _preferring(*({"matchLabels": {"app": f"app-{each}"}} for each in range(_MEGABYTE // 130)))


@dataclass(frozen=True, slots=True)
class Shape:
    """A crowd of so many pods; `spec` gives what the one with this number has in its spec."""

    pods: int
    spec: Callable[[int], Object]
    annotations: int = 0
    """How many bytes of them each pod has."""
    labels: Callable[[int], dict[str, str]] = lambda _: _APP


SHAPES = {
    "equal-terms": Shape(1000, _equal),
    "own-terms": Shape(1000, _own),
    "own-matching-terms": Shape(1000, _own_matching),
    "own-near-terms": Shape(1000, _own_near),
    "own-negative-terms": Shape(1000, _own_negative),
    "own-labels": Shape(1000, _own_negative, labels=lambda index: {"app": f"crowd-{index}"}),
    "annotations": Shape(200, lambda _: {}, annotations=_MEGABYTE // 4),
    "environment": Shape(200, _environment),
    "tolerations": Shape(200, _tolerations),
    "node-terms": Shape(200, _node_terms),
    "pod-terms": Shape(200, _pod_terms),
}
"""The crowds by name: terms that all pods have, or each others; then a megabyte of what decisions read or do not."""


def crowd_pod(name: str, index: int, namespace: str) -> Object:
    """Returns one pod of a crowd."""
    shape = SHAPES[name]
    spec = {"requests": {"cpu": "10m"}, **shape.spec(index)}
    document = pod(f"{name}-{index}", namespace, scheduler=SCHEDULER_NAME, labels=shape.labels(index), **spec)
    if shape.annotations:
        document["metadata"]["annotations"] = {"example.com/text": "x" * shape.annotations}
    return document


@dataclass(frozen=True, slots=True)
class Found:
    """The figures of one contestant and one crowd, `name`; `crowd_seconds` is how long all of it took to be bound."""

    contestant: str
    name: str
    others: Steady
    crowd_seconds: float


def measure(
    cluster: BenchCluster, contestant: Contestant, kubeconfig: Path, options: argparse.Namespace, shape: str | None
) -> Found:
    """Has one contestant, just started, meet the ordinary pods among one crowd, or by themselves without `shape`."""
    pods = round(options.rate * options.seconds)
    ordinary, crowded = cluster.new_namespace(), cluster.new_namespace()
    with tempfile.TemporaryDirectory(prefix="crowd-", dir=cluster.plane.directory) as name:
        stage = Stage(cluster.plane, kubeconfig, Path(name), ordinary, Path(name) / "unused.txt")
        try:
            with watched(contestant, stage) as running:
                turn = turn_of(cluster, stage, running, _LIMIT_SECONDS)
                # What the first pods of a process pay for is not the crowd's doing.
                flow(turn, before=0, pods=_WARM_PODS, rate=options.rate)
                time.sleep(REST_SECONDS)
                began = time.monotonic()
                coming = threading.Thread(target=_come, args=(cluster, shape, crowded), name="crowd")
                coming.start()
                others = flow(turn, before=_WARM_PODS, pods=pods, rate=options.rate)
                coming.join()
                wait_until(
                    lambda: not cluster.is_any_unbound(crowded), "the crowd being bound", timeout_seconds=_LIMIT_SECONDS
                )
                return Found(contestant.name, shape or "none", others, time.monotonic() - began)
        finally:
            cluster.clear(crowded)
            cluster.clear(ordinary)


def _come(cluster: BenchCluster, shape: str | None, namespace: str) -> None:
    """Creates the pods of a crowd as fast as they are taken."""
    if shape is None:
        return
    with ThreadPoolExecutor(_CREATORS) as creators:
        create = cluster.plane.client.create
        list(creators.map(lambda i: create("pods", crowd_pod(shape, i, namespace)), range(SHAPES[shape].pods)))


def table(found: Sequence[Found]) -> str:
    """Returns what the others waited, per crowd and contestant."""
    lines = ["| crowd | | others: p50 ms | p99 | longest | crowd bound after s |", "|---|---|---:|---:|---:|---:|"]
    for each in sorted(found, key=lambda each: ["none", *SHAPES].index(each.name)):
        times = [f"{1000 * t:.0f}" for t in (each.others.p50, each.others.p99, each.others.longest)]
        lines.append(f"| {each.name} | {each.contestant} | {' | '.join(times)} | {each.crowd_seconds:.1f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 if others waited longer for bayplan than for kube-scheduler among any crowd."""
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.crowd", description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--rate", type=float, default=20.0, help="ordinary pods a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each flow of ordinary pods")
    parser.add_argument("--shapes", type=lambda text: text.split(","), default=list(SHAPES), help=", ".join(SHAPES))
    parser.add_argument("--only", type=lambda text: text.split(","), default=[SAMPLED, BAYPLAN], help="contestants")
    parser.add_argument("--profile", type=Path, metavar="DIR", help="where bayplan leaves a profile")
    options = parser.parse_args(arguments)
    found: list[Found] = []
    with ControlPlane.start(ControlPlaneOptions(bench=True)) as plane:
        kubeconfig = install_bayplan(plane)
        cluster = BenchCluster(plane)
        cluster.set_nodes(options.nodes)
        for shape in (None, *options.shapes):
            for name in options.only:
                found.append(measure(cluster, contestants(options.profile)[name], kubeconfig, options, shape))
                print(table(found[-1:]).splitlines()[-1], flush=True)
    print(f"\n{environment.date()}  {environment.commit()}\n\n{table(found)}")
    longest = {(each.name, each.contestant): each.others.longest for each in found}
    return int(
        any(longest[name, BAYPLAN] > longest.get((name, SAMPLED), 1e9) for name, who in longest if who == BAYPLAN)
    )


if __name__ == "__main__":
    sys.exit(main())
