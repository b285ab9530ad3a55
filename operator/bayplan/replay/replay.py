"""Replays a trace: pods come, are scheduled and depart over virtual time, on nodes that may come and go."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import ceil, inf
from typing import Final

import msgspec

from bayplan.api.meta_objects import Annotations, ObjectMeta, OwnerReference
from bayplan.api.objects import Node, Pod, PodStatus
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import SchedulerConfiguration
from bayplan.replay.outcome import Outcome, quantile, waits_of
from bayplan.replay.pools import Meter, Pools, daemons_on
from bayplan.replay.trace import PodTemplate, Trace, TracePod
from bayplan.scheduler.decision import FitError, Placement
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator

_NAMESPACE: Final = "default"
_PENDING: Final = PodStatus(phase="Pending")
_TRIED_AGAIN: Final = 1.0
"""The queue looks so often, in seconds, whose back-off is over."""
_DEPARTURE, _READY, _ARRIVAL, _EMPTY = range(4)
"""What happens at the same moment happens in this order; pods are decided before empty nodes go."""


class PoolSettings(msgspec.Struct, frozen=True, rename="camel"):
    """What becomes of nodes; durations are in seconds."""

    autoscaled: bool = True
    """Whether nodes are made for pods that wait, and go when they are empty; otherwise all are there all along."""
    scale_down_after: float = 600.0
    """How long a node is empty before it goes; a new one waits for its pods as long as they may back off."""
    provision: float = 60.0
    """How long a new node takes until it is ready; it is paid for meanwhile."""


@dataclass(slots=True, eq=False)
class _Node:
    node: Node
    pool: int
    daemons: PodInfo | None
    ready: float = 0.0
    pods: int = 0
    came: int = 0
    """How many pods ever came, by which one sees whether it was empty all along."""


@dataclass(slots=True, eq=False)
class _Pod:
    """A pod of the trace, or the one that its owner made in its place, that waits or runs."""

    traced: TracePod
    template: str
    arrived: float
    info: PodInfo
    node: _Node | None = None


class Replay:
    """One configuration on one trace, of which all pods are for the first profile.

    The simulator decides as in `bayplan simulate`: whenever a pod comes, room is freed or a node is ready, until no pod
    is worth trying. Decisions take no time. An evicted pod that has an owner comes again at once and runs its whole
    duration; another is lost.
    """

    def __init__(self, trace: Trace, configuration: SchedulerConfiguration, settings: PoolSettings) -> None:
        self._trace, self._settings = trace, settings
        self._scheduler_name = configuration.profiles[0].scheduler_name
        self._simulator = Simulator(configuration, reports=False)
        self._longest_back_off = configuration.pod_max_backoff_seconds + _TRIED_AGAIN
        self._pools = Pools(trace)
        self._meter = Meter(self._pools, trace.header.seconds)
        self._now = 0.0
        self._events: list[tuple[float, int, int, Callable[[], None]]] = []
        self._sequence = count()
        self._nodes: dict[str, _Node] = {}
        self._empty: Counter[int] = Counter()
        """How many nodes of each pool are on the way, or ready without pods."""
        self._nodes_made = 0
        self._arrivals = iter(trace.pods)
        self._pods: dict[str, _Pod] = {}
        self._pods_made = 0
        self._waiting: Counter[str] = Counter()
        """How many pods wait, by template."""
        self._may_lack_nodes = False
        """Whether a pod found no node since nodes were requested."""
        self._models: dict[tuple[str, int | None, str], PodInfo] = {}
        self._waits: dict[int, list[float]] = {}
        self._evicted = self._decisions = 0

    def run(self) -> Outcome:
        """Replay the trace from its begin to its end."""
        started, end = time.perf_counter(), self._trace.header.seconds
        if not self._settings.autoscaled:
            for index, pool in enumerate(self._trace.header.pools):
                for _ in range(pool.count):
                    self._request_node(index, 0.0)
        self._await_next()
        while (now := self._next_moment()) <= end:
            self._now = now
            self._meter.advance(now)
            self._simulator.advance(now)
            while self._events and self._events[0][:2] < (now, _EMPTY):
                heappop(self._events)[-1]()
            self._decide()
            while self._events and self._events[0][:2] == (now, _EMPTY):
                heappop(self._events)[-1]()
            if self._settings.autoscaled and self._may_lack_nodes:
                self._scale_up()
        self._meter.advance(end)
        return self._outcome(time.perf_counter() - started)

    def _next_moment(self) -> float:
        """When something happens next, or a pod's back-off is over."""
        deadline = self._simulator.queue.next_deadline()
        return min(self._events[0][0] if self._events else inf, inf if deadline is None else deadline)

    def _at(self, seconds: float, kind: int, happen: Callable[[], None]) -> None:
        heappush(self._events, (seconds, kind, next(self._sequence), happen))

    def _await_next(self) -> None:
        """Have the trace's next pod come at its time; a heap of all of them would make every event cost more."""
        traced = next(self._arrivals, None)
        if traced is not None:
            self._at(traced.arrival_seconds, _ARRIVAL, partial(self._arrive, traced))

    def _arrive(self, traced: TracePod) -> None:
        self._await_next()
        self._come(traced)

    def _come(self, traced: TracePod) -> None:
        """Have the scheduler learn of a pod, that of the trace or the next that its owner makes."""
        template = self._trace.template_of(traced)
        pod = _Pod(traced, template.name, self._now, self._made(traced, template))
        self._pods[pod.info.uid] = pod
        self._waiting[pod.template] += 1
        self._simulator.add(ClusterObjects(pods=[pod.info]))

    def _made(self, traced: TracePod, template: PodTemplate) -> PodInfo:
        """Make a pod, which shares with those before it whatever is alike."""
        self._pods_made += 1
        name = f"pod-{self._pods_made}"
        key = (template.name, traced.priority, traced.owner)
        model = self._models.get(key)
        if model is None:
            spec = template.spec(self._scheduler_name, traced.priority)
            owner = OwnerReference("apps/v1", "ReplicaSet", traced.owner, traced.owner, controller=True)
            owners = [owner] if traced.owner else None
        else:
            spec, owners = model.pod.spec, model.pod.metadata.owner_references
        said = traced.expected_seconds
        annotations = None if said is None else Annotations(str(ceil(said)))
        meta = ObjectMeta(name=name, namespace=_NAMESPACE, uid=name, owner_references=owners, annotations=annotations)
        pod = PodInfo(Pod(metadata=meta, spec=spec, status=_PENDING))
        pod.take_over(self._models.setdefault(key, pod))
        return pod

    def _decide(self) -> None:
        while (step := self._simulator.step()) is not None:
            self._decisions += 1
            match step.outcome:
                case Placement(node_name=name):
                    self._bind(self._pods[step.pod.uid], self._nodes[name])
                case FitError(post_filter=made) if made.victims:
                    for victim in made.victims:
                        self._evict(self._pods[victim.uid])
                case _:
                    self._may_lack_nodes = True

    def _bind(self, pod: _Pod, node: _Node) -> None:
        pod.node = node
        self._confirm(pod.info, node.node.metadata.name)
        self._empty[node.pool] -= not node.pods
        node.pods += 1
        node.came += 1
        self._waiting[pod.template] -= 1
        self._meter.pod(pod.template, 1)
        self._waits.setdefault(pod.info.priority, []).append(self._now - pod.arrived)
        self._at(self._now + pod.traced.duration_seconds, _DEPARTURE, partial(self._depart, pod))

    def _confirm(self, pod: PodInfo, node_name: str) -> None:
        """Have a pod be seen on its node: plugins learn only from those how long they ran."""
        bound = pod.with_spec(node_name=node_name)
        bound.take_over(pod)
        self._simulator.cache.set_pod(bound)

    def _depart(self, pod: _Pod) -> None:
        if pod.info.uid in self._pods:
            self._leave(pod)

    def _evict(self, pod: _Pod) -> None:
        self._evicted += 1
        self._leave(pod)
        if pod.traced.owner:
            self._come(pod.traced)

    def _leave(self, pod: _Pod) -> None:
        """Have a pod leave its node."""
        node = pod.node
        assert node is not None, "a pod leaves that has a node"
        del self._pods[pod.info.uid]
        self._simulator.depart(pod.info.uid)
        self._meter.pod(pod.template, -1)
        node.pods -= 1
        if not node.pods:
            self._empty[node.pool] += 1
            self._emptied(node)

    def _scale_up(self) -> None:
        """Request as many nodes as the waiting pods need beyond those that are on the way or empty."""
        self._may_lack_nodes = False
        for index, needed in self._pools.nodes_for(+self._waiting).items():
            for _ in range(needed - self._empty[index]):
                self._request_node(index, self._settings.provision)

    def _request_node(self, index: int, provision: float) -> None:
        self._nodes_made += 1
        self._empty[index] += 1
        self._meter.node(self._pools.pools[index].milli_cpu, 1)
        pool = self._trace.header.pools[index]
        name = f"{pool.name}-{self._nodes_made}"
        node = _Node(pool.node(name), index, daemons_on(pool, name))
        self._at(self._now + provision, _READY, partial(self._ready, node))

    def _ready(self, node: _Node) -> None:
        self._nodes[node.node.metadata.name] = node
        self._simulator.add(ClusterObjects(nodes=[node.node], pods=[node.daemons] if node.daemons else []))
        node.ready = self._now
        self._emptied(node)

    def _emptied(self, node: _Node) -> None:
        if self._settings.autoscaled:
            self._at(self._now + self._settings.scale_down_after, _EMPTY, partial(self._scale_down, node, node.came))

    def _scale_down(self, node: _Node, came: int) -> None:
        """Remove a node if no pod came since so many had come."""
        name = node.node.metadata.name
        if not node.came and +self._waiting and self._now < (until := node.ready + self._longest_back_off):
            # The pods that it was made for may back off still.
            self._at(until, _EMPTY, partial(self._scale_down, node, came))
        elif node.came == came and name in self._nodes:
            del self._nodes[name]
            self._empty[node.pool] -= 1
            self._meter.node(self._pools.pools[node.pool].milli_cpu, -1)
            if node.daemons is not None:
                self._simulator.depart(node.daemons.uid)
            self._simulator.remove_node(node.node)

    def _outcome(self, seconds: float) -> Outcome:
        meter, waits = self._meter, sorted(each for some in self._waits.values() for each in some)
        return Outcome(
            pods=self._pods_made,
            bound=len(waits),
            waiting=self._waiting.total(),
            evicted=self._evicted,
            decisions=self._decisions,
            node_hours=meter.node_seconds / 3600,
            core_hours_paid=meter.paid / 3.6e6,
            core_hours_asked=meter.asked / 3.6e6,
            lower_bound_node_hours=meter.bound_node_seconds / 3600,
            lower_bound_core_hours=meter.bound_cpu / 3.6e6,
            most_nodes=meter.most_nodes,
            nodes_made=self._nodes_made,
            wait_p50=quantile(waits, 0.5),
            wait_p99=quantile(waits, 0.99),
            waits=waits_of(self._waits),
            moments=meter.moments,
            seconds=seconds,
            decision_seconds=self._simulator.seconds,
        )
