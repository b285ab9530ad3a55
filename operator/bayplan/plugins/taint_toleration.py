"""TaintToleration: taints keep pods away, or push them elsewhere."""

from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar

import numpy as np

from bayplan.api.objects import Node, Taint
from bayplan.api.tolerations import Tolerance
from bayplan.cache.change_log import Rows
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.causes import Detail, UntoleratedTaint, same_for_all
from bayplan.framework.cluster_event import NODE_ADD, NODE_TAINT, TARGET_POD_TOLERATION, EventRegistration, hint
from bayplan.framework.interface import CycleState, Scores
from bayplan.framework.status import SUCCESS, Code, Codes, Normalize, Reads, Reason, Status, Traits

_SOFT_EFFECT = "PreferNoSchedule"


class TaintToleration:
    """Rejects nodes with hard taints the pod does not tolerate and counts the soft ones against the others.

    The operators Lt and Gt match where it `compares`. Upstream: plugins/tainttoleration/taint_toleration.go.
    """

    name: ClassVar[str] = "TaintToleration"
    traits: ClassVar[Traits] = Traits(
        reads=Reads.NODE,
        normalize=Normalize.REVERSE,
        without_pre_score='failed to read "PreScoreTaintToleration" from cycleState: not found',
    )

    def __init__(self, index: NodeIndex, *, compares: bool = False) -> None:
        self._index = index
        self._compares = compares

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return tuple(pod.pod.spec.tolerations or ())

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        rejection = np.int8(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        tolerance = Tolerance(pod.pod.spec.tolerations, compares=self._compares)
        return self._index.taints().each(rows, lambda taints: rejection * tolerance.repelled_by(taints), np.int8)

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        return [Reason("node(s) had untolerated taint(s)", np.ones(len(rows), dtype=np.bool_))]

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Iterator[Detail]:
        tolerance = Tolerance(pod.pod.spec.tolerations, compares=self._compares)
        column = self._index.taints()
        ids = column.ids[rows]
        holders: dict[Taint, list[int]] = {}
        for place in np.flatnonzero(np.bincount(ids, minlength=1)).tolist():
            for taint in {each for each in column.values[place] if tolerance.repelled_by((each,))}:
                holders.setdefault(taint, []).append(place)
        for taint, places in holders.items():
            cause = UntoleratedTaint(taint.key, taint.value, taint.effect)
            has_it = np.zeros(len(column.values), dtype=np.bool_)
            has_it[places] = True
            yield same_for_all(has_it[ids], cause)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        soft = [each for each in pod.pod.spec.tolerations or () if each.effect in ("", _SOFT_EFFECT)]
        tolerance = Tolerance(soft, compares=self._compares)

        def intolerable(taints: tuple[Taint, ...]) -> int:
            return sum(taint.effect == _SOFT_EFFECT and not tolerance.covers(taint) for taint in taints)

        return self._index.taints().each(rows, intolerable, np.int64)

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(NODE_ADD, hint(self._becomes_tolerable, new=Node)),
            EventRegistration(NODE_TAINT, hint(self._becomes_tolerable, new=Node)),
            EventRegistration(TARGET_POD_TOLERATION),
        )

    def _becomes_tolerable(self, pod: PodInfo, old: Node | None, new: Node) -> bool:
        """Return whether the node is new or its taints kept the pod away before, and they do not any more."""
        tolerance = Tolerance(pod.pod.spec.tolerations, compares=self._compares)
        was_kept_away = old is None or tolerance.repelled_by(old.spec.taints)
        return was_kept_away and not tolerance.repelled_by(new.spec.taints)
