"""Records a cycle's verdict on every node, for explanations."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.evaluation import Evaluation
from bayplan.framework.interface import PointsOfTenPlugin
from bayplan.framework.runtime import Framework

MAX_REASONS_BYTES: Final = 64 << 20
"""Most text of reasons in one trace: a pod can have thousands of them on each of thousands of nodes."""


class TraceTooLargeError(ValueError):
    """Raised when the reasons against a pod are more than MAX_REASONS_BYTES."""

    def __init__(self, pod: PodInfo) -> None:
        super().__init__(f"the reasons why nodes reject pod {pod.key} take more than {MAX_REASONS_BYTES >> 20} MiB")


@dataclass(slots=True)
class NodeTrace:
    """One node's verdict: who rejected it and why, or its scores after normalisation and weight."""

    rejected_by: str | None = None
    reasons: list[str] = field(default_factory=list)
    scores: dict[str, int] = field(default_factory=dict)
    score: int = 0
    of_ten: dict[str, int] = field(default_factory=dict)
    """By plugin, what its score is on the 0..10 of the shape that it is configured with."""


Trace = dict[str, NodeTrace]
"""Verdicts by node name."""


def trace_attempt(
    nodes: NodeTable, evaluation: Evaluation, framework: Framework, pod: PodInfo, sampled: Rows | None
) -> Trace:
    """Every node's verdict on `pod` as `evaluation` by `framework` holds it; `sampled` limits the scored nodes.

    As in kube-scheduler's log there are no scores when a single node was feasible: nothing was scored then.

    Raises:
        TraceTooLargeError: the reasons take too much memory, before they take it.
    """
    rejection = evaluation.pre_filters.rejection
    trace: Trace = {nodes.names[row]: NodeTrace() for row in nodes.rows().tolist()}
    if rejection is not None:
        _check_size(pod, sum(map(len, rejection.reasons)) * len(trace))
        for verdict in trace.values():
            verdict.rejected_by = rejection.plugin
            verdict.reasons = list(rejection.reasons)
        return trace
    _trace_rejections(nodes, evaluation, pod, trace)
    feasible = np.flatnonzero(evaluation.feasible) if sampled is None else sampled
    if sampled is not None:
        kept = {nodes.names[row] for row in feasible.tolist()}
        trace = {name: verdict for name, verdict in trace.items() if verdict.rejected_by or name in kept}
    if len(feasible) > 1:
        for plugin, scores in evaluation.scores(pod, feasible).items():
            for row, score in zip(feasible.tolist(), scores.tolist(), strict=True):
                verdict = trace[nodes.names[row]]
                verdict.scores[plugin] = score
                verdict.score += score
        _trace_points(nodes, framework, pod, feasible, trace)
    return trace


def _trace_points(nodes: NodeTable, framework: Framework, pod: PodInfo, feasible: Rows, trace: Trace) -> None:
    rows = feasible.tolist()
    for entry in framework.scores:
        plugin = entry.plugin
        if isinstance(plugin, PointsOfTenPlugin) and (points := plugin.points_of_ten(pod, nodes, rows)):
            for row, of_ten in zip(rows, points, strict=True):
                trace[nodes.names[row]].of_ten[plugin.name] = of_ten


def _trace_rejections(nodes: NodeTable, evaluation: Evaluation, pod: PodInfo, trace: Trace) -> None:
    verdicts = evaluation.verdicts
    rows = nodes.rows()
    out = verdicts.narrowed_out(rows)
    for row in rows[out].tolist():
        verdict = trace[nodes.names[row]]
        pre_filters = verdicts.pre_filters
        verdict.rejected_by, verdict.reasons = pre_filters.narrowed_plugins, [pre_filters.narrowed_reason]
    rows = rows[~out]
    first = verdicts.rejected_by(rows)
    size = 0
    for index in np.unique(first[first >= 0]).tolist():
        rejected = rows[first == index]
        plugin = verdicts.filter_at(index).name
        for row in rejected.tolist():
            trace[nodes.names[row]].rejected_by = plugin
        for reason in verdicts.reasons_of(pod, index, rejected):
            size += len(reason.text) * int(np.count_nonzero(reason.holds))
            _check_size(pod, size)
            for row in rejected[reason.holds].tolist():
                trace[nodes.names[row]].reasons.append(reason.text)


def _check_size(pod: PodInfo, size: int) -> None:
    if size > MAX_REASONS_BYTES:
        raise TraceTooLargeError(pod)
