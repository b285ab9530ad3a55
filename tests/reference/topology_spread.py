"""Topology spreading of one pod, counted from scratch: what each node is told, and what it scores."""

import math
from collections.abc import Sequence

from tests.reference.filters import (
    UNRESOLVABLE,
    UNSCHEDULABLE,
    Host,
    Verdict,
    label_selector_holds,
    required_terms,
    term_holds,
    tolerated,
)

from bayplan.api.objects import TopologySpreadConstraint
from bayplan.cache.pod_info import PodInfo

HOSTNAME = "kubernetes.io/hostname"
NOT_MATCHED = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"


def verdict(pod: PodInfo, host: Host, hosts: Sequence[Host]) -> Verdict:
    """What the filter says of `host` among `hosts`."""
    hard = own(pod, "DoNotSchedule")
    eligible = [each for each in hosts if all(c.topology_key in each.labels for c in hard)]
    for each in hard:
        if each.topology_key not in host.labels:
            return UNRESOLVABLE, [NO_LABEL]
        per_domain: dict[str, int] = {}
        for other in eligible:
            if includes(each, pod, other):
                domain = other.labels[each.topology_key]
                per_domain[domain] = per_domain.get(domain, 0) + count(each, pod, other)
        fewest = min(per_domain.values(), default=2**31 - 1)
        if len(per_domain) < (1 if each.min_domains is None else each.min_domains):
            fewest = 0
        here = per_domain.get(host.labels[each.topology_key], 0)
        if here + selects(each, pod, pod) - fewest > each.max_skew:
            return UNSCHEDULABLE, [NOT_MATCHED]
    return None


def scores(pod: PodInfo, feasible: Sequence[Host], hosts: Sequence[Host]) -> list[int] | None:
    """The final 0..100 scores of the feasible nodes; None if spreading has nothing to say."""
    soft = own(pod, "ScheduleAnyway")
    if not soft:
        return None

    def ignored(host: Host) -> bool:
        return any(each.topology_key not in host.labels for each in soft)

    ranked = [host for host in feasible if not ignored(host)]
    raw = {host.name: 0.0 for host in ranked}
    for each in soft:
        key = each.topology_key
        names = {host.name if key == HOSTNAME else host.labels[key] for host in ranked}
        weight = math.log(len(names) + 2)
        for host in ranked:
            if key == HOSTNAME:
                found = count(each, pod, host)
            else:
                found = sum(
                    count(each, pod, other)
                    for other in hosts
                    if not ignored(other) and includes(each, pod, other) and other.labels[key] == host.labels[key]
                )
            raw[host.name] += found * weight + float(each.max_skew - 1)
    whole = {name: math.floor(value + 0.5) for name, value in raw.items()}
    highest, lowest = max(whole.values(), default=0), min(whole.values(), default=0)
    return [
        0 if ignored(host) else 100 if highest == 0 else 100 * (highest + lowest - whole[host.name]) // highest
        for host in feasible
    ]


def own(pod: PodInfo, action: str) -> list[TopologySpreadConstraint]:
    return [each for each in pod.pod.spec.topology_spread_constraints or [] if each.when_unsatisfiable == action]


def includes(constraint: TopologySpreadConstraint, pod: PodInfo, host: Host) -> bool:
    """Whether the constraint's policies let the node count."""
    if constraint.node_affinity_policy in (None, "Honor"):
        wanted = pod.pod.spec.node_selector or {}
        if any(host.labels.get(key) != value for key, value in wanted.items()):
            return False
        terms = required_terms(pod.pod)
        if terms is not None and not any(term_holds(term, host) for term in terms):
            return False
    if constraint.node_taints_policy == "Honor":
        taints = [each for each in host.node.spec.taints or [] if each.effect in ("NoSchedule", "NoExecute")]
        return all(tolerated(taint, pod.pod.spec.tolerations or []) for taint in taints)
    return True


def count(constraint: TopologySpreadConstraint, pod: PodInfo, host: Host) -> int:
    """The pods on the node that the constraint counts."""
    selector = constraint.label_selector
    if selector is not None and not selector.match_labels and not selector.match_expressions:
        keys = constraint.match_label_keys or []
        if not any(key in (pod.pod.metadata.labels or {}) for key in keys):
            return 0
    return sum(
        selects(constraint, pod, other)
        for other in host.pods
        if other.namespace == pod.namespace and other.pod.metadata.deletion_timestamp is None
    )


def selects(constraint: TopologySpreadConstraint, pod: PodInfo, other: PodInfo) -> bool:
    """Whether the constraint of `pod` selects `other`."""
    mine, theirs = pod.pod.metadata.labels or {}, other.pod.metadata.labels or {}
    same = all(theirs.get(key) == mine[key] for key in constraint.match_label_keys or [] if key in mine)
    return same and label_selector_holds(constraint.label_selector, theirs)
