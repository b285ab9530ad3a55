"""Copies of what the scheduler knows, its nodes and the pods that wait, and answers made from these."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, Final

from bayplan.api.meta_objects import format_time
from bayplan.cache.cache import Cache, CacheSnapshot
from bayplan.cache.group_members import GroupSource, PodGroupKey, group_key
from bayplan.cache.node_table import NodeTable
from bayplan.cache.packing import Packing
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, MEMORY, PODS
from bayplan.config.types import NodeResourcesFitArgs, Profile, SchedulerConfiguration
from bayplan.framework.nominator import Nominator
from bayplan.framework.runtime import Framework
from bayplan.groups.pod_groups import PodGroups
from bayplan.live.answers import (
    NodeAnswer,
    NodePod,
    NodesAnswer,
    PackingAnswer,
    PodAhead,
    ProfileAnswer,
    QueueAnswer,
    QueueItem,
    ShapePoint,
    TaintAnswer,
    WeightedResource,
)
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.api_calls import shown_condition
from bayplan.scheduler.recent_decisions import LONGEST_MESSAGE, RecentDecisions
from bayplan.shown_text import natural_key

MOST_RESOURCES: Final = 16
"""Node owners make up names of resources: these and no more are told of all nodes."""
_FIRST: Final = (CPU, MEMORY, PODS, "ephemeral-storage")
_FIT: Final = "NodeResourcesFit"

MOST_AHEAD: Final = 5
_RANKS: Final = {"active": 0, "backoff": 1, "unschedulable": 2, "gated": 3}


def profile_answers(configuration: SchedulerConfiguration, frameworks: Mapping[str, Framework]) -> list[ProfileAnswer]:
    """Return what each profile packs by."""
    return [_profile(each, frameworks.get(each.scheduler_name)) for each in configuration.profiles]


def scoring_fit(profile: Profile, framework: Framework | None) -> NodeResourcesFitArgs | None:
    """Return what NodeResourcesFit scores by, None where it does not."""
    scores = framework is not None and any(entry.plugin.name == _FIT for entry in framework.scores)
    return profile.fit if scores else None


def _profile(profile: Profile, framework: Framework | None) -> ProfileAnswer:
    args = scoring_fit(profile, framework)
    if args is None:
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
        offered = nodes.offered(name)[rows].tolist()
        requested = sum(nodes.taken(name)[rows].tolist())
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
        requested={name: nodes.taken(name)[rows].tolist() for name in resources},
        allocatable={name: nodes.offered(name)[rows].tolist() for name in resources},
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
    """Nodes, pods, what plugins look up, pod groups and nominations, as when it was made; for one question each.

    Made on the loop in some milliseconds. `cache` and `nominator` are then made of it on a thread. What volume plugins
    assume for pods that are being bound is not among it.
    """

    def __init__(
        self, cache: Cache, nominator: Nominator, configuration: SchedulerConfiguration, groups: PodGroups
    ) -> None:
        self.configuration = configuration
        self.groups = [*groups]
        self.served = [source for source in GroupSource if groups.is_served(source)]
        self.moment = time.time()
        self._snapshot = CacheSnapshot(cache)
        self._nominated: list[tuple[PodInfo, str]] = [
            (pod, node) for node in nominator.nodes() for pod in nominator.nominated_pods_for_node(node)
        ]

    def cache(self) -> Cache:
        """Make the cache; once."""
        return self._snapshot.cache()

    def nominator(self) -> Nominator:
        """Make the nominations."""
        made = Nominator()
        for pod, node in self._nominated:
            made.add(pod, node)
        return made


@dataclass(frozen=True, slots=True)
class _Standing:
    """A pod and where it stood; read once, as the queue goes on while others are worked out."""

    queued: QueuedPodInfo
    pod: PodInfo
    queue: str
    key: tuple[Any, ...]


class WaitingPodsCopy:
    """The pods that stood in the queue when it was made, and those in flight; made on the loop, asked on a thread.

    Only the lists of pods are copied. What is told of a pod is read when it is asked for, so it may be newer by the
    time that takes. `now` is in seconds since the epoch.
    """

    def __init__(self, queue: SchedulingQueue, recent: RecentDecisions, now: float) -> None:
        self.queue = queue
        self.recent = recent
        self.in_flight = queue.in_flight()
        self._queued = queue.queued()
        self._now = now
        self._epoch = now - queue.clock()
        """What makes a time of the queue's clock one since the epoch."""

    def find(self, namespace: str, name: str) -> QueuedPodInfo | None:
        """Return the pod of that name, if it stood in the queue."""
        return next(
            (each for each in self._queued if each.pod_info.name == name and each.pod_info.namespace == namespace), None
        )

    def members_of(self, key: PodGroupKey) -> list[PodInfo]:
        """Return the pods that name this group, of those that stood in the queue or were in flight."""
        pods = [*(each.pod_info for each in self._queued), *self.in_flight]
        return [each for each in pods if group_key(each.pod) == key]

    def page(self, start: int, limit: int) -> QueueAnswer:
        """Return so many pods from the one at place `start` on."""
        standing = self._standing()
        # Which leaves the interpreter to others now and then, as sorting all of them does not.
        ordered = nsmallest(start + limit, standing, key=_place)[start:]
        items = [
            self._item(each, start + number + 1 if each.queue == "active" else None)
            for number, each in enumerate(ordered)
        ]
        end = start + len(items)
        return QueueAnswer(
            format_time(self._now), len(standing), items, str(end) if items and end < len(standing) else None
        )

    def of_pod(self, queued: QueuedPodInfo) -> tuple[QueueItem | None, list[PodAhead]]:
        """Return where the pod stands, and the first of those that are tried before it; none while it is in flight.

        Of a pod group the first one is told, and of its own none.
        """
        mine = self._one(queued)
        if mine is None:
            return None, []
        as_active = self.queue.settings.sort_key(mine.pod, queued.timestamp), queued.sequence
        active = [each for each in self._standing() if each.queue == "active" and each.queued is not queued]
        before = [each for each in active if each.key < as_active]
        firsts: dict[PodGroupKey | str, _Standing] = {}
        for each in sorted(before, key=_place):
            firsts.setdefault(group_key(each.pod.pod) or each.queued.uid, each)
        own = group_key(mine.pod.pod)
        others = [(key, each.pod) for key, each in firsts.items() if key != own][:MOST_AHEAD]
        ahead = [
            PodAhead(pod.namespace, pod.name, pod.priority, key.name if isinstance(key, PodGroupKey) else None)
            for key, pod in others
        ]
        is_active = mine.queue == "active"
        return self._item(mine, len(before) + 1 if is_active else None), ahead if mine.queue != "gated" else []

    def _standing(self) -> Sequence[_Standing]:
        return [each for each in map(self._one, self._queued) if each is not None]

    def _one(self, queued: QueuedPodInfo) -> _Standing | None:
        sub_queue, pod = queued.sub_queue, queued.pod_info
        if sub_queue is None:
            return None
        name = sub_queue.label
        key: tuple[Any, ...]
        if name == "active":
            key = self.queue.settings.sort_key(pod, queued.since), queued.sequence
        elif name == "backoff":
            key = (queued.backs_off_until or 0, queued.sequence)
        else:
            key = (queued.timestamp, queued.sequence)
        return _Standing(queued, pod, name, key)

    def _item(self, standing: _Standing, position: int | None) -> QueueItem:
        queued, pod = standing.queued, standing.pod
        since, group = queued.initial_attempt_timestamp, self.queue.group_of(pod)
        return QueueItem(
            namespace=pod.namespace,
            name=pod.name,
            scheduler_name=queued.profile,
            priority=pod.priority,
            queue=standing.queue,
            position=position,
            attempts=queued.attempts,
            waiting_since=self._time(queued.timestamp if since is None else since),
            next_retry=self._next_retry(standing),
            message=self._message(standing),
            rejected_by=sorted(queued.rejector_plugins),
            nominated_node=self.queue.nominator.nominated_node(queued.uid),
            group=None if group is None else group.name,
        )

    def _next_retry(self, standing: _Standing) -> str | None:
        queued = standing.queued
        if standing.queue == "backoff" and queued.backs_off_until is not None:
            return self._time(queued.backs_off_until)
        if standing.queue == "unschedulable":
            latest = queued.timestamp + self.queue.max_in_unschedulable_seconds
            # An earlier wait may have left its time behind.
            return self._time(min(latest, queued.retry_at) if queued.retry_at > queued.timestamp else latest)
        return None

    def _message(self, standing: _Standing) -> str:
        if standing.queue == "gated":
            return standing.queued.gating_message or ""
        if attempts := self.recent.attempts_on(standing.queued.uid):
            return attempts[-1].message
        shown = shown_condition(standing.pod)
        return "" if shown is None else shown[1][:LONGEST_MESSAGE]

    def _time(self, seconds: float) -> str:
        return format_time(self._epoch + seconds)


def _place(standing: _Standing) -> tuple[int, tuple[Any, ...]]:
    return _RANKS[standing.queue], standing.key
