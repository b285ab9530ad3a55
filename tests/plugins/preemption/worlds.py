"""A small full cluster in which to preempt."""

from copy import copy
from typing import Any

from tests.builders import make_pod

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import LabelSelector, Node, Pod
from bayplan.api.workload_objects import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from bayplan.cache.cache import Cache
from bayplan.cache.group_members import GroupSource
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.framework.nominator import Nominator
from bayplan.groups.pod_groups import PodGroups
from bayplan.plugins.registry import build_frameworks
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import Decision, FitError, Placement

NOW = 1_767_225_600.0 + 86_400.0
"""A day after 2026-01-01T00:00:00Z."""


def low(name, node="n1", **fields):
    """A pod that may be a victim."""
    return make_pod(name, uid=name, node=node, **{"cpu": "2", "priority": 1, **fields})


def high(name="high", **fields):
    """A pod that preempts."""
    return make_pod(name, uid=name, **{"cpu": "3", "priority": 10, **fields})


def minute(number):
    return f"2026-01-01T00:{number:02}:00Z"


class World:
    """Nodes, pods on them, budgets and nominations, and the cycle that decides among them."""

    def __init__(self, *objects: Any, configuration=None) -> None:
        self.cache = Cache()
        self.groups = PodGroups(self.cache)
        self.groups.serve(GroupSource.NATIVE)
        self.nominator = Nominator()
        self.now = NOW
        self._configuration = configuration or default_configuration()
        self.start()
        self.add(*objects)

    def afresh(self) -> "World":
        """The same cluster with new plugins and a new cycle, which have kept nothing of what was decided before."""
        other = copy(self)
        other.start()
        return other

    def start(self) -> None:
        """Make new plugins and a new cycle over what there is."""
        nodes, listers = self.cache.nodes, self.cache.listers
        clock = lambda: self.now  # noqa: E731
        (self.framework,) = build_frameworks(
            self._configuration, nodes, listers, self.nominator, clock, groups=self.groups
        ).values()
        self.cycle = SchedulingCycle(nodes, self.nominator)

    def add(self, *objects: Any) -> None:
        for each in objects:
            if isinstance(each, Node):
                self.cache.set_node(each)
            elif isinstance(each, Pod):
                self.cache.set_pod(PodInfo(each))
            else:
                self.cache.listers.of(type(each)).set(each)

    def schedule(self, pod: Pod | PodInfo) -> Placement | FitError:
        return self.decide(pod).outcome

    def decide(self, pod: Pod | PodInfo) -> Decision:
        """The decision with what it was read from, for traces."""
        return self.cycle.schedule(pod if isinstance(pod, PodInfo) else PodInfo(pod), self.framework)

    def preempt(self, pod: Pod | PodInfo) -> tuple[str | None, list[str]]:
        """The nominated node and the names of the victims."""
        outcome = self.schedule(pod)
        assert isinstance(outcome, FitError)
        return outcome.post_filter.nominated_node_name, [victim.name for victim in outcome.post_filter.victims]

    def post_filter_message(self, pod: Pod | PodInfo) -> str:
        outcome = self.schedule(pod)
        assert isinstance(outcome, FitError)
        assert outcome.post_filter.victims == ()
        return outcome.post_filter.status.message


def make_budget(name="b", *, allowed=0, namespace="default", disrupted=(), **labels) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=labels or None)),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")
        ),
    )
