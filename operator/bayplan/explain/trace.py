"""Tells what a decision says of every node, in full."""

from typing import Final

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import PointsOfTenPlugin
from bayplan.scheduler.decision import Decision

MAX_REASONS_BYTES: Final = 64 << 20
"""Most text of reasons in one trace: a pod can have thousands of them on each of thousands of nodes."""


class ExplanationTooLargeError(ValueError):
    """Raised when what was asked to be explained takes more memory than it may; its text says what."""


class NodeVerdict(msgspec.Struct, rename="camel", gc=False):
    """What one attempt made of one node; scores are after normalisation and weight.

    `of_ten` is there where a shape on 0..10 is configured, and has the plugin's score as the documents work it out.
    """

    rejected_by: str | None
    reasons: list[str]
    scores: dict[str, int]
    score: int
    of_ten: dict[str, int] | UnsetType = UNSET


Trace = dict[str, NodeVerdict]
"""Verdicts by node name."""


def trace_of(decision: Decision) -> Trace:
    """Every node's verdict; of a limited search only those that were rejected or found.

    As in kube-scheduler's log there are no scores when a single node was feasible: nothing was scored then.

    Raises:
        ExplanationTooLargeError: the reasons take too much memory, before they take it.
    """
    nodes, evaluation, pod = decision.nodes, decision.evaluation, decision.pod
    rejection = evaluation.pre_filters.rejection
    trace: Trace = {nodes.names[row]: NodeVerdict(None, [], {}, 0) for row in nodes.rows().tolist()}
    if rejection is not None:
        _check_size(pod, sum(map(len, rejection.reasons)) * len(trace))
        for verdict in trace.values():
            verdict.rejected_by = rejection.plugin
            verdict.reasons = list(rejection.reasons)
        return trace
    _trace_rejections(decision, trace)
    found = decision.found
    names = [nodes.names[row] for row in found.tolist()]
    if decision.rows is not None:
        kept = set(names)
        trace = {name: verdict for name, verdict in trace.items() if verdict.rejected_by or name in kept}
    if len(names) > 1:
        for plugin, scores in evaluation.scores(pod, found).items():
            for name, score in zip(names, scores.tolist(), strict=True):
                trace[name].scores[plugin] = score
                trace[name].score += score
        tellers = [each.plugin for each in decision.framework.scores if isinstance(each.plugin, PointsOfTenPlugin)]
        for teller in tellers:
            points = teller.points_of_ten(pod, nodes, found.tolist())
            for name, of_ten in zip(names, points, strict=True) if points else ():
                trace[name].of_ten = {**(trace[name].of_ten or {}), teller.name: of_ten}
    return trace


def _trace_rejections(decision: Decision, trace: Trace) -> None:
    nodes, pod, verdicts = decision.nodes, decision.pod, decision.evaluation.verdicts
    rows = nodes.rows()
    out = verdicts.narrowed_out(rows)
    for row in rows[out].tolist():
        verdict = trace[nodes.names[row]]
        pre_filters = verdicts.pre_filters
        verdict.rejected_by, verdict.reasons = pre_filters.narrowed_plugins, [pre_filters.narrowed_reason]
    size = 0
    for rejection in verdicts.by_filter(rows[~out]):
        rejected = rejection.rows
        for row in rejected.tolist():
            trace[nodes.names[row]].rejected_by = rejection.plugin.name
        for reason in rejection.reasons(pod):
            size += len(reason.text) * int(np.count_nonzero(reason.holds))
            _check_size(pod, size)
            for row in rejected[reason.holds].tolist():
                trace[nodes.names[row]].reasons.append(reason.text)


def _check_size(pod: PodInfo, size: int) -> None:
    if size > MAX_REASONS_BYTES:
        what = f"the reasons why nodes reject pod {pod.key}"
        raise ExplanationTooLargeError(f"{what} take more than {MAX_REASONS_BYTES >> 20} MiB")
