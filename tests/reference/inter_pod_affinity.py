"""Pod affinity told pod by pod and node by node, as kube-scheduler's own loops go."""

from collections.abc import Iterator, Mapping, Sequence

from tests.reference.filters import UNRESOLVABLE, UNSCHEDULABLE, Host, Labels, Verdict, label_selector_holds

from bayplan.api.objects import LabelSelector, Pod, PodAffinity, PodAffinityTerm
from bayplan.cache.pod_info import PodInfo

Namespaces = Mapping[str, Labels]
"""The labels of each namespace that is known."""

_Pairs = dict[tuple[str, str], int]


def verdict(pod: PodInfo, host: Host, hosts: Sequence[Host], namespaces: Namespaces) -> Verdict:
    near, far = _required(pod.pod, "pod_affinity"), _required(pod.pod, "pod_anti_affinity")
    if not _has_friends(pod, near, host, hosts, namespaces):
        return UNRESOLVABLE, ["node(s) didn't match pod affinity rules"]
    anti: _Pairs = {}
    others: _Pairs = {}
    for each, placed in _placed(hosts):
        for term in far:
            if _own_matches(pod, term, placed.pod, namespaces):
                _count(anti, each, term, 1)
        for term in _required(placed.pod, "pod_anti_affinity"):
            if _others_match(placed, term, pod, namespaces):
                _count(others, each, term, 1)
    if any(pair in anti for pair in host.labels.items()):
        return UNSCHEDULABLE, ["node(s) didn't match pod anti-affinity rules"]
    if any(pair in others for pair in host.labels.items()):
        return UNSCHEDULABLE, ["node(s) didn't satisfy existing pods anti-affinity rules"]
    return None


def _has_friends(
    pod: PodInfo, near: Sequence[PodAffinityTerm], host: Host, hosts: Sequence[Host], namespaces: Namespaces
) -> bool:
    pairs: _Pairs = {}
    for each, placed in _placed(hosts):
        if all(_own_matches(pod, term, placed.pod, namespaces) for term in near):
            for term in near:
                _count(pairs, each, term, 1)
    if any(term.topology_key not in host.labels for term in near):
        return False
    if not pairs and all(_own_matches(pod, term, pod.pod, namespaces) for term in near):
        return True
    return all((term.topology_key, host.labels[term.topology_key]) in pairs for term in near)


def _placed(hosts: Sequence[Host]) -> Iterator[tuple[Host, PodInfo]]:
    return ((host, pod) for host in hosts for pod in host.pods)


def raw_scores(
    pod: PodInfo,
    feasible: Sequence[Host],
    hosts: Sequence[Host],
    namespaces: Namespaces,
    *,
    hard_weight: int = 1,
    ignore: bool = False,
) -> list[int] | None:
    """None when no term matches anywhere; weights that cancel out are scores of 0."""
    wishes = _preferred(pod.pod)
    if ignore and not wishes:
        return None
    pairs: _Pairs = {}
    for each in hosts:
        for placed in each.pods:
            for weight, term in wishes:
                if _own_matches(pod, term, placed.pod, namespaces):
                    _count(pairs, each, term, weight)
            hard = _required(placed.pod, "pod_affinity") if hard_weight else []
            for weight, term in [(hard_weight, term) for term in hard] + _preferred(placed.pod):
                if _others_match(placed, term, pod, namespaces):
                    _count(pairs, each, term, weight)
    if not pairs:
        return None
    return [sum(pairs.get(pair, 0) for pair in host.labels.items()) for host in feasible]


def normalized(scores: Sequence[int]) -> list[int]:
    if not scores or min(scores) == max(scores):
        return [0] * len(scores)
    low, high = min(scores), max(scores)
    return [int(100.0 * (float(score - low) / float(high - low))) for score in scores]


def _count(pairs: _Pairs, host: Host, term: PodAffinityTerm, amount: int) -> None:
    if term.topology_key in host.labels:
        pair = term.topology_key, host.labels[term.topology_key]
        pairs[pair] = pairs.get(pair, 0) + amount


def _own_matches(owner: PodInfo, term: PodAffinityTerm, other: Pod, namespaces: Namespaces) -> bool:
    """A term of the incoming pod: a selector of namespaces is looked up."""
    selector = term.namespace_selector
    names = {name for name, labels in namespaces.items() if label_selector_holds(selector, labels)}
    if selector == LabelSelector():
        names = {other.metadata.namespace}
    if other.metadata.namespace not in names | _names(owner.pod, term):
        return False
    return label_selector_holds(term.label_selector, other.metadata.labels or {})


def _others_match(owner: PodInfo, term: PodAffinityTerm, incoming: PodInfo, namespaces: Namespaces) -> bool:
    """A term of a pod on a node: the labels of the incoming pod's namespace are asked."""
    labels = namespaces.get(incoming.namespace, {})
    if incoming.namespace not in _names(owner.pod, term) and not label_selector_holds(term.namespace_selector, labels):
        return False
    return label_selector_holds(term.label_selector, incoming.pod.metadata.labels or {})


def _names(owner: Pod, term: PodAffinityTerm) -> set[str]:
    if not term.namespaces and term.namespace_selector is None:
        return {owner.metadata.namespace}
    return set(term.namespaces or [])


def _part(pod: Pod, part: str) -> PodAffinity:
    return (pod.spec.affinity and getattr(pod.spec.affinity, part)) or PodAffinity()


def _required(pod: Pod, part: str) -> list[PodAffinityTerm]:
    return _part(pod, part).required_during_scheduling_ignored_during_execution or []


def _preferred(pod: Pod) -> list[tuple[int, PodAffinityTerm]]:
    near = _part(pod, "pod_affinity").preferred_during_scheduling_ignored_during_execution or []
    far = _part(pod, "pod_anti_affinity").preferred_during_scheduling_ignored_during_execution or []
    return [(wish.weight, wish.pod_affinity_term) for wish in near] + [
        (-wish.weight, wish.pod_affinity_term) for wish in far
    ]
