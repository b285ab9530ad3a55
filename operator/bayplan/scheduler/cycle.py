"""The pure scheduling cycle: a pod and the node table in, a placement or the reasons against one out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.evaluation import Evaluation
from bayplan.evaluation.kept_evaluations import KeptEvaluations
from bayplan.framework.interface import Rejections
from bayplan.framework.nominated_table import Nominations
from bayplan.framework.nominator import Nominator
from bayplan.framework.plugin_calls import SUCCESS_LABEL, UNSCHEDULABLE_LABEL
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Diagnosis, Reads
from bayplan.scheduler.decision import Decision, FitError, Placement, Unscored
from bayplan.scheduler.sampling import NodeSearch

AddRejections = Callable[[Diagnosis, Rejections], tuple[Diagnosis, Rejections]]
"""Adds the rejections of extenders to those of the filters."""


_RESTING_LOG_BYTES: Final = 2**18
"""What pods that came and went may take while nothing is decided; reading all pods again costs more."""


class SchedulingCycle:
    """Decides for one pod at a time over one node table; the loop, the simulator and explanations all call it.

    It never writes to the table. Between pods it keeps one evaluation per pod shape, which makes a decision about a
    known shape cost what changed since, not what exists.

    `frameworks` are those it will be asked about: where one limits its search, every cycle counts from the first on.
    If it does not `tell_reasons`, a FitError names who rejected the pod and not why, for those who read no texts.
    """

    def __init__(
        self,
        nodes: NodeTable,
        nominator: Nominator | None = None,
        frameworks: Iterable[Framework] = (),
        *,
        tell_reasons: bool = True,
    ) -> None:
        self._nodes = nodes
        self._evaluations = KeptEvaluations(nodes)
        self._nominator = nominator or Nominator()
        self._nominations = Nominations(nodes, self._nominator, self._evaluations.forget_nominated)
        self._tells_reasons = tell_reasons
        self._is_used = False
        self._search = NodeSearch(nodes) if any(each.limits_search for each in frameworks) else None

    def schedule(self, pod: PodInfo, framework: Framework) -> Decision:
        """Choose the best node for `pod` now, or give the reasons why there is none.

        Among nodes with the same best total the first one searched wins. All nodes are searched in the order of their
        rows, and where a profile limits the search, from where the last one ended; a node that comes takes the row of
        one that left.
        """
        evaluation, decision = self._place(pod, framework)
        if decision is not None:
            return decision
        return Decision(pod, framework, self._nodes, evaluation, self._fit_error(pod, framework, evaluation))

    @contextmanager
    def placed_together(self, pods: Iterable[PodInfo]) -> Iterator[None]:
        """Have pods of one round keep no room from each other by their nominations; the round takes them one by one.

        Upstream: scheduling_queue.go nominatedPodToInfo, which knows nothing of what popped pods ask for.
        """
        self._nominator.set_aside({pod.uid for pod in pods})
        try:
            yield
        finally:
            self._nominator.set_aside(())

    def schedule_member(self, pod: PodInfo, framework: Framework, within: Rows | None = None) -> Decision:
        """As `schedule` for one pod of a group, for which no room is made by itself: no PostFilter plugin is run.

        It looks only at the rows `within`, if given, which are existing nodes in growing order.
        """
        evaluation, decision = self._place(pod, framework, within)
        if decision is None:
            diagnosis = evaluation.verdicts.diagnose(
                pod, with_reasons=self._tells_reasons, within=within, tried=self._nominated_row(pod)
            )
            decision = Decision(pod, framework, self._nodes, evaluation, FitError(diagnosis))
        return decision

    def suitable(self, pod: PodInfo, framework: Framework) -> NDArray[np.bool_]:
        """Which rows the pod may find room on, whatever is placed before it, `(capacity,) bool`."""
        return self._evaluation(pod, framework).suitable

    def fits(self, pod: PodInfo, framework: Framework, node_name: str) -> bool:
        """Whether the pod passes the filters on this node now."""
        row = self._nodes.row(node_name)
        return row is not None and bool(self._evaluation(pod, framework).feasible[row])

    def looks_at_one_node(self, pod: PodInfo, framework: Framework) -> bool:
        """Whether pods elsewhere say nothing about whether the pod passes on a node."""
        filters = self._evaluation(pod, framework).pre_filters.filters
        return all(each.traits.reads is not Reads.CLUSTER for each in filters)

    def release_unused(self) -> None:
        """Let go of what no pod needed since the last call and that holds pods, which may be gone.

        What ordinary pods need again stays: only without any decision are the evaluations of large pods let go of, and
        readers that lag behind made to read all pods, if those that came and went take much.
        """
        self._nominations.release_unused()
        if not self._is_used:
            self._evaluations.forget_large()
            if self._nodes.pods_changed.size > _RESTING_LOG_BYTES:
                self._nodes.pods_changed.forget()
        self._is_used = False

    # The three parts of `schedule` between which extenders are called.

    def feasible_nodes(self, pod: PodInfo, framework: Framework) -> list[str]:
        """The nodes that pass the filters now, as many as percentageOfNodesToScore requires."""
        started = perf_counter()
        evaluation = self._evaluation(pod, framework)
        search = self._search_of(framework)
        sampled = None if search is None else search.find(evaluation, framework)
        rows = np.flatnonzero(evaluation.feasible) if sampled is None else sampled
        self._report_filter(len(rows) > 0, framework, evaluation, started)
        return [self._nodes.names[row] for row in rows.tolist()]

    def choose(
        self, pod: PodInfo, framework: Framework, names: Sequence[str], extra: Mapping[str, int]
    ) -> Decision | None:
        """The best of the nodes called `names`, which each have `extra` points; None if none of them fits any more.

        Among nodes with the same total the first of `names` wins, which are in the order of the search.
        """
        started = perf_counter()
        evaluation = self._evaluation(pod, framework)
        known = {row: name for name in names if (row := self._nodes.row(name)) is not None}
        rows = np.array([row for row in known if evaluation.feasible[row]], dtype=np.intp)
        if not len(rows):
            return None
        if len(rows) == 1:
            row, totals = int(rows[0]), None
            placement = Placement(known[row], None, 1, evaluation.state.copy(), Unscored.ONLY_NODE)
        else:
            totals = evaluation.totals_of(pod, rows)
            totals += np.array([extra.get(known[row], 0) for row in rows.tolist()], dtype=np.int64)
            best = int(totals.argmax())
            row = int(rows[best])
            self._report_score(framework, evaluation, started)
            placement = Placement(known[row], int(totals[best]), len(rows), evaluation.state.copy())
        return Decision(pod, framework, self._nodes, evaluation, placement, row, rows, totals)

    def reject(self, pod: PodInfo, framework: Framework, add_rejections: AddRejections | None = None) -> Decision:
        """Why no node is left; `add_rejections` adds those of extenders, if any was called."""
        evaluation = self._evaluation(pod, framework)
        fit_error = self._fit_error(pod, framework, evaluation, add_rejections)
        return Decision(pod, framework, self._nodes, evaluation, fit_error)

    def _place(
        self, pod: PodInfo, framework: Framework, within: Rows | None = None
    ) -> tuple[Evaluation, Decision | None]:
        """The evaluation of the pod's shape, and the decision for the best node; None if there is no node."""
        started = perf_counter()
        nodes, evaluation = self._nodes, self._evaluation(pod, framework)
        search = self._search_of(framework)
        rows: Rows | None = None
        nominated = self._nominated_row(pod)
        if within is not None and nominated not in within:
            nominated = None
        if nominated is not None and evaluation.feasible[nominated]:
            rows = np.array([nominated], dtype=np.intp)
        elif within is not None:
            rows = within[evaluation.feasible[within]]
        elif search is not None:
            rows = search.find(evaluation, framework, nominated)
        count = int(np.count_nonzero(evaluation.feasible)) if rows is None else len(rows)
        filtered = self._report_filter(count > 0, framework, evaluation, started)
        if count == 0:
            return evaluation, None
        if count == 1:
            if rows is None:
                row, unscored = int(np.argmax(evaluation.feasible)), Unscored.ONLY_NODE
            else:
                row = int(rows[0])
                alone = Unscored.ONLY_NODE if framework.scores else Unscored.NO_SCORE_PLUGINS
                unscored = Unscored.NOMINATED if row == nominated else alone
            placement = Placement(nodes.names[row], None, 1, evaluation.state.copy(), unscored)
            return evaluation, Decision(pod, framework, nodes, evaluation, placement, row, rows)
        totals = evaluation.totals(pod) if rows is None else evaluation.totals_of(pod, rows)
        best = int(totals.argmax())
        row = best if rows is None else int(rows[best])
        self._report_score(framework, evaluation, filtered)
        placement = Placement(nodes.names[row], int(totals[best]), count, evaluation.state.copy())
        return evaluation, Decision(pod, framework, nodes, evaluation, placement, row, rows, totals)

    def _search_of(self, framework: Framework) -> NodeSearch | None:
        """What limits the search, up to date; None while no profile needs it."""
        search = self._search
        if search is None:
            if not framework.limits_search:
                return None
            search = self._search = NodeSearch(self._nodes)
        search.follow()
        return search

    def _nominated_row(self, pod: PodInfo) -> int | None:
        """The row the pod is nominated to, if that node exists: it is tried first, and no other if the pod fits there.

        Upstream: schedule_one.go evaluateNominatedNode.
        """
        name = self._nominator.nominated_or_named_node(pod)
        return self._nodes.row(name) if name else None

    def _report_filter(self, ok: bool, framework: Framework, evaluation: Evaluation, started: float) -> float:
        """Report how long filtering took for all nodes; returns the time now, which decides nothing."""
        calls = framework.calls
        if not calls.observed:
            return started
        now = perf_counter()
        evaluation.pre_filters.attempts.value += 1
        calls.report_rest("Filter", SUCCESS_LABEL if ok else UNSCHEDULABLE_LABEL, now - started)
        return now

    def _report_score(self, framework: Framework, evaluation: Evaluation, started: float) -> None:
        """Report how long scoring took for all nodes."""
        calls = framework.calls
        if calls.observed:
            evaluation.scored.attempts.value += 1
            calls.report_rest("Score", SUCCESS_LABEL, perf_counter() - started)

    def _fit_error(
        self,
        pod: PodInfo,
        framework: Framework,
        evaluation: Evaluation,
        add_rejections: AddRejections | None = None,
    ) -> FitError:
        """Why the filters rejected every node, and the result of the PostFilter plugins."""
        verdicts = evaluation.verdicts
        nominated, rejections = self._nominated_row(pod), verdicts.rejections()
        diagnosis = verdicts.diagnose(pod, with_reasons=self._tells_reasons, tried=nominated)
        if add_rejections is not None:
            diagnosis, rejections = add_rejections(diagnosis, rejections)
        if diagnosis.node_count == 0 or not framework.post_filters:
            return FitError(diagnosis)
        return FitError(diagnosis, framework.run_post_filter(evaluation.state.copy(), pod, self._nodes, rejections))

    def _evaluation(self, pod: PodInfo, framework: Framework) -> Evaluation:
        """The evaluation of the pod's shape, with its filters brought up to date."""
        self._is_used = True
        signature = framework.signature(pod)
        nominated = self._nominations.respected_by(pod)
        key = (id(framework), signature, nominated)
        evaluation = None if signature is None else self._evaluations.get(key)
        if evaluation is None:
            evaluation = Evaluation(framework, self._nodes, self._nominations, nominated)
            if signature is not None:
                self._evaluations.put(key, evaluation, pod)
        evaluation.refresh(pod)
        return evaluation
