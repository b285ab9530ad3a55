"""The hard half of topology spreading: nodes whose domain would get too far ahead of the emptiest."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.framework.nominated_table import NominatedPods
from bayplan.framework.status import Code, Codes, Reason
from bayplan.plugins.pod_topology_spread.constraints import SpreadConstraint
from bayplan.plugins.pod_topology_spread.domains import Domains, SpreadDomains

_NOT_MATCHED = "node(s) didn't match pod topology spread constraints"
_NO_LABEL = f"{_NOT_MATCHED} (missing required label)"

_NO_DOMAINS = 2**31 - 1
"""The minMatchNum when there is no domain."""


class HardSpread:
    """Filters every node by a pod's DoNotSchedule constraints (upstream: podtopologyspread/filtering.go)."""

    def __init__(self, constraints: Sequence[SpreadConstraint], nodes: NodeTable, domains: SpreadDomains) -> None:
        self.nodes = nodes
        self._constraints = constraints
        self._domains = domains
        self._codes: Codes = np.zeros(0, dtype=np.int8)

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return self._codes.nbytes + self._domains.nbytes

    def codes(self, rows: Rows) -> Codes:
        """Return a code per row as the table is now, `(rows,) int8`."""
        if self._domains.have_changed():
            self._codes = self._decide()
        return self._codes[rows]

    def codes_with_nominated(self, nominated: NominatedPods) -> Codes:
        """Return a code per row of `nominated`, if its pods were on it; `(rows,) int8`."""
        self._domains.catch_up()
        codes: Codes = np.zeros(len(nominated.rows), dtype=np.int8)
        for constraint, domains in reversed(list(zip(self._constraints, self._domains.domains, strict=False))):
            here, least = domains.totals_with_nominated(nominated)
            min_match_num = _fixed_min_match_num(constraint, domains)
            skew = here + constraint.self_match - (least if min_match_num is None else min_match_num)
            codes[skew > constraint.max_skew] = Code.UNSCHEDULABLE
            codes[~domains.labelled[nominated.rows]] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return codes

    def reasons(self, rows: Rows) -> Sequence[Reason]:
        """Return why rows are rejected."""
        codes = self.codes(rows)
        return [
            Reason(_NO_LABEL, codes == Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
            Reason(_NOT_MATCHED, codes == Code.UNSCHEDULABLE),
        ]

    def _decide(self) -> Codes:
        decided: Codes | None = None
        for constraint, domains in zip(self._constraints, self._domains.domains, strict=False):
            by_id = np.full(domains.limit + 1, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, dtype=np.int8)
            by_id[:-1] = _too_full(constraint, domains) * np.int8(Code.UNSCHEDULABLE)
            codes = by_id[domains.ids_or_limit]
            # The first constraint a node fails decides.
            decided = codes if decided is None else np.where(decided != 0, decided, codes)
        return np.zeros(len(self._domains.has_all_keys), dtype=np.int8) if decided is None else decided


def _too_full(constraint: SpreadConstraint, domains: Domains) -> NDArray[np.bool_]:
    """Return which domains may not take the pod, `(domains,) bool`."""
    totals = domains.totals()
    min_match_num = _fixed_min_match_num(constraint, domains)
    if min_match_num is None:
        min_match_num = int(totals[domains.known].min())
    return totals + (constraint.self_match - min_match_num) > constraint.max_skew


def _fixed_min_match_num(constraint: SpreadConstraint, domains: Domains) -> int | None:
    """Return the minMatchNum where it does not depend on pods; None where it is what the emptiest domain holds."""
    if len(domains.known) < constraint.min_domains:
        return 0
    return None if len(domains.known) else _NO_DOMAINS
