"""The same scene played by two scoring strategies side by side: `bayplan demo` shows it."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from msgspec import structs

from bayplan.cache.packing import Packing
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, MEMORY
from bayplan.config.load import default_configuration
from bayplan.config.types import (
    NodeResourcesFitArgs,
    ResourceSpec,
    SchedulerConfiguration,
    ScoringStrategy,
    ScoringStrategyType,
)
from bayplan.explain.explanation import outcome_text
from bayplan.framework.causes import shown
from bayplan.scheduler.decision import FitError, Placement
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.report import preemption
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.step import Step, explaining
from bayplan.simulate.synthetic import GPU, Arrival, Departure, Event, Scene, Stage

_MOST_VICTIMS: Final = 4


def step_line(step: Step) -> str:
    """Say what came of an attempt that was explained: node, score and runner-up, or victims, or why no node fits."""
    name = shown(step.pod.name)
    outcome, explanation = step.outcome, step.read.explanation
    if isinstance(outcome, Placement) and explanation is not None:
        return f"{name}: {outcome_text(explanation)}"
    if isinstance(outcome, FitError) and outcome.post_filter.victims:
        return f"{name} {eviction_text(step.pod, outcome)}"
    return f"{name} waits: {step.message}"


def departure_line(pod: PodInfo, node: str | None) -> str:
    """Say which node the pod leaves, or that it leaves without having one."""
    return f"{shown(pod.name)} departs" + (f" from {shown(node)}" if node else ", no node was found")


def eviction_text(preemptor: PodInfo, outcome: FitError) -> str:
    """Say who is evicted from which node for the preemptor, and by which criterion that node was chosen."""
    compared = preemption(outcome.post_filter.candidates)
    victims = [f"{shown(each.name)} (priority {each.priority})" for each in outcome.post_filter.victims[:_MOST_VICTIMS]]
    if more := len(outcome.post_filter.victims) - len(victims):
        victims.append(f"{more} more")
    count = len(compared.candidates)
    among = f"{compared.why}, of {count} nodes" if count > 1 else compared.why
    return f"(priority {preemptor.priority}) evicts {', '.join(victims)} from {shown(compared.chosen)}: {among}"


_RESOURCES: Final = (ResourceSpec(CPU), ResourceSpec(MEMORY), ResourceSpec(GPU, 5))


@dataclass(frozen=True, slots=True)
class Use:
    """How many nodes are in use, and for the pods of how many the others have room, by the sum of requests."""

    in_use: int
    emptiable: int


class StrategyRun:
    """One strategy, and its own copy of the cluster and the pods."""

    def __init__(self, label: str, strategy: ScoringStrategyType, scene: Scene) -> None:
        self.label = label
        self.strategy = strategy
        self.simulator = Simulator(strategy_configuration(strategy))
        self.simulator.reader = explaining(self.simulator.cache.nodes)
        self._nodes = scene.nodes
        self.simulator.add(ClusterObjects(nodes=list(scene.nodes)))
        self.last_eviction: str | None = None
        """What was said of the last one."""
        self._pods = scene.stream()
        self._arrived = 0
        self._departed = 0
        self._evicted: set[str] = set()
        self._told_to_wait: set[str] = set()

    def play(self, event: Event) -> Iterator[str]:
        """Have a pod come or go and decide until no pod is worth trying, with a line for each thing that happens."""
        pod = self._pods[event.pod]
        match event:
            case Arrival():
                self._arrived += 1
                self.simulator.add(ClusterObjects(pods=[pod]))
            case Departure() if pod.uid not in self._evicted:
                yield self._line(departure_line(pod, self.simulator.cache.node_of(pod.uid)))
                self._departed += 1
                self.simulator.depart(pod.uid)
        while (line := self._decide()) is not None:
            if line:
                yield line

    @property
    def counts(self) -> dict[str, int]:
        """Where the pods are now, by what the cache and the queue hold; together they are all of them."""
        return {
            "pods on nodes": self.simulator.cache.sizes().pods,
            "waiting": len(self.simulator.queue.uids()),
            "departed": self._departed,
            "evicted": len(self._evicted),
            "to come": len(self._pods) - self._arrived,
        }

    @property
    def use(self) -> Use:
        """How many nodes are needed now."""
        nodes = self.simulator.cache.nodes
        packing = Packing(nodes, list(nodes.requested))
        return Use(int(nodes.in_use().sum()), packing.emptiable())

    def cluster(self, stage: Stage) -> ClusterObjects:
        """The cluster as it stands, where the pods that come in `stage` wait as well."""
        nodes = self.simulator.cache.nodes
        placed = [_bound(pod, nodes.names[row]) for row in nodes.rows().tolist() for pod in nodes.pods[row].values()]
        waiting = [queued.pod_info for queued in self.simulator.queue.queued()]
        coming = [self._pods[event.pod] for event in stage.events if isinstance(event, Arrival)]
        return ClusterObjects(nodes=list(self._nodes), pods=[*placed, *waiting, *coming])

    def _decide(self) -> str | None:
        """Decide about the next pod; None when none is worth trying, and an empty line when it is told already."""
        step = self.simulator.step()
        if step is None:
            return None
        line = self._line(step_line(step))
        match step.outcome:
            case FitError(post_filter=made) if made.victims:
                self._evicted.update(victim.uid for victim in made.victims)
                self.last_eviction = line
            case Placement():
                pass
            case _ if step.pod.uid in self._told_to_wait:
                return ""
            case _:
                self._told_to_wait.add(step.pod.uid)
        return line

    def _line(self, text: str) -> str:
        return f"{self.label:<6} {text}"


class StrategyComparison:
    """MostAllocated against LeastAllocated on a made-up cluster; the same seed gives the same comparison."""

    def __init__(self, *, nodes: int, pods: int, seed: int) -> None:
        self.scene = Scene(nodes=nodes, pods=pods, seed=seed)
        self.most = StrategyRun("packed", ScoringStrategyType.MOST_ALLOCATED, self.scene)
        self.least = StrategyRun("spread", ScoringStrategyType.LEAST_ALLOCATED, self.scene)
        self.results: list[tuple[str, Use, Use]] = []
        """Of each stage that has ended its title, and the use in both."""

    @property
    def runs(self) -> tuple[StrategyRun, StrategyRun]:
        """Both, the one that packs first."""
        return self.most, self.least

    @property
    def finished(self) -> bool:
        """Whether the scene was played to its end."""
        return len(self.results) == len(self.scene.stages)

    def play(self, stage: Stage) -> Iterator[list[str]]:
        """Play a stage of the scene event by event, with the lines of both runs; its result is noted at its end."""
        for event in stage.events:
            yield [line for run in self.runs for line in run.play(event)]
        self.results.append((stage.title, self.most.use, self.least.use))

    def filled_and_packed(self) -> tuple[SchedulerConfiguration, ClusterObjects]:
        """Play the first stage, and return the packed cluster with the pods that wait and those of the next stage."""
        filling, urgent, _ = self.scene.stages
        deque(self.play(filling), maxlen=0)
        return strategy_configuration(self.most.strategy), self.most.cluster(urgent)


def strategy_configuration(strategy: ScoringStrategyType) -> SchedulerConfiguration:
    """The default configuration with another scoring strategy, where a GPU weighs five times a core's share.

    NodeResourcesBalancedAllocation is left at its default weight of 1.
    """
    configuration = default_configuration()
    profile = configuration.profiles[0]
    fit = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(strategy, _RESOURCES))
    return replace(configuration, profiles=(profile.with_args("NodeResourcesFit", fit),))


def _bound(pod: PodInfo, node: str) -> PodInfo:
    return pod.with_spec(structs.replace(pod.pod.status, phase="Running"), node_name=node)
