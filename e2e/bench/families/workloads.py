"""What a family puts on a cluster, and how its nodes and pods are made.

Nodes have 4 CPUs, 32 GiB and 110 pods, pods ask for 100m and 500 MiB, as in scheduler_perf. Pods that exist from the
start are created on their nodes instead of being scheduled first; that is the only difference in what a scheduler sees.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from e2e.bench.workload import SCHEDULER_NAME, node_name
from e2e.controlplane.client import Object
from e2e.controlplane.objects import node, pod

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PLAIN = {"cpu": "100m", "memory": "500Mi"}
"""What a pod requests unless its template says otherwise."""

Template = Callable[[int], dict[str, Any]]
"""Labels, requests and spec of the i-th pod, as arguments of `pod`."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many nodes there are, pods on them from the start, and pods whose scheduling is measured."""

    nodes: int
    init: int
    measured: int

    def scaled(self, scale: float) -> "Size":
        """The same proportions, each number at least 1 unless it is 0."""
        return Size(*(max(1, round(each * scale)) if each else 0 for each in (self.nodes, self.init, self.measured)))


@dataclass(slots=True)
class Workload:
    """Objects by plural name in the order of their making, then pods; all of `measured` can be bound."""

    nodes: list[Object]
    namespaces: dict[str, dict[str, str]]
    measured: list[Object]
    init: list[Object] = field(default_factory=list)
    objects: list[tuple[str, Object]] = field(default_factory=list)
    pending: list[Object] = field(default_factory=list)
    """Pods that wait from the start and can never be bound."""

    @property
    def measured_namespace(self) -> str:
        """The namespace of the measured pods."""
        namespace: str = self.measured[0]["metadata"]["namespace"]
        return namespace


Build = Callable[[Size, str], Workload]
"""Makes a workload of a size; the second argument, its scope, keeps it apart from other turns'."""


def make_nodes(count: int, *, zones: tuple[str, ...] = (), resources: dict[str, str] | None = None) -> list[Object]:
    """Nodes that take the zones in turn."""
    return [
        node(
            node_name(i),
            cpu="4",
            memory="32Gi",
            resources={"ephemeral-storage": "100Gi", **(resources or {})},
            labels={ZONE: zones[i % len(zones)]} if zones else None,
        )
        for i in range(count)
    ]


def plain_pod(_: int) -> dict[str, Any]:
    """The template that adds nothing."""
    return {}


def make_pods(
    template: Template, prefix: str, count: int, namespace: str, nodes: list[Object] | None = None
) -> list[Object]:
    """Pods of a template; with nodes they are on them already, in turn."""
    return [
        pod(
            f"{prefix}-{i:05d}",
            namespace,
            scheduler=SCHEDULER_NAME,
            node_name=None if nodes is None else nodes[i % len(nodes)]["metadata"]["name"],
            **{"requests": PLAIN, **template(i)},
        )
        for i in range(count)
    ]


def make_workload(
    nodes: list[Object], size: Size, scope: str, measured: Template, init: Template | None = None
) -> Workload:
    """Init pods in the first namespace, measured ones in the second, as in scheduler_perf."""
    first, second = f"{scope}-0", f"{scope}-1"
    return Workload(
        nodes,
        {first: {}, second: {}},
        make_pods(measured, "measured", size.measured, second),
        make_pods(init or measured, "init", size.init, first, nodes),
    )
