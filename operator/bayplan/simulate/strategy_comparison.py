"""The same stream of pods packed side by side by two scoring strategies; `bayplan demo` shows it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bayplan.api.objects import Node
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.config.types import (
    DEFAULT_SCHEDULER_NAME,
    NodeResourcesFitArgs,
    ResourceSpec,
    SchedulerConfiguration,
    ScoringStrategy,
    ScoringStrategyType,
)
from bayplan.scheduler.cycle import Placement
from bayplan.simulate.cluster import ClusterObjects
from bayplan.simulate.cluster_use import ClusterUse, cluster_use
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.synthetic import GPU, SMALL_POOLS, pod_shapes, synthetic_nodes, synthetic_pods

_BURSTS: Final = 5
"""In how many bursts the pods arrive: priorities matter only where pods wait."""
_RESOURCES: Final = (ResourceSpec("cpu"), ResourceSpec("memory"), ResourceSpec(GPU, 5))


class StrategyRun:
    """One strategy and its own copy of the cluster."""

    def __init__(self, strategy: ScoringStrategyType, nodes: Sequence[Node], pods: Sequence[PodInfo]) -> None:
        self.simulator = Simulator(strategy_configuration(strategy))
        self.simulator.add(ClusterObjects(nodes=list(nodes)))
        self.decisions = 0
        self.scheduled = 0
        self.last: tuple[str, str] | None = None
        """The pod placed last, and its node."""
        self._pods = pods
        self._next = 0

    def arrive(self, count: int) -> None:
        """Queue the next pods of the stream."""
        pods = list(self._pods[self._next : self._next + count])
        self._next += len(pods)
        self.simulator.add(ClusterObjects(pods=pods))

    def decide(self) -> None:
        """Decide about the next pod, if one waits."""
        decision = self.simulator.step()
        if decision is None:
            return
        self.decisions += 1
        if isinstance(decision.outcome, Placement):
            self.scheduled += 1
            self.last = (decision.pod.key, decision.outcome.node_name)

    @property
    def queued(self) -> int:
        """How many pods have arrived and were not tried yet."""
        return self.simulator.queue.pending()["active"]

    @property
    def waiting(self) -> int:
        """How many pods found no node."""
        return self.decisions - self.scheduled

    @property
    def rate(self) -> float:
        """Decisions per second of deciding."""
        seconds = self.simulator.seconds
        return self.decisions / seconds if seconds > 0 else 0.0

    def use(self) -> ClusterUse:
        """How full this run's cluster is."""
        return cluster_use(self.simulator.cache.nodes)


class StrategyComparison:
    """MostAllocated against LeastAllocated on a made-up cluster; the same seed gives the same comparison."""

    def __init__(self, *, nodes: int, pods: int, seed: int) -> None:
        self.nodes = synthetic_nodes(nodes, SMALL_POOLS)
        self.pods = pods
        shapes = pod_shapes(20, seed)

        def stream() -> list[PodInfo]:
            return synthetic_pods(pods, shapes, seed=seed, scheduler_name=DEFAULT_SCHEDULER_NAME)

        self.most = StrategyRun(ScoringStrategyType.MOST_ALLOCATED, self.nodes, stream())
        self.least = StrategyRun(ScoringStrategyType.LEAST_ALLOCATED, self.nodes, stream())
        self.arrived = 0
        self._burst = max(1, pods // _BURSTS)

    def advance(self, count: int) -> bool:
        """Make up to `count` decisions in both; False when the stream has ended and every pod was tried.

        The next burst arrives when the last one is through, so the outcome does not depend on `count`.
        """
        for _ in range(count):
            if not self.most.queued and self.arrived < self.pods:
                self.arrived = min(self.arrived + self._burst, self.pods)
                self.most.arrive(self._burst)
                self.least.arrive(self._burst)
            self.most.decide()
            self.least.decide()
        return not self.finished

    @property
    def finished(self) -> bool:
        """Whether the stream has ended and every pod was tried."""
        return self.arrived == self.pods and not self.most.queued and not self.least.queued


def strategy_configuration(strategy: ScoringStrategyType) -> SchedulerConfiguration:
    """The default configuration with another scoring strategy, where a GPU weighs five times a core's share.

    NodeResourcesBalancedAllocation is left at its default weight of 1.
    """
    configuration = default_configuration()
    profile = configuration.profiles[0]
    fit = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(strategy, _RESOURCES))
    return replace(
        configuration, profiles=(replace(profile, plugin_config={**profile.plugin_config, "NodeResourcesFit": fit}),)
    )
