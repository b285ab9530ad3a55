"""The domains that spread constraints divide the nodes into, and how many matching pods each holds."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.api.objects import Taint
from bayplan.api.tolerations import Tolerance
from bayplan.cache.change_log import Rows
from bayplan.cache.incremental_view import NodeView, PodCounts, PodPredicate
from bayplan.cache.node_index import LabelColumn, NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.nominated_table import NominatedPods
from bayplan.plugins.node_affinity import RequiredNodeAffinity
from bayplan.plugins.pod_topology_spread.constraints import SpreadConstraint, selected_in

_MANY = 2**62
"""More pods than there are."""


class Domains:
    """One constraint's domains: a node's domain is the value of its topology key, and no value is as good as "".

    By row, `(capacity,)`: `labelled` is True if the node has the key, `ids` is its domain, `ids_or_limit` its domain or
    `limit` without the key, and `counted` is True if its pods count. `counted_rows` are the rows whose pods count and
    `counted_ids` their domains, `(counted,)` both; `known` are the domains that occur among them.
    """

    def __init__(
        self,
        constraint: SpreadConstraint,
        column: LabelColumn,
        counted: NDArray[np.bool_],
        counting: PodCounts | None,
        selects: PodPredicate,
    ) -> None:
        self.constraint = constraint
        # Copied, because the column goes on changing with the nodes.
        self.ids: NDArray[np.intp] = column.ids.astype(np.intp)
        self.labelled = self.ids != 0
        self.ids[~self.labelled] = column.id_of("") or 0
        self.limit = len(column.values)
        self.ids_or_limit = np.where(self.labelled, self.ids, self.limit)
        self.counted = counted
        self.counted_rows: Rows = np.flatnonzero(counted)
        self.counted_ids = self.ids[self.counted_rows]
        self.known: NDArray[np.intp] = np.flatnonzero(np.bincount(self.counted_ids, minlength=1))
        self._counting = counting
        self._selects = selects
        self._totals: NDArray[np.int64] = np.zeros(self.limit, dtype=np.int64)
        self._summed_at = self._seen_at = -1
        self._nominated: NominatedPods | None = None
        self._added: NDArray[np.int64] = self._totals

    def have_changed(self) -> bool:
        """Return whether pods came or went since the last call."""
        if self._counting is None:
            return False
        self._counting.counts()
        before, self._seen_at = self._seen_at, self._counting.version
        return before != self._seen_at

    def totals(self) -> NDArray[np.int64]:
        """Return the matching pods per domain, `(limit,) int64` (upstream: TpValueToMatchNum)."""
        if self._counting is None:
            return self._totals
        counts = self._counting.counts()
        if self._counting.version != self._summed_at:
            self._summed_at = self._counting.version
            # Whole numbers this small are exact in float64, the only type bincount sums.
            summed = np.bincount(self.counted_ids, weights=counts[self.counted_rows], minlength=self.limit)
            self._totals = summed.astype(np.int64)
        return self._totals

    @property
    def nbytes(self) -> int:
        """What the arrays take, those of counted pods included."""
        of_nodes = (self.ids, self.ids_or_limit, self.labelled, self.counted, self.counted_rows, self.counted_ids)
        of_domains = (self.known, self._totals)
        counts = 0 if self._counting is None else 8 * len(self.counted)
        return sum([array.nbytes for array in (*of_nodes, *of_domains)]) + counts

    def totals_with_nominated(self, nominated: NominatedPods) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for each row of `nominated`, were its pods on it, the pods in its domain and in the emptiest of all.

        Both are `(rows,) int64`; without domains the second is not to be used. Added pods count if they are selected,
        also by an empty selector, and while they end (upstream: podtopologyspread/filtering.go updateWithPod).
        """
        ids, totals = self.ids[nominated.rows], self.totals()
        here = totals[ids]
        fewest = totals[self.known]
        least = np.full(len(ids), fewest.min() if len(fewest) else 0)
        if self.constraint.selector.is_nothing:
            return here, least
        if self._nominated is not nominated:
            self._nominated = nominated
            self._added = np.array([sum(map(self._selects, pods)) for pods in nominated.added], dtype=np.int64)
            self._added[~self.counted[nominated.rows]] = 0
        here = here + self._added
        grown = self._added != 0
        if grown.any():
            at = int(fewest.argmin())
            others = np.delete(fewest, at)
            rest = np.where(ids == self.known[at], others.min() if len(others) else _MANY, fewest[at])
            least[grown] = np.minimum(rest, here)[grown]
        return here, least

    def pods_on(self, rows: Rows) -> NDArray[np.int64]:
        """Return the matching pods on each row itself, `(rows,) int64`."""
        if self._counting is None:
            return np.zeros(len(rows), dtype=np.int64)
        return self._counting.counts()[rows]


class SpreadDomains(NodeView):
    """The domains of some constraints of one pod, kept current as nodes change; the filter and the score have one each.

    `counting` has for each constraint what counts the pods that it selects, or None where it counts nobody.
    With `requires_all_keys` only nodes with all topology keys count. Once no node has all of them, the constraints
    that follow decide nothing: `domains` then ends early, which bounds what pods with made-up keys cost.
    """

    def __init__(
        self,
        constraints: Sequence[SpreadConstraint],
        pod: PodInfo,
        nodes: NodeTable,
        index: NodeIndex,
        counting: Sequence[PodCounts | None],
        *,
        requires_all_keys: bool,
        compares: bool = False,
    ) -> None:
        super().__init__(nodes)
        self.nodes = nodes
        self.requires_all_keys = requires_all_keys
        self._constraints = constraints
        self._affinity = RequiredNodeAffinity(pod)
        self._tolerance = Tolerance(pod.pod.spec.tolerations, compares=compares)
        self._index = index
        self._counting = counting
        self._selects = [selected_in(pod.namespace, each.selector) for each in constraints]
        self.domains: list[Domains] = []
        self.has_all_keys: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        """Which rows have all topology keys, `(capacity,) bool`."""

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return self.has_all_keys.nbytes + sum([each.nbytes for each in self.domains])

    def have_changed(self) -> bool:
        """Catch up; True if nodes or matching pods are others than at the last call."""
        rebuilt = self.catch_up()
        # All of them, so that none reports the same pods later.
        changed = [each.have_changed() for each in self.domains]
        return rebuilt or any(changed)

    def _read_all(self) -> None:
        exists = self._nodes.exists
        self.has_all_keys = exists.copy()
        columns: list[LabelColumn] = []
        for constraint in self._constraints:
            column = self._index.labels.column(constraint.topology_key)
            columns.append(column)
            self.has_all_keys &= column.ids != 0
            if self.requires_all_keys and not self.has_all_keys.any():
                break
        considered = self.has_all_keys if self.requires_all_keys else exists
        self.domains = []
        # Worked out once per policy: a pod may have thousands of node selector terms and tolerations.
        included: dict[tuple[bool, bool], NDArray[np.bool_]] = {}
        each_with = zip(self._constraints, self._counting, self._selects, columns, strict=False)
        for constraint, counting, selects, column in each_with:
            policies = (constraint.honors_affinity, constraint.honors_taints)
            rows = included.get(policies)
            if rows is None:
                rows = included[policies] = self._includes(constraint)
            self.domains.append(Domains(constraint, column, considered & rows, counting, selects))

    def _includes(self, constraint: SpreadConstraint) -> NDArray[np.bool_]:
        """Return which rows the constraint's policies let count, `(capacity,) bool`.

        Upstream: podtopologyspread/common.go matchNodeInclusionPolicies.
        """
        rows = np.arange(self._nodes.capacity, dtype=np.intp)
        included = np.ones(len(rows), dtype=np.bool_)
        if constraint.honors_affinity:
            included &= self._affinity.matches(self._index, self._nodes, rows)
        if constraint.honors_taints:
            included &= self._index.taints().each(rows, self._is_tolerated, np.bool_)
        return included

    def _is_tolerated(self, taints: tuple[Taint, ...]) -> bool:
        return not self._tolerance.repelled_by(taints)
