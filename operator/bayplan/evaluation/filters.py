"""The filter half of an evaluation: which rows a pod shape may use, with nominated pods and without."""

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.row_follower import RowChange
from bayplan.evaluation.filter_round import Changed, FilterRound
from bayplan.evaluation.nominated_round import NominatedRound
from bayplan.evaluation.pre_filters import PreFilters
from bayplan.evaluation.verdicts import Verdicts
from bayplan.framework.interface import CycleState
from bayplan.framework.nominated_table import NominatedTable, Nominations
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Status


class Filters:
    """Runs the PreFilters and then each filter where its answer may be another, and keeps the feasible set.

    As in kube-scheduler a node's verdict is its first failing filter's, in profile order; here all filters are run,
    which costs nothing when answers are kept, and the order only decides who is named.
    """

    def __init__(
        self,
        framework: Framework,
        nodes: NodeTable,
        state: CycleState,
        nominations: Nominations | None = None,
        seen: NominatedTable | None = None,
    ) -> None:
        self._nodes = nodes
        self._pre_filters = PreFilters(framework, nodes, state)
        self._plain = FilterRound(self._pre_filters, nodes, state)
        self._nominated = (
            None if nominations is None or seen is None else NominatedRound(self._plain, nodes, nominations, seen)
        )
        self.verdicts = Verdicts(self._pre_filters, self._plain, self._nominated, nodes)
        self.feasible: NDArray[np.bool_] = self._plain.feasible
        """Which rows passed every filter in both rounds, `(capacity,) bool`."""

    @property
    def rejection(self) -> Status | None:
        """Set when a PreFilter plugin rejected the pod as a whole; then no row is feasible."""
        return self._pre_filters.rejection

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return self._plain.nbytes + (0 if self._nominated is None else self._nominated.nbytes + self.feasible.nbytes)

    def refresh(self, pod: PodInfo, change: RowChange) -> Changed:
        """Bring the feasible set up to date with what changed in the node table; whose verdict may be another now."""
        plain, nominated = self._plain, self._nominated
        anew, changed = change.everything, Changed.NOTHING
        if anew or not self._pre_filters.still_hold(pod):
            anew |= self._pre_filters.run(pod, anew=anew)
            changed = Changed.ROWS
        if anew:
            plain.start_over()
            if nominated is not None:
                nominated.start_over()
            changed = Changed.ANYWHERE
        if self._pre_filters.rejection is None:
            found = plain.refresh(pod, change, anew=anew)
            if nominated is not None:
                found = max(found, nominated.refresh(pod))
            changed = max(changed, found)
        self.feasible = plain.feasible if nominated is None else plain.feasible & ~nominated.blocked
        if changed or len(change.usage):
            self.verdicts.forget()
        return changed

    def feasible_count(self) -> int:
        """How many nodes passed."""
        return int(np.count_nonzero(self.feasible))

    def candidates(self) -> Rows:
        """The rows a search visits: all existing nodes, or those a PreFilter narrowed it to."""
        rows, allowed = self._nodes.rows(), self._plain.allowed
        return rows if allowed is None else rows[allowed[rows]]
