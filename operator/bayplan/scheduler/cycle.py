"""The pure scheduling cycle: a pod and the node table in, a placement or the reasons against one out."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.evaluation import Evaluation
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Diagnosis
from bayplan.scheduler.trace import Trace, trace_attempt

ExtensionPointObserver = Callable[[str, str, str, float], None]
"""Told `(extension_point, status, profile, seconds)`; measuring is all the clock is for, no decision reads it."""

_MIN_FEASIBLE_NODES_TO_FIND = 100
_MIN_PERCENTAGE = 5
_KEPT_CELLS = 4_000_000
"""How many (shape, row) cells evaluations may hold together: about 100 MB at 25 bytes each."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The node chosen for a pod; `score` is None when only one node was feasible and nothing was scored.

    `scores` are what each plugin gave the node, when that was asked for and nodes were scored.
    """

    node_name: str
    score: int | None
    feasible_nodes: int
    trace: Trace | None = None
    scores: dict[str, int] | None = None


@dataclass(frozen=True, slots=True)
class FitError:
    """No node fits; `nominated_node_name` and `victims` are set when preemption can make room."""

    diagnosis: Diagnosis
    nominated_node_name: str | None = None
    victims: tuple[PodInfo, ...] = ()
    trace: Trace | None = None

    @property
    def message(self) -> str:
        """What the user is told."""
        return self.diagnosis.message


class SchedulingCycle:
    """Decides for one pod at a time over one node table; the loop, the simulator and explanations all call it.

    It never writes to the table. Between pods it keeps one evaluation per pod shape, which makes a decision about a
    known shape cost what changed since, not what exists.
    """

    def __init__(self, nodes: NodeTable, *, observe: ExtensionPointObserver | None = None) -> None:
        self._nodes = nodes
        self._observe = observe
        self._evaluations: OrderedDict[tuple[int, Hashable], Evaluation] = OrderedDict()
        self._next_start = 0

    def schedule(
        self, pod: PodInfo, framework: Framework, *, explain: bool = False, with_scores: bool = False
    ) -> Placement | FitError:
        """Choose the best node for `pod` now, or say why there is none.

        `explain` records the verdict on every node, `with_scores` only the plugins' scores of the chosen one.

        Among nodes with the same best total the one first in the table wins, which for equal nodes is the one that
        was added first.
        """
        try:
            return self._schedule(pod, framework, explain=explain, with_scores=with_scores)
        except Exception:
            # A plugin that raised half way left its evaluation behind the table: the next pod starts anew.
            self._evaluations.pop((id(framework), framework.signature(pod)), None)
            raise

    def _schedule(
        self, pod: PodInfo, framework: Framework, *, explain: bool, with_scores: bool
    ) -> Placement | FitError:
        started = perf_counter()
        evaluation = self._evaluation(pod, framework)
        evaluation.refresh(pod)
        sampled = self._sample(evaluation, framework)
        feasible_count = evaluation.filtering.feasible_count() if sampled is None else len(sampled)
        filtered = self._report("Filter", feasible_count > 0, framework, started)
        if feasible_count == 0:
            return self._fit_error(pod, framework, evaluation, explain=explain)
        score: int | None = None
        if feasible_count == 1:
            row = int(np.argmax(evaluation.feasible)) if sampled is None else int(sampled[0])
        elif sampled is None:
            totals = evaluation.totals(pod)
            row = int(totals.argmax())
            score = int(totals[row])
        else:
            totals = _total(evaluation, pod, sampled)
            best = int(totals.argmax())
            row, score = int(sampled[best]), int(totals[best])
        if score is not None:
            self._report("Score", True, framework, filtered)
        trace = trace_attempt(self._nodes, evaluation, pod, sampled) if explain else None
        scores: dict[str, int] | None = None
        if with_scores and score is not None:
            rows = np.flatnonzero(evaluation.feasible) if sampled is None else sampled
            chosen = int(np.argmax(rows == row))
            scores = {plugin: int(given[chosen]) for plugin, given in evaluation.scores(pod, rows).items()}
        return Placement(self._nodes.names[row], score, feasible_count, trace, scores)

    def _report(self, point: str, ok: bool, framework: Framework, started: float) -> float:
        """Tell how long an extension point took for all nodes; returns the time now."""
        now = perf_counter()
        if self._observe is not None:
            self._observe(point, "Success" if ok else "Unschedulable", framework.profile_name, now - started)
        return now

    def _fit_error(self, pod: PodInfo, framework: Framework, evaluation: Evaluation, *, explain: bool) -> FitError:
        diagnosis = evaluation.filtering.diagnose(pod)
        trace = trace_attempt(self._nodes, evaluation, pod, None) if explain else None
        if diagnosis.node_count == 0 or not framework.post_filters:
            return FitError(diagnosis, trace=trace)
        rejections = evaluation.filtering.rejections()
        reasons: list[str] = []
        for plugin in framework.post_filters:
            result = plugin.post_filter({}, pod, self._nodes, rejections)
            reasons.extend(result.status.reasons)
            if result.status.code is Code.SUCCESS:
                return FitError(diagnosis, result.nominated_node_name, result.victims, trace)
            if result.status.code is not Code.UNSCHEDULABLE:
                break
        diagnosis = Diagnosis(
            diagnosis.node_count,
            diagnosis.reasons,
            diagnosis.rejector_plugins,
            diagnosis.pre_filter_message,
            ", ".join(reasons),
        )
        return FitError(diagnosis, trace=trace)

    def _evaluation(self, pod: PodInfo, framework: Framework) -> Evaluation:
        signature = framework.signature(pod)
        if signature is None:
            return Evaluation(framework, self._nodes)
        key = (id(framework), signature)
        evaluation = self._evaluations.get(key)
        if evaluation is None:
            evaluation = self._evaluations[key] = Evaluation(framework, self._nodes)
            while len(self._evaluations) > max(2, _KEPT_CELLS // self._nodes.capacity):
                self._evaluations.popitem(last=False)
        else:
            self._evaluations.move_to_end(key)
        return evaluation

    def _sample(self, evaluation: Evaluation, framework: Framework) -> Rows | None:
        """The feasible rows a search limited by percentageOfNodesToScore finds; None when it is not limited.

        The search starts where the last one ended, so that all nodes get their turn (upstream: schedule_one.go
        findNodesThatPassFilters).
        """
        percentage = framework.percentage_of_nodes_to_score
        if percentage is None:
            return None
        candidates = evaluation.filtering.candidates()
        count = len(candidates)
        wanted = nodes_to_find(count, percentage)
        if wanted >= count or evaluation.filtering.rejection is not None:
            return None
        order = np.roll(candidates, -(self._next_start % count))
        passed = np.flatnonzero(evaluation.feasible[order])
        if len(passed) > wanted:
            visited = int(passed[wanted - 1]) + 1
            passed = passed[:wanted]
        else:
            visited = count
        self._next_start = (self._next_start + visited) % len(self._nodes)
        return order[passed]


def nodes_to_find(count: int, percentage: int) -> int:
    """How many feasible nodes are enough among `count` (upstream: schedule_one.go numFeasibleNodesToFind).

    A `percentage` of 0 means kube-scheduler's adaptive one.
    """
    if count < _MIN_FEASIBLE_NODES_TO_FIND or percentage >= 100:
        return count
    if percentage == 0:
        percentage = max(50 - count // 125, _MIN_PERCENTAGE)
    return max(count * percentage // 100, _MIN_FEASIBLE_NODES_TO_FIND)


def _total(evaluation: Evaluation, pod: PodInfo, rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    total = np.zeros(len(rows), dtype=np.int64)
    for scores in evaluation.scores(pod, rows).values():
        total += scores
    return total
