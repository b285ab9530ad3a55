"""Which events may let in a pod that topology spreading rejected (upstream: podtopologyspread/plugin.go)."""

from collections.abc import Callable, Sequence

from bayplan.api.objects import Node
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_UPDATE,
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    NODE_TAINT,
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULABLE_POD_LABEL,
    UNSCHEDULABLE_POD_TOLERATION,
    EventRegistration,
    QueueingHint,
)
from bayplan.plugins.pod_topology_spread.constraints import SpreadConstraint

HardConstraints = Callable[[PodInfo], Sequence[SpreadConstraint]]
"""The DoNotSchedule constraints of a pod, its own or by default."""


class SpreadHints:
    """The registrations of topology spreading, with hints that look at a rejected pod's hard constraints."""

    def __init__(self, hard_constraints: HardConstraints) -> None:
        self._hard_constraints = hard_constraints

    def registrations(self) -> Sequence[EventRegistration]:
        """Return the events, each with its hint."""
        of_assigned = (ASSIGNED_POD_ADD, ASSIGNED_POD_UPDATE, ASSIGNED_POD_DELETE)
        of_waiting = (UNSCHEDULABLE_POD_ADD, UNSCHEDULABLE_POD_LABEL, UNSCHEDULABLE_POD_TOLERATION)
        of_nodes = (NODE_ADD, NODE_DELETE, NODE_LABEL, NODE_TAINT)
        return (
            *(EventRegistration(event, self._after_assigned_pod) for event in of_assigned),
            *(EventRegistration(event, self._after_waiting_pod) for event in of_waiting),
            *(EventRegistration(event, self._after_node) for event in of_nodes),
        )

    def _after_assigned_pod(self, pod: PodInfo, old: object, new: object) -> QueueingHint:
        # An assumed pod is on its node before its own spec says so.
        involved = [each.uid == pod.uid or each.namespace == pod.namespace for each in _pods(old, new)]
        return self._after_pod(pod, old, new) if all(involved) else QueueingHint.SKIP

    def _after_waiting_pod(self, pod: PodInfo, old: object, new: object) -> QueueingHint:
        involved = [
            each.uid == pod.uid or (_has_node(each) and each.namespace == pod.namespace) for each in _pods(old, new)
        ]
        return self._after_pod(pod, old, new) if all(involved) else QueueingHint.SKIP

    def _after_pod(self, pod: PodInfo, old: object, new: object) -> QueueingHint:
        changed = _pods(old, new)
        if not changed:
            return QueueingHint.QUEUE
        constraints = self._hard_constraints(pod)
        if len(changed) == 1:
            labels = changed[0].pod.metadata.labels
            return QueueingHint.queue_if(any(each.selector.matches(labels) for each in constraints))
        before, after = (each.pod for each in changed)
        tolerates_more = pod.uid == after.metadata.uid and (before.spec.tolerations or []) != (
            after.spec.tolerations or []
        )
        if tolerates_more and any(each.honors_taints for each in constraints):
            return QueueingHint.QUEUE
        was, now = before.metadata.labels, after.metadata.labels
        return QueueingHint.queue_if(
            (was or {}) != (now or {})
            and any(each.selector.matches(was) != each.selector.matches(now) for each in constraints)
        )

    def _after_node(self, pod: PodInfo, old: object, new: object) -> QueueingHint:
        before, after = (each if isinstance(each, Node) else None for each in (old, new))
        if before is None and after is None:
            return QueueingHint.QUEUE
        keys = [each.topology_key for each in self._hard_constraints(pod)]
        was, now = _values(before, keys), _values(after, keys)
        if before is None or after is None:
            return QueueingHint.queue_if(was is not None or now is not None)
        if now is None:
            return QueueingHint.queue_if(was is not None)
        return QueueingHint.queue_if(was != now or (before.spec.taints or []) != (after.spec.taints or []))


def _pods(old: object, new: object) -> list[PodInfo]:
    return [each for each in (old, new) if isinstance(each, PodInfo)]


def _has_node(pod: PodInfo) -> bool:
    return bool(pod.pod.spec.node_name or pod.pod.status.nominated_node_name)


def _values(node: Node | None, keys: Sequence[str]) -> list[str] | None:
    """Return the node's domains; None if it is not there or lacks a key."""
    labels = {} if node is None else node.metadata.labels or {}
    if node is None or any(key not in labels for key in keys):
        return None
    return [labels[key] for key in keys]
