"""Tells what became of attempts at `-v 2` and above, in kube-scheduler's words."""

import logging
from dataclasses import dataclass, field, replace
from typing import Final

from bayplan.cache.recently_used import RecentlyUsed
from bayplan.logs.formats import V2, V10
from bayplan.scheduler.attempt import Failed, Nominated, Reserved
from bayplan.scheduler.comparison import Compare

REMEMBERED_VERDICTS: Final = 32_768
"""Of so many pods the last verdict is known, at some 250 bytes each; of others it is told again."""

logger = logging.getLogger(__name__)


def wanted_comparison() -> Compare:
    """Return how much of the next decision will be told."""
    if not logger.isEnabledFor(V2):
        return Compare.NOTHING
    return Compare.PLUGINS if logger.isEnabledFor(V10) else Compare.RUNNER_UP


def tell_scores(reserved: Reserved) -> None:
    """Tell each plugin's score of each node that was compared, and let go of them.

    Upstream: schedule_one.go prioritizeNodes.
    """
    comparison = reserved.placement.comparison
    if comparison is None or (scores := comparison.scores) is None:
        return
    pod = reserved.pod.key
    for plugin, given in scores.by_plugin.items():
        for node, score in zip(scores.nodes, given, strict=True):
            logger.log(V10, "Plugin scored node for pod pod=%r plugin=%s node=%r score=%d", pod, plugin, node, score)
    for node, score in zip(scores.nodes, scores.totals, strict=True):
        logger.log(V10, "Calculated node's final score for pod pod=%r node=%r score=%d", pod, node, score)
    reserved.placement.comparison = replace(comparison, scores=None)


def tell_bound(reserved: Reserved, seconds: float) -> None:
    """Tell where a pod was bound and why there, `seconds` after it was popped (upstream: schedule_one.go)."""
    if not logger.isEnabledFor(V2):
        return
    pod, placement, milliseconds = reserved.pod.key, reserved.placement, seconds * 1000
    node, feasible, comparison = reserved.binding.node_name, placement.feasible_nodes, placement.comparison
    if placement.score is None or comparison is None:
        logger.log(
            V2,
            "Successfully bound pod to node pod=%r node=%r why=%r feasibleNodes=%d milliseconds=%.1f",
            pod,
            node,
            str(placement.unscored or ""),
            feasible,
            milliseconds,
        )
        return
    logger.log(
        V2,
        "Successfully bound pod to node pod=%r node=%r score=%d runnerUp=%r runnerUpScore=%d feasibleNodes=%d"
        " milliseconds=%.1f",
        pod,
        node,
        placement.score,
        comparison.runner_up,
        comparison.score,
        feasible,
        milliseconds,
    )


@dataclass(eq=False)
class VerdictLog:
    """Tells why a pod is still pending, in the words of its FailedScheduling Event, whenever it changes."""

    _told: RecentlyUsed[str, int] = field(default_factory=lambda: RecentlyUsed(REMEMBERED_VERDICTS), init=False)

    def tell(self, attempt: Failed | Nominated, message: str) -> None:
        """Tell the verdict of an attempt, unless it was the pod's last one, too."""
        if not logger.isEnabledFor(V2):
            return
        verdict = hash(message)
        if self._told.get(attempt.queued.uid) == verdict:
            return
        self._told.put(attempt.queued.uid, verdict)
        pod = attempt.pod.key
        if isinstance(attempt, Failed) and attempt.error:
            logger.log(V2, "Error scheduling pod; retrying pod=%r error=%s", pod, message)
            return
        logger.log(V2, "Unable to schedule pod; no fit; waiting pod=%r error=%s", pod, message)
        if isinstance(attempt, Nominated):
            victims = ",".join([victim.key for victim in attempt.fit_error.victims])
            text = "the target node for the preemption is determined pod=%r node=%r victims=%s"
            logger.log(V2, text, pod, attempt.node_name, victims)
