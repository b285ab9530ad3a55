"""Masks and scores of one pod shape over all nodes, kept current as rows change instead of worked out anew.

Read on in this order: filters (pre_filters, filter_round, nominated_round, verdicts), score_totals (raw_score), and
few_rows, which both use where little changed.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.row_follower import RowChange, RowFollower
from bayplan.evaluation.filter_round import Changed
from bayplan.evaluation.filters import Filters
from bayplan.evaluation.score_totals import ScoreTotals
from bayplan.framework.interface import CycleState, HoldsArrays, Scores
from bayplan.framework.nominated_table import NominatedTable, Nominations
from bayplan.framework.runtime import Framework

_NO_ROWS: Rows = np.empty(0, dtype=np.intp)
_NOTHING: Final = RowChange(everything=False, usage=_NO_ROWS, objects=_NO_ROWS)
_EVERYTHING: Final = RowChange(everything=True, usage=_NO_ROWS, objects=_NO_ROWS)
_UNSCORED_ROWS: Final = 1024
"""Above so many changed rows that were filtered but not scored, all are scored when it comes to it."""


class Evaluation:
    """What one profile says of one pod shape: which rows are feasible, and the total score of each.

    Pods with the same `Framework.signature` that see the same nominations (`seen`) share an evaluation. `refresh`
    brings the filters up to date, `totals` the scores; both redo only rows that changed, unless a plugin depends on
    more than its own row.
    """

    def __init__(
        self,
        framework: Framework,
        nodes: NodeTable,
        nominations: Nominations | None = None,
        seen: NominatedTable | None = None,
    ) -> None:
        state = self._state = CycleState()
        self.seen = seen
        self.filters = Filters(framework, nodes, state, nominations, seen)
        self._totals = ScoreTotals(framework, nodes, state)
        self._follower = RowFollower(nodes)
        self._unscored: list[RowChange] = []
        self._unscored_rows = 0
        self._moved = False

    @property
    def state(self) -> CycleState:
        """What plugins wrote in PreFilter, Filter and PreScore; the pods that share the evaluation share it."""
        return self._state

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows passed every filter, `(capacity,) bool`."""
        return self.filters.feasible

    @property
    def nbytes(self) -> int:
        """What its arrays and those of its plugins take, without the nominated pods it sees."""
        of_plugins = [value.nbytes for value in self._state.values() if isinstance(value, HoldsArrays)]
        return self.filters.nbytes + self._totals.nbytes + sum(of_plugins)

    def refresh(self, pod: PodInfo) -> None:
        """Bring the feasible set up to date with the node table."""
        change = self._follower.follow()
        self._moved |= self.filters.refresh(pod, change) is Changed.ANYWHERE
        if change.everything or len(change.usage):
            self._unscored_rows += len(change.usage)
            if change.everything or (self._unscored and self._unscored_rows > _UNSCORED_ROWS):
                self._unscored, self._unscored_rows = [_EVERYTHING], _UNSCORED_ROWS
            else:
                self._unscored.append(change)

    def totals(self, pod: PodInfo) -> NDArray[np.int64]:
        """The weighted sum of normalised scores, or NOT_FEASIBLE, `(capacity,) int64`; call after `refresh`."""
        unscored, moved = self._unscored, self._moved
        self._unscored, self._unscored_rows, self._moved = [], 0, False
        change = unscored[0] if len(unscored) == 1 else _together(unscored)
        return self._totals.refresh(pod, change, self.filters.feasible, moved=moved)

    def scores(self, pod: PodInfo, rows: Rows) -> dict[str, Scores]:
        """Each plugin's normalised, weighted scores if exactly `rows` were the feasible nodes, `(rows,) int64` each.

        For a sampled search, where normalisation sees only the sample, and for explanations.
        """
        self.totals(pod)
        return self._totals.each(pod, rows)


def _together(changes: list[RowChange]) -> RowChange:
    """What changed in any of `changes`."""
    if not changes:
        return _NOTHING
    usage = np.unique(np.concatenate([change.usage for change in changes]))
    objects = np.unique(np.concatenate([change.objects for change in changes]))
    return RowChange(any(change.everything for change in changes), usage, objects)
