"""The pools of a trace as numbers, what their nodes cost over virtual time, and what no packing goes below."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bayplan.api.meta_objects import ObjectMeta, OwnerReference
from bayplan.api.objects import Container, Node, NodeStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from bayplan.api.tolerations import Tolerance
from bayplan.cache.packing import fewest_for_sizes
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.cache.resources import CPU, MEMORY, PODS, node_allocatable
from bayplan.replay.outcome import Moment
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


_KEPT: Final = 4096
"""How many bounds are kept for when the same pods run again."""


@dataclass(frozen=True, slots=True)
class Fewest:
    """A lower bound."""

    nodes: int = 0
    milli_cpu: int = 0


class LowerBound:
    """The lower bound for the pods that run now, kept as they come and go.

    Pools are bounded together if some pod may be on either of them, and otherwise each by itself: first by the number
    of nodes, as of the largest of those together, for the resource that needs most (`fewest_for_sizes`). A node's cores
    are then those of the smallest of them, and all together are no fewer than the pods ask for.
    """

    def __init__(self, pools: Pools) -> None:
        self._asked = pools.asked
        group_of = list(range(len(pools.pools)))
        for together in pools.of_template.values():
            joined = {group_of[index] for index in together}
            group_of = [min(joined) if each in joined else each for each in group_of]
        self._group_of = {name: group_of[indexes[0]] for name, indexes in pools.of_template.items() if indexes}
        self._rooms: dict[int, Counter[str]] = {}
        self._cheapest: dict[int, int] = {}
        for group, pool in zip(group_of, pools.pools, strict=True):
            self._rooms[group] = self._rooms.get(group, Counter()) | Counter(pool.room)
            self._cheapest[group] = min(pool.milli_cpu, self._cheapest.get(group, pool.milli_cpu))
        self._running: dict[int, Counter[str]] = {group: Counter() for group in self._rooms}
        self._fewest = dict.fromkeys(self._rooms, Fewest())
        self._known: RecentlyUsed[tuple[int, frozenset[tuple[str, int]]], Fewest] = RecentlyUsed(_KEPT)
        self.total = Fewest()
        """The bound for all pools."""

    def change(self, template: str, count: int) -> None:
        """Count so many more pods of a template as running, or fewer; each is on some node."""
        group = self._group_of[template]
        running = self._running[group]
        running[template] += count
        key = (group, frozenset(each for each in running.items() if each[1]))
        found = self._known.get(key)
        if found is None:
            found = self._known.put(key, self._bound(group, running))
        before, self._fewest[group] = self._fewest[group], found
        total = self.total
        self.total = Fewest(
            total.nodes + found.nodes - before.nodes, total.milli_cpu + found.milli_cpu - before.milli_cpu
        )

    def _bound(self, group: int, running: Counter[str]) -> Fewest:
        sizes: dict[str, Counter[int]] = {}
        for template, count in running.items():
            for name, amount in self._asked[template].items():
                sizes.setdefault(name, Counter())[amount] += count
        nodes = 0
        for name, counts in sizes.items():
            asked = sum(amount * count for amount, count in counts.items())
            # By first fit all but one node are more than half full, so that more are never needed.
            enough = 2 * asked // self._rooms[group][name] + 1
            nodes = max(nodes, fewest_for_sizes({self._rooms[group][name]: enough}, counts))
        asked_milli = sum(amount * count for amount, count in sizes.get(CPU, Counter()).items())
        return Fewest(nodes, max(nodes * self._cheapest[group], asked_milli))


MOMENTS: Final = 288
"""How many moments of a replay are kept; every five minutes of a day."""


class Meter:
    """Integrals over the seconds from 0 to the end; every change is told with its time, which never goes back."""

    def __init__(self, pools: Pools, end: float) -> None:
        self._end = end
        self._bound = LowerBound(pools)
        self._asked = pools.asked
        self._now = 0.0
        self._nodes = 0
        self._milli_cpu = 0
        self._asked_milli = 0
        self.node_seconds = 0.0
        self.paid = 0.0
        """In milli-CPU seconds, as the two below."""
        self.asked = 0.0
        self.bound_cpu = 0.0
        self.bound_node_seconds = 0.0
        self.most_nodes = 0
        self.moments: list[Moment] = []

    def advance(self, now: float) -> None:
        """Let time pass; at most to the end."""
        now = min(now, self._end)
        while (at := self._end * len(self.moments) / MOMENTS) < now:
            self.moments.append(Moment(at, self._nodes, self._bound.total.nodes))
        passed = now - self._now
        self._now = now
        self.node_seconds += passed * self._nodes
        self.paid += passed * self._milli_cpu
        self.asked += passed * self._asked_milli
        self.bound_node_seconds += passed * self._bound.total.nodes
        self.bound_cpu += passed * self._bound.total.milli_cpu
        self.most_nodes = max(self.most_nodes, self._nodes)

    def node(self, milli_cpu: int, count: int) -> None:
        """Count so many more nodes, or fewer."""
        self._nodes += count
        self._milli_cpu += count * milli_cpu

    def pod(self, template: str, count: int) -> None:
        """Count so many more pods on nodes, or fewer."""
        self._asked_milli += count * self._asked[template].get(CPU, 0)
        self._bound.change(template, count)
