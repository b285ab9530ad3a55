"""Short ways to make pod affinity, and a cluster on which the plugin and its oracle are compared."""

from typing import Any

from tests.builders import make_selector
from tests.reference import inter_pod_affinity as oracle
from tests.reference.filters import Host

from bayplan.api.objects import (
    LabelSelector,
    Node,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from bayplan.api.workload_objects import Namespace
from bayplan.cache.cache import Cache
from bayplan.cache.node_index import NodeIndex
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


class AffinityScene:
    """A cluster with namespaces; shapes of pods keep their states between questions, as in an evaluation."""

    def __init__(self, *objects: Node | Pod, args: InterPodAffinityArgs | None = None) -> None:
        self.args = args or InterPodAffinityArgs()
        self.cache = Cache()
        self.index = NodeIndex(self.cache.nodes)
        self.namespaces = self.cache.listers.of(Namespace)
        self.plugin = InterPodAffinity(self.args, self.cache.nodes, self.index, self.namespaces)
        self.states: dict[Any, CycleState] = {}
        for each in objects:
            if isinstance(each, Node):
                self.cache.set_node(each)
            else:
                self.cache.set_pod(PodInfo(each))

    def set_namespace(self, name: str, **labels: str) -> None:
        self.namespaces.set(Namespace(metadata=ObjectMeta(name=name, labels=labels)))

    def hosts(self) -> list[Host]:
        table = self.cache.nodes
        return [
            Host(node, tuple(table.pods[row].values()))
            for row in table.rows().tolist()
            if (node := table.nodes[row]) is not None
        ]

    def state(self, pod: PodInfo) -> CycleState:
        _ = self.plugin.sign_version
        return self.states.setdefault(self.plugin.sign_pod(pod), CycleState())

    def rejections(self, pod: Pod) -> dict[str, tuple[int, list[str]]]:
        """Code and reasons of the nodes that are rejected; {} if the filter is skipped."""
        info, table, plugin = PodInfo(pod), self.cache.nodes, self.plugin
        state = self.state(info)
        if plugin.pre_filter(state, info, table).status.code is Code.SKIP:
            return {}
        rows = table.rows()
        codes = plugin.filter(state, info, table, rows)
        found = {table.names[row]: (int(code), []) for row, code in zip(rows, codes, strict=True) if code}
        rejected = rows[codes != 0]
        for reason in plugin.reasons(state, info, table, rejected):
            for row in rejected[reason.holds]:
                found[table.names[row]][1].append(reason.text)
        return found

    def scores(self, pod: Pod) -> dict[str, int] | None:
        """The raw score of every node; None if scoring is skipped."""
        info, table, plugin = PodInfo(pod), self.cache.nodes, self.plugin
        state, rows = self.state(info), table.rows()
        if plugin.pre_score(state, info, table, rows).code is Code.SKIP:
            return None
        return dict(
            zip((table.names[row] for row in rows), plugin.score(state, info, table, rows).tolist(), strict=True)
        )

    def check(self, pod: Pod) -> None:
        """Compare what the plugin says with the oracle's word."""
        info, hosts = PodInfo(pod), self.hosts()
        labels = {name: each.metadata.labels or {} for name, each in self.namespaces.objects.items()}
        expected = {host.name: verdict for host in hosts if (verdict := oracle.verdict(info, host, hosts, labels))}
        assert self.rejections(pod) == expected
        raw = oracle.raw_scores(
            info,
            hosts,
            hosts,
            labels,
            hard_weight=self.args.hard_pod_affinity_weight,
            ignore=self.args.ignore_preferred_terms_of_existing_pods,
        )
        scores = self.scores(pod)
        assert (None if scores is None else list(scores.values())) == raw
