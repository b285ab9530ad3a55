"""What extenders say against nodes, joined with what the filters said."""

from collections.abc import Mapping
from dataclasses import replace

from bayplan.cache.node_table import NodeTable
from bayplan.framework.interface import Rejections
from bayplan.framework.runtime import EXTENDER
from bayplan.framework.status import Code, Diagnosis, Status


def diagnosis_with_verdicts(diagnosis: Diagnosis, verdicts: Mapping[str, Status]) -> Diagnosis:
    """The filters' diagnosis with a reason more for each node an extender spoke against.

    A node that an extender left out without a word adds no reason, as in kube-scheduler.
    """
    reasons = dict(diagnosis.reasons)
    for status in verdicts.values():
        for reason in status.reasons:
            reasons[reason] = reasons.get(reason, 0) + 1
    return replace(diagnosis, reasons=reasons, rejector_plugins=diagnosis.rejector_plugins | {EXTENDER})


def rejections_with_verdicts(rejections: Rejections, verdicts: Mapping[str, Status], nodes: NodeTable) -> Rejections:
    """The codes with the nodes that only extenders rejected: what they did not name counts as unresolvable."""
    codes = rejections.codes.copy()
    for position in (codes == Code.SUCCESS).nonzero()[0].tolist():
        verdict = verdicts.get(nodes.names[rejections.rows[position]])
        codes[position] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if verdict is None else verdict.code
    return replace(rejections, codes=codes)
