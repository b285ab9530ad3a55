"""Finds the node that came second in a decision."""

import numpy as np

from bayplan.evaluation.raw_score import NOT_FEASIBLE
from bayplan.scheduler.decision import Decision, RunnerUp


def runner_up(decision: Decision) -> RunnerUp | None:
    """Return the node that would have been chosen without the one that was; None when nothing was scored."""
    if decision.totals is None:
        return None
    rows, others = decision.rows, decision.totals.copy()
    others[decision.row if rows is None else np.flatnonzero(rows == decision.row)] = NOT_FEASIBLE
    second = int(others.argmax())
    return RunnerUp(decision.nodes.names[second if rows is None else int(rows[second])], int(others[second]))
