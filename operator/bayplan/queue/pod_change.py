"""What an update of a pod means for scheduling (upstream: framework/events.go)."""

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    UNSCHEDULABLE_POD_GATES,
    UNSCHEDULABLE_POD_LABEL,
    UNSCHEDULABLE_POD_SCALE_DOWN,
    UNSCHEDULABLE_POD_TOLERATION,
    UNSCHEDULABLE_POD_UPDATE,
    ClusterEvent,
)


def unschedulable_pod_changes(old: PodInfo, new: PodInfo) -> list[ClusterEvent]:
    """Return the specific changes of a pod without a node, in upstream's order, or else the plain update."""
    before, after = old.pod, new.pod
    events = []
    if (before.metadata.labels or {}) != (after.metadata.labels or {}):
        events.append(UNSCHEDULABLE_POD_LABEL)
    if scaled_down(old, new):
        events.append(UNSCHEDULABLE_POD_SCALE_DOWN)
    if before.spec.scheduling_gates and not after.spec.scheduling_gates:
        events.append(UNSCHEDULABLE_POD_GATES)
    # The API lets tolerations be added, never changed or removed, so comparing their number is enough.
    if len(before.spec.tolerations or ()) != len(after.spec.tolerations or ()):
        events.append(UNSCHEDULABLE_POD_TOLERATION)
    return events or [UNSCHEDULABLE_POD_UPDATE]


def scaled_down(old: PodInfo, new: PodInfo) -> bool:
    """Return whether the pod takes less of some resource than before; also when its quantities cannot be read."""
    try:
        before, after = old.placed.amounts, new.placed.amounts
    except ValueError:
        # The next cycle reads the pod again and reports the field.
        return True
    return any(amount > after.get(name, 0) for name, amount in before.items())
