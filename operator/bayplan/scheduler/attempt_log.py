"""Tells what became of attempts at `-v 2` and above, in kube-scheduler's words."""

import logging
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bayplan.cache.recently_used import RecentlyUsed
from bayplan.evaluation.raw_score import NOT_FEASIBLE
from bayplan.logs.formats import V2, V10
from bayplan.scheduler.attempt import Failed, Nominated, Reserved
from bayplan.scheduler.decision import Decision, Placement, RunnerUp

REMEMBERED_VERDICTS: Final = 32_768
"""Of so many pods the last verdict is known, at some 250 bytes each; of others it is told again."""

logger = logging.getLogger(__name__)


def note_scores(decision: Decision) -> None:
    """Keep with a placement what is told of it once the pod is bound, and tell each plugin's score of each node.

    Upstream: schedule_one.go prioritizeNodes.
    """
    if not logger.isEnabledFor(V2) or decision.totals is None:
        return
    placement = decision.outcome
    if isinstance(placement, Placement):
        placement.runner_up = runner_up(decision)
    if not logger.isEnabledFor(V10):
        return
    pod, rows = decision.pod.key, decision.found
    nodes = [decision.nodes.names[row] for row in rows.tolist()]
    for plugin, given in decision.evaluation.scores(decision.pod, rows).items():
        for node, score in zip(nodes, given.tolist(), strict=True):
            logger.log(V10, "Plugin scored node for pod pod=%r plugin=%s node=%r score=%d", pod, plugin, node, score)
    totals = decision.totals[rows] if decision.rows is None else decision.totals
    for node, score in zip(nodes, totals.tolist(), strict=True):
        logger.log(V10, "Calculated node's final score for pod pod=%r node=%r score=%d", pod, node, score)


def tell_bound(reserved: Reserved, seconds: float) -> None:
    """Tell where a pod was bound and why there, `seconds` after it was popped (upstream: schedule_one.go)."""
    if not logger.isEnabledFor(V2):
        return
    placement, second = reserved.placement, reserved.placement.runner_up
    told: tuple[object, ...]
    if second is None:
        why, told = "why=%r", (str(placement.unscored or ""),)
    else:
        why, told = "score=%d runnerUp=%r runnerUpScore=%d", (placement.score, *second)
    text = f"Successfully bound pod to node pod=%r node=%r {why} feasibleNodes=%d milliseconds=%.1f"
    logger.log(V2, text, reserved.pod.key, reserved.binding.node_name, *told, placement.feasible_nodes, seconds * 1000)


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
            victims = ",".join([victim.key for victim in attempt.fit_error.post_filter.victims])
            text = "the target node for the preemption is determined pod=%r node=%r victims=%s"
            logger.log(V2, text, pod, attempt.node_name, victims)


def runner_up(decision: Decision) -> RunnerUp | None:
    """Return the node that would have been chosen without the one that was; None when nothing was scored."""
    if decision.totals is None:
        return None
    rows, others = decision.rows, decision.totals.copy()
    others[decision.row if rows is None else np.flatnonzero(rows == decision.row)] = NOT_FEASIBLE
    second = int(others.argmax())
    return RunnerUp(decision.nodes.names[second if rows is None else int(rows[second])], int(others[second]))
