"""Records a cycle's verdict on every node, for explanations."""

from dataclasses import dataclass, field

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.evaluation import Evaluation
from bayplan.framework.interface import PointsOfTenPlugin
from bayplan.framework.runtime import Framework


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
    """
    rejection = evaluation.pre_filters.rejection
    trace: Trace = {nodes.names[row]: NodeTrace() for row in nodes.rows().tolist()}
    if rejection is not None:
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
    for index in np.unique(first[first >= 0]).tolist():
        rejected = rows[first == index]
        plugin = verdicts.filter_at(index).name
        for row in rejected.tolist():
            trace[nodes.names[row]].rejected_by = plugin
        for reason in verdicts.reasons_of(pod, index, rejected):
            for row in rejected[reason.holds].tolist():
                trace[nodes.names[row]].reasons.append(reason.text)
