"""What the nodes of a trace's pools hold, which pool a pod gets a new node of, and how many new nodes that takes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bayplan.api.meta_objects import ObjectMeta, OwnerReference
from bayplan.api.objects import Container, Node, NodeStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from bayplan.api.tolerations import Tolerance
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, MEMORY, PODS, node_allocatable
from bayplan.replay.trace import NodePool, PodTemplate, Trace, requests_of

_DAEMONS_OWNER: Final = OwnerReference("apps/v1", "DaemonSet", "daemons", "daemons", controller=True)

_DAEMONS_PRIORITY: Final = 2_000_001_000
"""That of the class system-node-critical: they are not evicted."""

Amounts = Mapping[str, int]
"""By resource name: milli-CPU for cpu, else bytes or counts; of pods there is the number."""


def daemons_on(pool: NodePool, node_name: str) -> PodInfo | None:
    """Return the one pod that stands for all pods of DaemonSets on a node of the pool; None if they ask for nothing."""
    if not pool.daemons:
        return None
    name = f"daemons-{node_name}"
    container = Container(name="daemons", resources=ResourceRequirements(requests=pool.daemons))
    return PodInfo(
        Pod(
            metadata=ObjectMeta(name=name, namespace="kube-system", uid=name, owner_references=[_DAEMONS_OWNER]),
            spec=PodSpec(node_name=node_name, priority=_DAEMONS_PRIORITY, containers=[container]),
            status=PodStatus(phase="Running"),
        )
    )


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool as numbers."""

    name: str
    milli_cpu: int
    """What is paid for a node."""
    room: Amounts
    """What an empty node has for pods that are not of DaemonSets."""


class Pools:
    """The pools of a trace, in its order, and which of them each template's pods may be on."""

    def __init__(self, trace: Trace) -> None:
        self.pools: Sequence[Pool] = [_pool(each) for each in trace.header.pools]
        self.asked: Mapping[str, Amounts] = {
            name: {**requests_of(template).amounts, PODS: 1} for name, template in trace.templates.items()
        }
        """What a pod of each template asks for."""
        self.of_template: Mapping[str, Sequence[int]] = {
            name: [
                index
                for index, each in enumerate(trace.header.pools)
                if _allows(each, template) and _holds(self.pools[index].room, self.asked[name])
            ]
            for name, template in trace.templates.items()
        }
        """The indexes of the pools on whose empty nodes a pod of the template fits."""

    def that_fit_nowhere(self) -> list[str]:
        """Return the templates whose pods fit on no empty node, in the order of their names."""
        return sorted(name for name, pools in self.of_template.items() if not pools)

    def nodes_for(self, waiting: Mapping[str, int]) -> dict[int, int]:
        """Return how many empty nodes of which pool hold all waiting pods, of which there are so many by template.

        A pod gets a node of the first pool on whose nodes it fits. They are put on nodes of it by first fit, those that
        ask for most cpu first, then for most memory: so Karpenter does it, and so it counts its nodes. What fits on no
        node counts for nothing.
        """
        by_pool: dict[int, list[tuple[Amounts, int]]] = {}
        for template, count in waiting.items():
            for index in self.of_template[template][:1]:
                by_pool.setdefault(index, []).append((self.asked[template], count))
        return {index: _first_fit_decreasing(self.pools[index].room, pods) for index, pods in by_pool.items()}


def _pool(pool: NodePool) -> Pool:
    node = pool.node(pool.name)
    daemons = daemons_on(pool, pool.name)
    taken = {} if daemons is None else {**daemons.placed.amounts, PODS: 1}
    room = {name: amount - taken.get(name, 0) for name, amount in node_allocatable(node).items()}
    paid = node_allocatable(Node(status=NodeStatus(allocatable=pool.capacity)))
    return Pool(pool.name, paid[CPU], room)


def _allows(pool: NodePool, template: PodTemplate) -> bool:
    is_selected = template.node_selector.items() <= pool.labels.items()
    return is_selected and not Tolerance(template.tolerations).repelled_by(pool.taints)


def _holds(room: Amounts, asked: Amounts) -> bool:
    return all(room.get(name, 0) >= amount for name, amount in asked.items())


def _first_fit_decreasing(room: Amounts, pods: Iterable[tuple[Amounts, int]]) -> int:
    """How many empty nodes first fit opens for pods, each with how many there are of them; each fits on one."""
    opened: list[dict[str, int]] = []
    for asked, count in sorted(pods, key=lambda each: (-each[0].get(CPU, 0), -each[0].get(MEMORY, 0))):
        left = count
        for free in opened:
            left -= _put(free, asked, left)
        while left:
            opened.append(dict(room))
            left -= _put(opened[-1], asked, left)
    return len(opened)


def _put(free: dict[str, int], asked: Amounts, count: int) -> int:
    """Put as many of `count` pods on a node as fit, and return how many."""
    put = min(count, *(free[name] // amount for name, amount in asked.items()))
    if put > 0:
        for name, amount in asked.items():
            free[name] -= put * amount
    return max(put, 0)
