"""What a check found, what it costs here, and what mends it; and what checks look at."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec

from bayplan.api.objects import Node
from bayplan.cache.cache import is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import is_extended
from bayplan.config.types import Profile, SchedulerConfiguration
from bayplan.framework.runtime import WeightedScore
from bayplan.shown_text import counted
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.comparison import own_pods
from bayplan.simulate.repack import repacked
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.tables import Printer


class Finding(msgspec.Struct, rename="camel", gc=False):
    """One thing that keeps this cluster from being packed well; `check` is the name of the row in docs/doctor.md."""

    check: str
    about: str
    """The profile, pod, node or object, or how many."""
    message: str
    effect: str
    """What it costs, as a simulation of this cluster or the counts of its objects say."""
    fix: str
    """YAML or a command."""


def print_findings(printer: Printer, findings: Sequence[Finding]) -> None:
    """Print each finding with its effect and its fix."""
    for each in findings:
        printer.line(f"{each.check}: {each.about}: {each.message}")
        printer.line(f"  effect: {each.effect}")
        for number, line in enumerate(each.fix.splitlines()):
            printer.line(f"  {'fix:' if number == 0 else '    '} {line}")
        printer.line()
    printer.line(f"{len(findings)} found." if findings else "Nothing found.")


@dataclass(frozen=True, slots=True)
class Packed:
    """What a simulation has of the cluster once all pods that can move are placed anew."""

    nodes: int
    """Those in use."""
    unplaced: int
    simulator: Simulator


@dataclass
class Patient:
    """The cluster and the configuration that checks look at; `others` are objects that no simulation reads."""

    configuration: SchedulerConfiguration
    objects: ClusterObjects
    others: Sequence[tuple[str, Any]] = field(default=())
    """Kind and plain value of each."""
    now: float = field(default_factory=time.time)
    """In seconds since 1970."""

    @cached_property
    def as_it_is(self) -> Packed:
        """What the cluster would need if all pods were placed anew by this very configuration."""
        return self.packed()

    @property
    def scores(self) -> list[WeightedScore]:
        """The scores of all profiles."""
        return [each for framework in self.as_it_is.simulator.frameworks.values() for each in framework.scores]

    @cached_property
    def running(self) -> list[PodInfo]:
        """The pods that could run elsewhere, each on a node that is there."""
        names = {node.metadata.name for node in self.objects.nodes}
        there = (pod for pod in self.objects.pods if pod.pod.spec.node_name in names and not pod.stays)
        return [pod for pod in there if not is_finished(pod.pod)]

    @cached_property
    def asked_devices(self) -> set[str]:
        """The extended resources that pods ask for."""
        return {name for pod in self.objects.pods for name in pod.requests.amounts if is_extended(name)}

    @property
    def used(self) -> int:
        """How many nodes are in use now."""
        return len({pod.pod.spec.node_name for pod in self.running})

    @cached_property
    def unmoved(self) -> int:
        """How many nodes are in use once the pods that wait have theirs, and none that runs is moved."""
        simulator = Simulator(self.configuration)
        simulator.add(own_pods(self.objects))
        return simulator.run().summary.nodes_in_use

    @property
    def needed(self) -> str:
        """What packing alone comes to, as effects tell it."""
        return f"all pods placed anew take {counted(self.as_it_is.nodes, 'node')}"

    def packed(
        self,
        change: Callable[[Profile], Profile] = lambda profile: profile,
        *,
        pods: Sequence[PodInfo] | None = None,
        nodes: Sequence[Node] | None = None,
    ) -> Packed:
        """Place all anew with changed profiles, pods or nodes."""
        profiles = tuple(map(change, self.configuration.profiles))
        objects = replace(
            self.objects,
            pods=[*(self.objects.pods if pods is None else pods)],
            nodes=[*(self.objects.nodes if nodes is None else nodes)],
        )
        repacking = repacked(objects, [each.scheduler_name for each in profiles])
        simulator = Simulator(replace(self.configuration, profiles=profiles))
        simulator.add(own_pods(repacking.objects))
        simulator.run()
        outcome = repacking.outcome(simulator)
        return Packed(outcome.nodes_in_use, sum(outcome.unplaced.values()), simulator)

    def saves(self, better: Packed) -> bool:
        """Whether fewer nodes do, and no more pods are without one."""
        return better.nodes < self.as_it_is.nodes and better.unplaced <= self.as_it_is.unplaced

    def compared(self, better: Packed) -> str:
        """The effect in nodes, as findings tell it."""
        return f"{self.needed} as it is, {better.nodes} with the fix"


Check = Callable[[Patient], Iterator[Finding]]
