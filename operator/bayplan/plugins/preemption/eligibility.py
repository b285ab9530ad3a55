"""Whether a pod may preempt at all (upstream: defaultpreemption/default_preemption.go PodEligibleToPreemptOthers)."""

from datetime import UTC, datetime
from typing import Final

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import Rejections
from bayplan.framework.status import Code

NEVER: Final = "not eligible due to preemptionPolicy=Never."
TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."


def why_not_eligible(pod: PodInfo, nominated_node: str, nodes: NodeTable, rejections: Rejections) -> str | None:
    """Return why `pod` may not preempt now, in kube-scheduler's words; None if it may."""
    if pod.pod.spec.preemption_policy == "Never":
        return NEVER
    row = nodes.row(nominated_node) if nominated_node else None
    if row is None or not nodes.exists[row]:
        return None
    if Code.UNSCHEDULABLE_AND_UNRESOLVABLE in rejections.codes[rejections.rows == row]:
        return None
    if any(is_terminating_by_preemption(each) and each.priority < pod.priority for each in nodes.pods[row].values()):
        return TERMINATING
    return None


def is_terminating_by_preemption(pod: PodInfo) -> bool:
    """Return whether a scheduler is evicting the pod for another one (upstream: podTerminatingByPreemption)."""
    if pod.pod.metadata.deletion_timestamp is None:
        return False
    for condition in pod.pod.status.conditions or ():
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == "PreemptionByScheduler"
    return False


def seconds_until_allowed(pod: PodInfo, delay: int, now: float) -> float:
    """Return for how long a pod may not preempt yet that may do so `delay` seconds after its creation; 0 if it may."""
    if not delay:
        return 0.0
    try:
        moment = datetime.fromisoformat(pod.pod.metadata.creation_timestamp or "")
        created = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    # With a clock behind the API server's it must not wait for longer than the delay.
    return min(max(created + delay - now, 0.0), delay)


def too_early(delay: int) -> str:
    """Return the message for a pod that may not preempt yet."""
    return f"not eligible before preemptionDelaySeconds={delay} have passed since the pod was created."
