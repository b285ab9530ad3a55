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
"""The fewest pods of any domain when there is no domain."""


class HardSpread:
    """The verdict of a pod's DoNotSchedule constraints on every node (upstream: podtopologyspread/filtering.go)."""

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
        """A code per row as the table is now, `(rows,) int8`."""
        if self._domains.moved():
            self._codes = self._decide()
        return self._codes[rows]

    def codes_with_nominated(self, nominated: NominatedPods) -> Codes:
        """A code per row of `nominated`, if its pods were on it; `(rows,) int8`."""
        self._domains.catch_up()
        codes: Codes = np.zeros(len(nominated.rows), dtype=np.int8)
        for constraint, domains in reversed(list(zip(self._constraints, self._domains.domains, strict=False))):
            here, least = domains.totals_with_nominated(nominated)
            fewest = _fewest_anyway(constraint, domains)
            skew = here + constraint.self_match - (least if fewest is None else fewest)
            codes[skew > constraint.max_skew] = Code.UNSCHEDULABLE
            codes[~domains.labelled[nominated.rows]] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return codes

    def reasons(self, rows: Rows) -> Sequence[Reason]:
        """Why rows are rejected."""
        codes = self.codes(rows)
        return [
            Reason(_NO_LABEL, codes == Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
            Reason(_NOT_MATCHED, codes == Code.UNSCHEDULABLE),
        ]

    def _decide(self) -> Codes:
        decided: Codes | None = None
        for constraint, domains in zip(self._constraints, self._domains.domains, strict=False):
            by_place = np.full(domains.limit + 1, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, dtype=np.int8)
            by_place[:-1] = _too_full(constraint, domains) * np.int8(Code.UNSCHEDULABLE)
            codes = by_place[domains.places]
            # The first constraint a node fails decides.
            decided = codes if decided is None else np.where(decided != 0, decided, codes)
        return np.zeros(len(self._domains.has_all_keys), dtype=np.int8) if decided is None else decided


def _too_full(constraint: SpreadConstraint, domains: Domains) -> NDArray[np.bool_]:
    """Which domains may not take the pod, `(domains,) bool`."""
    totals = domains.totals()
    fewest = _fewest_anyway(constraint, domains)
    if fewest is None:
        fewest = int(totals[domains.known].min())
    return totals + (constraint.self_match - fewest) > constraint.max_skew


def _fewest_anyway(constraint: SpreadConstraint, domains: Domains) -> int | None:
    """What the emptiest domain is taken to hold whatever it holds; None where it is what it holds."""
    if len(domains.known) < constraint.min_domains:
        return 0
    return None if len(domains.known) else _NO_DOMAINS
