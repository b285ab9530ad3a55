"""How full the cluster is: the summary, all nodes, and one node, of a copy of the node table."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from bayplan.api.natural_order import natural_key
from bayplan.api.timestamps import format_time
from bayplan.cache.cache import Cache, CacheSnapshot
from bayplan.cache.node_table import NodeTable
from bayplan.cache.packing import Packing
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, MEMORY, PODS
from bayplan.config.types import NodeResourcesFitArgs, Profile, SchedulerConfiguration
from bayplan.framework.runtime import Framework
from bayplan.live.answers import (
    NodeAnswer,
    NodePod,
    NodesAnswer,
    PackingAnswer,
    ProfileAnswer,
    ShapePoint,
    TaintAnswer,
    WeightedResource,
)
from bayplan.queue.nominator import Nominator

MOST_RESOURCES: Final = 16
"""Node owners make up names of resources: these and no more are told of all nodes."""
_FIRST: Final = (CPU, MEMORY, PODS, "ephemeral-storage")
_FIT: Final = "NodeResourcesFit"


def profile_answers(configuration: SchedulerConfiguration, frameworks: Mapping[str, Framework]) -> list[ProfileAnswer]:
    """Return what each profile packs by."""
    return [_profile(each, frameworks.get(each.scheduler_name)) for each in configuration.profiles]


def _profile(profile: Profile, framework: Framework | None) -> ProfileAnswer:
    args = profile.plugin_config.get(_FIT)
    scores = framework is not None and any(entry.plugin.name == _FIT for entry in framework.scores)
    if not scores or not isinstance(args, NodeResourcesFitArgs):
        return ProfileAnswer(profile.scheduler_name, None, [], None)
    strategy = args.scoring_strategies[0].strategy if args.scoring_strategies else args.scoring_strategy
    return ProfileAnswer(
        profile.scheduler_name,
        str(strategy.type),
        [WeightedResource(each.name, each.weight) for each in strategy.resources],
        [ShapePoint(each.utilization, each.score) for each in strategy.shape] or None,
    )


def packing_answers(nodes: NodeTable) -> list[PackingAnswer]:
    """Return how full the cluster is of each resource; all by the sum of requests alone, whatever rules pods have."""
    names = _resources(nodes)
    packing = Packing(nodes, names)
    stranded, largest = packing.stranded(), packing.largest()
    rows = nodes.rows()
    used = int(nodes.in_use().sum())
    answers: list[PackingAnswer] = []
    for name in names:
        offered = packing.allocatable(name)[rows].tolist()
        requested = sum(packing.requested(name)[rows].tolist())
        answers.append(
            PackingAnswer(name, requested, sum(offered), stranded[name], used, packing.fewest_for(name), largest[name])
        )
    return answers


def nodes_answer(nodes: NodeTable) -> NodesAnswer:
    """Return all nodes."""
    names = nodes.names
    rows = sorted(nodes.rows().tolist(), key=lambda row: natural_key(names[row]))
    resources = _resources(nodes)
    objects = [nodes.nodes[row] for row in rows]
    packing = Packing(nodes, resources)
    emptiable = {*packing.emptiable_rows().tolist()}
    return NodesAnswer(
        time=format_time(time.time()),
        resources=resources,
        names=[names[row] for row in rows],
        pods=nodes.pod_count[rows].tolist(),
        unschedulable=[node is not None and node.spec.unschedulable for node in objects],
        emptiable=[row in emptiable for row in rows],
        requested={name: packing.requested(name)[rows].tolist() for name in resources},
        allocatable={name: packing.allocatable(name)[rows].tolist() for name in resources},
    )


def node_answer(
    nodes: NodeTable, row: int, assumed: Sequence[PodInfo], nominated: Sequence[PodInfo]
) -> NodeAnswer | None:
    """Return the node of a row with the pods on it, of which some are `assumed`; None if there is none any more."""
    node = nodes.nodes[row]
    if node is None:
        return None
    pods = nodes.pods[row]
    unsure = {pod.uid for pod in assumed}
    told = [_pod(pod, "assumed" if uid in unsure else "bound") for uid, pod in pods.items()]
    told += [_pod(pod, "nominated") for pod in nominated if pod.uid not in pods]
    allocatable = {name: int(column[row]) for name, column in nodes.allocatable.items() if column[row]}
    requested = {name: int(nodes.requested[name][row]) for name in allocatable if name in nodes.requested}
    return NodeAnswer(
        name=nodes.names[row],
        labels=node.metadata.labels or {},
        taints=[TaintAnswer(each.key, each.value, each.effect) for each in node.spec.taints or ()],
        unschedulable=node.spec.unschedulable,
        allocatable=allocatable | {PODS: int(nodes.allowed_pods[row])},
        requested=requested | {PODS: int(nodes.pod_count[row])},
        pods=sorted(told, key=lambda pod: (pod.namespace, natural_key(pod.name))),
    )


def _pod(pod: PodInfo, state: str) -> NodePod:
    return NodePod(pod.namespace, pod.name, pod.uid, pod.priority, pod.placed.amounts, state)


def _resources(nodes: NodeTable) -> list[str]:
    there = {name for name in nodes.allocatable if name == PODS or name in nodes.requested}
    first = [name for name in _FIRST if name in there]
    return [*first, *sorted(there.difference(first))][:MOST_RESOURCES]


class ClusterCopy:
    """Nodes, pods, what plugins look up and nominations, as they were when it was made; for one question each.

    Made on the loop in some milliseconds. `cache` and `nominator` are then made of it on a thread. What volume plugins
    assume for pods that are being bound is not among it.
    """

    def __init__(self, cache: Cache, nominator: Nominator, configuration: SchedulerConfiguration) -> None:
        self.configuration = configuration
        self.moment = time.time()
        self._snapshot = CacheSnapshot(cache)
        self._nominated: list[tuple[PodInfo, str]] = [
            (pod, node) for node in nominator.nodes() for pod in nominator.nominated_pods_for_node(node)
        ]

    def cache(self) -> Cache:
        """Make the cache; once."""
        return self._snapshot.cache()

    def nominator(self, *, but: Callable[[PodInfo], bool] = lambda pod: False) -> Nominator:
        """Make the nominations, without those of some pods."""
        made = Nominator()
        for pod, node in self._nominated:
            if not but(pod):
                made.add(pod, node)
        return made
