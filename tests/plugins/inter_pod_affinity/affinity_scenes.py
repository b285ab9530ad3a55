"""Short ways to make pod affinity, and a cluster on which the plugin and its oracle are compared."""

from typing import Any

from tests.builders import make_selector
from tests.plugins.scenes import Scene
from tests.reference import inter_pod_affinity as oracle

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import (
    LabelSelector,
    Node,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from bayplan.api.workload_objects import Namespace
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import InterPodAffinityArgs
from bayplan.framework.interface import CycleState
from bayplan.framework.status import Code
from bayplan.plugins.inter_pod_affinity.inter_pod_affinity import InterPodAffinity


def term(key: str = "zone", selector: LabelSelector | None = None, **rest: Any) -> PodAffinityTerm:
    """A term about pods with the label app=web unless a selector is given; other fields by name."""
    if "label_selector" not in rest:
        rest["label_selector"] = selector or make_selector(app="web")
    return PodAffinityTerm(topology_key=key, **rest)


def required(*terms: PodAffinityTerm) -> PodAffinity:
    return PodAffinity(required_during_scheduling_ignored_during_execution=list(terms))


def preferred(*weighted: tuple[int, PodAffinityTerm]) -> PodAffinity:
    return PodAffinity(
        preferred_during_scheduling_ignored_during_execution=[
            WeightedPodAffinityTerm(weight=weight, pod_affinity_term=each) for weight, each in weighted
        ]
    )


class AffinityScene(Scene):
    """A cluster with namespaces; shapes of pods keep their states between questions, as in an evaluation."""

    def __init__(self, *objects: Node | Pod, args: InterPodAffinityArgs | None = None) -> None:
        super().__init__()
        self.args = args or InterPodAffinityArgs()
        self.namespaces = self.cache.listers.of(Namespace)
        self.plugin = InterPodAffinity(self.args, self.cache.nodes, self.index, self.namespaces)
        self.states: dict[Any, CycleState] = {}
        self.add(*objects)

    def set_namespace(self, name: str, **labels: str) -> None:
        self.namespaces.set(Namespace(metadata=ObjectMeta(name=name, labels=labels)))

    def state(self, pod: PodInfo) -> CycleState:
        self.plugin.sign_inputs(pod)
        return self.states.setdefault(self.plugin.sign_pod(pod), CycleState())

    def rejected(self, pod: Pod) -> dict[str, tuple[Code, list[str]]]:
        """Code and reasons of the nodes that are rejected."""
        return self.rejections(self.plugin, pod, state=self.state(PodInfo(pod)))

    def raw_scores(self, pod: Pod) -> dict[str, int] | None:
        """The raw score of every node; None if scoring is skipped."""
        info, table = PodInfo(pod), self.cache.nodes
        state = self.state(info)
        if self.plugin.pre_score(state, info, table, table.rows()).code is Code.SKIP:
            return None
        return self.scores(self.plugin, pod, state=state)

    def check(self, pod: Pod) -> None:
        """Compare what the plugin says with the oracle's word."""
        info, hosts = PodInfo(pod), self.hosts()
        labels = {name: each.metadata.labels or {} for name, each in self.namespaces.objects.items()}
        expected = {host.name: verdict for host in hosts if (verdict := oracle.verdict(info, host, hosts, labels))}
        assert self.rejected(pod) == expected
        raw = oracle.raw_scores(
            info,
            hosts,
            hosts,
            labels,
            hard_weight=self.args.hard_pod_affinity_weight,
            ignore=self.args.ignore_preferred_terms_of_existing_pods,
        )
        scores = self.raw_scores(pod)
        assert (None if scores is None else list(scores.values())) == raw
