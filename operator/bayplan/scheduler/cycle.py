"""The pure scheduling cycle: a pod and the node table in, a placement or the reasons against one out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.evaluation import Evaluation
from bayplan.evaluation.kept_evaluations import KeptEvaluations
from bayplan.framework.candidate import Candidate
from bayplan.framework.nominated_table import Nominations
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Code, Diagnosis, Status
from bayplan.queue.nominator import Nominator
from bayplan.scheduler.extender.verdicts import diagnosis_with_verdicts, rejections_with_verdicts
from bayplan.scheduler.trace import Trace, trace_attempt

ExtensionPointObserver = Callable[[str, str, str, float], None]
"""Told `(extension_point, status, profile, seconds)`; measuring is all the clock is for, no decision reads it."""

_MIN_FEASIBLE_NODES_TO_FIND = 100
_MIN_PERCENTAGE = 5


@dataclass(slots=True)  # made once a cycle: a frozen one takes three times as long
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
    """No node fits; `nominated_node_name` and `victims` are set when preemption can make room.

    `nominated_node_name` is "" when an earlier nomination is to be cleared, None when it stays. `candidates` are the
    nodes preemption compared; with `evicts` the victims end through the Eviction API. After `retry_after` seconds
    preemption may say something else although nothing happened.
    """

    diagnosis: Diagnosis
    nominated_node_name: str | None = None
    victims: tuple[PodInfo, ...] = ()
    trace: Trace | None = None
    candidates: tuple[Candidate, ...] = ()
    evicts: bool = False
    retry_after: float | None = None

    @property
    def message(self) -> str:
        """What the user is told."""
        return self.diagnosis.message


class SchedulingCycle:
    """Decides for one pod at a time over one node table; the loop, the simulator and explanations all call it.

    It never writes to the table. Between pods it keeps one evaluation per pod shape, which makes a decision about a
    known shape cost what changed since, not what exists.
    """

    def __init__(
        self, nodes: NodeTable, nominator: Nominator | None = None, *, observe: ExtensionPointObserver | None = None
    ) -> None:
        self._nodes = nodes
        self._evaluations = KeptEvaluations(nodes)
        self._nominations = Nominations(nodes, nominator or Nominator(), self._evaluations.forget_nominated)
        self._observe = observe
        self._next_start = 0

    def schedule(
        self, pod: PodInfo, framework: Framework, *, explain: bool = False, with_scores: bool = False
    ) -> Placement | FitError:
        """Choose the best node for `pod` now, or say why there is none.

        `explain` records the verdict on every node, `with_scores` only the plugins' scores of the chosen one.

        Among nodes with the same best total the one first in the table wins, which for equal nodes is the one that
        was added first.
        """
        # As `_forgetting`, which takes a while to enter, for the one call that is made for every pod.
        try:
            return self._schedule(pod, framework, explain=explain, with_scores=with_scores)
        except Exception:
            self._evaluations.forget(id(framework), framework.signature(pod))
            raise

    def feasible_nodes(self, pod: PodInfo, framework: Framework) -> list[str]:
        """The nodes that pass the filters now, as many as percentageOfNodesToScore asks for.

        The first half of `schedule`, for those who ask extenders about the nodes before they `choose` or `reject`.
        """
        with self._forgetting(pod, framework):
            started = perf_counter()
            evaluation = self._evaluation(pod, framework)
            evaluation.refresh(pod)
            sampled = self._sample(evaluation, framework)
            rows = np.flatnonzero(evaluation.feasible) if sampled is None else sampled
            self._report("Filter", len(rows) > 0, framework, started)
            return [self._nodes.names[row] for row in rows.tolist()]

    def choose(
        self, pod: PodInfo, framework: Framework, names: Sequence[str], extra: Mapping[str, int]
    ) -> Placement | None:
        """The best of the nodes called `names`, which each have `extra` points; None if none of them fits any more."""
        with self._forgetting(pod, framework):
            started = perf_counter()
            evaluation = self._evaluation(pod, framework)
            evaluation.refresh(pod)
            known = {row: name for name in names if (row := self._nodes.row(name)) is not None}
            rows = np.array(sorted(row for row in known if evaluation.feasible[row]), dtype=np.intp)
            if len(rows) < 2:
                return Placement(known[int(rows[0])], None, len(names)) if len(rows) else None
            totals = _total(evaluation, pod, rows)
            totals += np.array([extra.get(known[row], 0) for row in rows.tolist()], dtype=np.int64)
            best = int(totals.argmax())
            self._report("Score", True, framework, started)
            return Placement(known[int(rows[best])], int(totals[best]), len(rows))

    def reject(self, pod: PodInfo, framework: Framework, verdicts: Mapping[str, Status]) -> FitError:
        """Why no node is left when extenders spoke against those in `verdicts` and left no other."""
        with self._forgetting(pod, framework):
            evaluation = self._evaluation(pod, framework)
            evaluation.refresh(pod)
            return self._fit_error(pod, framework, evaluation, explain=False, verdicts=verdicts)

    @contextmanager
    def _forgetting(self, pod: PodInfo, framework: Framework) -> Iterator[None]:
        """Forget the pod's evaluation if a plugin raises half way: it is left behind the table."""
        try:
            yield
        except Exception:
            self._evaluations.forget(id(framework), framework.signature(pod))
            raise

    def _schedule(
        self, pod: PodInfo, framework: Framework, *, explain: bool, with_scores: bool
    ) -> Placement | FitError:
        started = perf_counter()
        evaluation = self._evaluation(pod, framework)
        evaluation.refresh(pod)
        nominated = self._fits_where_nominated(pod, evaluation)
        if nominated is not None:
            self._report("Filter", True, framework, started)
            trace = trace_attempt(self._nodes, evaluation, pod, nominated) if explain else None
            return Placement(self._nodes.names[nominated[0]], None, 1, trace)
        sampled = self._sample(evaluation, framework)
        feasible_count = evaluation.filters.feasible_count() if sampled is None else len(sampled)
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

    def _fits_where_nominated(self, pod: PodInfo, evaluation: Evaluation) -> Rows | None:
        """The row the pod is nominated to, if it fits there now: then no other is looked at.

        Upstream: schedule_one.go evaluateNominatedNode.
        """
        name = self._nominations.nominator.nominated_node(pod.uid) or pod.pod.status.nominated_node_name
        row = self._nodes.row(name) if name else None
        return None if row is None or not evaluation.feasible[row] else np.array([row], dtype=np.intp)

    def _report(self, point: str, ok: bool, framework: Framework, started: float) -> float:
        """Tell how long an extension point took for all nodes; returns the time now."""
        now = perf_counter()
        if self._observe is not None:
            self._observe(point, "Success" if ok else "Unschedulable", framework.profile_name, now - started)
        return now

    def _fit_error(
        self,
        pod: PodInfo,
        framework: Framework,
        evaluation: Evaluation,
        *,
        explain: bool,
        verdicts: Mapping[str, Status] | None = None,
    ) -> FitError:
        diagnosis = evaluation.filters.verdicts.diagnose(pod)
        if verdicts is not None:
            diagnosis = diagnosis_with_verdicts(diagnosis, verdicts)
        trace = trace_attempt(self._nodes, evaluation, pod, None) if explain else None
        if diagnosis.node_count == 0 or not framework.post_filters:
            return FitError(diagnosis, trace=trace)
        rejections = evaluation.filters.verdicts.rejections()
        if verdicts is not None:
            rejections = rejections_with_verdicts(rejections, verdicts, self._nodes)
        reasons: list[str] = []
        nominated_node_name: str | None = None
        retries: list[float] = []
        for plugin in framework.post_filters:
            result = plugin.post_filter({}, pod, self._nodes, rejections)
            if result.status.code is Code.SUCCESS:
                node_name, victims = result.nominated_node_name, result.victims
                return FitError(diagnosis, node_name, victims, trace, result.candidates, evicts=result.evicts)
            if result.retry_after is not None:
                retries.append(result.retry_after)
            nominated_node_name = result.nominated_node_name
            if result.status.code is not Code.UNSCHEDULABLE:
                # As upstream (framework/runtime/framework.go RunPostFilterPlugins): a final answer stands alone.
                reasons = [*result.status.reasons]
                break
            reasons.extend(result.status.reasons)
        diagnosis = Diagnosis(
            diagnosis.node_count,
            diagnosis.reasons,
            diagnosis.rejector_plugins,
            diagnosis.pre_filter_message,
            ", ".join(reasons),
        )
        return FitError(diagnosis, nominated_node_name, trace=trace, retry_after=min(retries, default=None))

    def _evaluation(self, pod: PodInfo, framework: Framework) -> Evaluation:
        signature = framework.signature(pod)
        seen = self._nominations.seen_by(pod)
        if signature is None:
            return Evaluation(framework, self._nodes, self._nominations, seen)
        key = (id(framework), signature, seen)
        evaluation = self._evaluations.get(key)
        if evaluation is None:
            evaluation = Evaluation(framework, self._nodes, self._nominations, seen)
            self._evaluations.put(key, evaluation, pod)
        return evaluation

    def _sample(self, evaluation: Evaluation, framework: Framework) -> Rows | None:
        """The feasible rows a search limited by percentageOfNodesToScore finds; None when it is not limited.

        The search starts where the last one ended, so that all nodes get their turn (upstream: schedule_one.go
        findNodesThatPassFilters).
        """
        percentage = framework.percentage_of_nodes_to_score
        if percentage is None:
            return None
        candidates = evaluation.filters.candidates()
        count = len(candidates)
        wanted = nodes_to_find(count, percentage)
        if wanted >= count or evaluation.filters.rejection is not None:
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
