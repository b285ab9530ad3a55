"""What a scheduling cycle decides about a pod, and what that was found by, for those who tell of it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.evaluation import Evaluation
from bayplan.framework.interface import CycleState, PostFilterResult
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Diagnosis, Status


class Unscored(StrEnum):
    """Why a node was chosen without scores: the texts under which a placement is explained."""

    ONLY_NODE = "the only node that fits"
    NOMINATED = "fits on the node it was nominated to"
    NO_SCORE_PLUGINS = "the first node that fits: no plugin scores nodes"


class RunnerUp(NamedTuple):
    """The node that would have been chosen without the one that was, and its score."""

    node_name: str
    score: int


class Placement(msgspec.Struct, eq=False):
    """The node chosen for a pod; `score` is None when nothing was scored, and then `unscored` says why.

    `state` is what PreFilter, Filter and PreScore wrote, for the extension points that follow in this attempt.
    `runner_up` is set by who tells of the decision, if at all.
    """

    node_name: str
    score: int | None
    feasible_nodes: int
    state: CycleState
    unscored: Unscored | None = None
    runner_up: RunnerUp | None = None


_NOT_RUN: Final = PostFilterResult(Status(Code.UNSCHEDULABLE), nominated_node_name="")
"""Where no PostFilter plugin was run nobody makes room, so none is kept any more."""


@dataclass(frozen=True, slots=True)
class FitError:
    """No node fits, for the reasons in `diagnosis`; `post_filter` is how room can be made, if it can."""

    diagnosis: Diagnosis
    post_filter: PostFilterResult = _NOT_RUN

    @property
    def message(self) -> str:
        """The text of the FailedScheduling Event and of the condition."""
        return f"{self.diagnosis.message} {self.post_filter.status.message}".rstrip()


Outcome = Placement | FitError


class Decision(msgspec.Struct, eq=False, gc=False):
    """The outcome for one pod, and the evaluation it was read from; made for every pod, and kept by nobody.

    Whoever explains, compares or traces reads it before the pod is assumed: the evaluation is that of the next decision
    then, and who kept it would keep memory that nobody counts. `rows` are the nodes that a limited search found, None
    for all feasible ones. `totals` are their scores, or those of all rows of the table with NOT_FEASIBLE for others;
    None when nothing was scored. `row` is the chosen node's, -1 without one.
    """

    pod: PodInfo
    framework: Framework
    nodes: NodeTable
    evaluation: Evaluation
    outcome: Outcome
    row: int = -1
    rows: Rows | None = None
    totals: NDArray[np.int64] | None = None

    @property
    def found(self) -> Rows:
        """The nodes among which one was chosen, in the order in which they were searched."""
        return np.flatnonzero(self.evaluation.feasible) if self.rows is None else self.rows

    @property
    def scores(self) -> dict[str, int] | None:
        """What each plugin gave the chosen node, weighted; None when nothing was scored."""
        if self.totals is None:
            return None
        return self.evaluation.scores_at(self.pod, self.row, self.rows)
