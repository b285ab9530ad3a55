"""Which events may help a pod that InterPodAffinity rejected.

Upstream: plugins/interpodaffinity/plugin.go. As there, namespaces that a term selects by label are not looked up.
"""

from collections.abc import Sequence

from bayplan.api.objects import Node
from bayplan.cache.affinity_terms import AffinityTerm
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_UPDATE,
    NODE_ADD,
    NODE_LABEL,
    NODE_TAINT,
    UNSCHEDULABLE_POD_LABEL,
    EventRegistration,
    QueueingHint,
)


def after_assigned_pod_change(pod: PodInfo, old: object, new: object) -> QueueingHint:
    """Return whether a pod that came, went or was relabelled on a node meets all terms it did not, or breaks fewer."""
    before, after = (each if isinstance(each, PodInfo) else None for each in (old, new))
    terms = pod.affinity_terms
    if after is not None:
        gained = _match_all(terms.required_affinity, after)
        if before is None:
            return QueueingHint.queue_if(gained)
        anti = terms.required_anti_affinity
        if gained and not _match_all(terms.required_affinity, before):
            return QueueingHint.QUEUE
        return QueueingHint.queue_if(_match_all(anti, before) and not _match_all(anti, after))
    if before is None:
        return QueueingHint.QUEUE
    anti = terms.required_anti_affinity
    return QueueingHint.queue_if(
        _match_all(anti, before) or _match_all(before.affinity_terms.required_anti_affinity, pod)
    )


def after_label_change(pod: PodInfo, old: object, new: object) -> QueueingHint:
    """Return whether a pod without a node was relabelled: the rejected one itself, or one nominated to a node."""
    if isinstance(new, PodInfo) and new.uid == pod.uid:
        return QueueingHint.QUEUE
    if any(isinstance(each, PodInfo) and not each.pod.status.nominated_node_name for each in (old, new)):
        return QueueingHint.SKIP
    return after_assigned_pod_change(pod, old, new)


def after_node_change(pod: PodInfo, old: object, new: object) -> QueueingHint:
    """Return whether a node joined a topology of the pod's affinity, changed it, or left one of its anti-affinity."""
    if not isinstance(new, Node):
        return QueueingHint.QUEUE
    terms = pod.affinity_terms
    labels = new.metadata.labels or {}
    if not isinstance(old, Node):
        joins = any(term.topology_key in labels for term in terms.required_affinity)
        return QueueingHint.queue_if(joins or bool(terms.required_anti_affinity))
    before = old.metadata.labels or {}
    for term in terms.required_affinity:
        key = term.topology_key
        if key in labels and before.get(key) != labels[key]:
            return QueueingHint.QUEUE
    for term in terms.required_anti_affinity:
        key = term.topology_key
        if key in before and before[key] != labels.get(key):
            return QueueingHint.QUEUE
    return QueueingHint.SKIP


EVENTS = (
    EventRegistration(ASSIGNED_POD_ADD, after_assigned_pod_change),
    EventRegistration(ASSIGNED_POD_UPDATE, after_assigned_pod_change),
    EventRegistration(ASSIGNED_POD_DELETE, after_assigned_pod_change),
    EventRegistration(UNSCHEDULABLE_POD_LABEL, after_label_change),
    EventRegistration(NODE_ADD, after_node_change),
    EventRegistration(NODE_LABEL, after_node_change),
    EventRegistration(NODE_TAINT),
)


def _match_all(terms: Sequence[AffinityTerm], pod: PodInfo) -> bool:
    labels = pod.pod.metadata.labels
    return bool(terms) and all(term.matches(pod.namespace, labels, None) for term in terms)
