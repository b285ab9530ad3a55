"""The two halves of topology spreading: DoNotSchedule rules nodes out, ScheduleAnyway ranks the feasible ones."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.framework.causes import Detail, LabelMissing, Skew, same_for_all
from bayplan.framework.interface import MAX_NODE_SCORE, Scores
from bayplan.framework.nominated_table import NominatedPods
from bayplan.framework.status import Code, Codes, Reason
from bayplan.plugins.pod_topology_spread.domains import Domains, SpreadDomains

_NOT_MATCHED = "node(s) didn't match pod topology spread constraints"
_NO_LABEL = f"{_NOT_MATCHED} (missing required label)"

_NO_DOMAINS = 2**31 - 1
"""The minMatchNum when there is no domain."""

_HOSTNAME: Final = "kubernetes.io/hostname"
_INT64_MAX: Final = 2**63 - 1

# The minimax polynomial of the FreeBSD msun library (e_log.c), which Go's math package follows.
_ODD: Final = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
_EVEN: Final = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)
_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10


class HardSpread(SpreadDomains):
    """Filters every node by a pod's DoNotSchedule constraints (upstream: podtopologyspread/filtering.go)."""

    _codes: Codes = np.zeros(0, dtype=np.int8)

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return self._codes.nbytes + super().nbytes

    def codes(self, rows: Rows) -> Codes:
        """Return a code per row as the table is now, `(rows,) int8`."""
        if self.have_changed():
            self._codes = self._decide()
        return self._codes[rows]

    def codes_with_nominated(self, nominated: NominatedPods) -> Codes:
        """Return a code per row of `nominated`, if its pods were on it; `(rows,) int8`."""
        self.catch_up()
        codes: Codes = np.zeros(len(nominated.rows), dtype=np.int8)
        for domains in reversed(self.domains):
            here, least = domains.totals_with_nominated(nominated)
            min_match_num = _fixed_min_match_num(domains)
            skew = here + domains.constraint.self_match - (least if min_match_num is None else min_match_num)
            codes[skew > domains.constraint.max_skew] = Code.UNSCHEDULABLE
            codes[~domains.labelled[nominated.rows]] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return codes

    def reasons(self, rows: Rows) -> Sequence[Reason]:
        """Return why rows are rejected."""
        codes = self.codes(rows)
        return [
            Reason(_NO_LABEL, codes == Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
            Reason(_NOT_MATCHED, codes == Code.UNSCHEDULABLE),
        ]

    def details(self, rows: Rows) -> Iterator[Detail]:
        """Give the constraint that each row fails first, with its domain and what is in it."""
        self.codes(rows)
        left = np.ones(len(rows), dtype=np.bool_)
        for domains in self.domains:
            labelled, missing = domains.labelled[rows], LabelMissing(domains.constraint.topology_key)
            yield same_for_all(left & ~labelled, missing)
            left &= labelled
            too_full = left & _too_full(domains)[domains.ids[rows]]
            yield Detail(too_full, partial(self._skew, domains, rows))
            left &= ~too_full

    def _skew(self, domains: Domains, rows: Rows, places: NDArray[np.intp]) -> Skew:
        constraint, totals, ids = domains.constraint, domains.totals(), domains.ids[rows[places]]
        fewest = _fixed_min_match_num(domains)
        if fewest is None:
            fewest = int(totals[domains.known].min())
        emptiest = int(np.argmin(totals[ids]))
        node, pods = self.nodes.nodes[int(rows[places[emptiest]])], int(totals[ids[emptiest]])
        value = "" if node is None else (node.metadata.labels or {}).get(constraint.topology_key, "")
        lacks_domains = len(domains.known) < constraint.min_domains
        return Skew(
            topology_key=constraint.topology_key,
            value=value,
            domains=len(np.unique(ids)),
            pods=pods,
            fewest=fewest,
            skew=pods + int(constraint.self_match) - fewest,
            max_skew=constraint.max_skew,
            most_pods=int(totals[ids].max()),
            min_domains=constraint.min_domains if lacks_domains else 0,
            known_domains=len(domains.known) if lacks_domains else 0,
        )

    def _decide(self) -> Codes:
        decided: Codes | None = None
        for domains in self.domains:
            by_id = np.full(domains.limit + 1, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, dtype=np.int8)
            by_id[:-1] = _too_full(domains) * np.int8(Code.UNSCHEDULABLE)
            codes = by_id[domains.ids_or_limit]
            # The first constraint a node fails decides.
            decided = codes if decided is None else np.where(decided != 0, decided, codes)
        return np.zeros(len(self.has_all_keys), dtype=np.int8) if decided is None else decided


def _too_full(domains: Domains) -> NDArray[np.bool_]:
    """Return which domains may not take the pod, `(domains,) bool`."""
    totals, constraint = domains.totals(), domains.constraint
    min_match_num = _fixed_min_match_num(domains)
    if min_match_num is None:
        min_match_num = int(totals[domains.known].min())
    return totals + (constraint.self_match - min_match_num) > constraint.max_skew


def _fixed_min_match_num(domains: Domains) -> int | None:
    """Return the minMatchNum where it does not depend on pods; None where it is what the emptiest domain holds."""
    if len(domains.known) < domains.constraint.min_domains:
        return 0
    return None if len(domains.known) else _NO_DOMAINS


class SoftSpread(SpreadDomains):
    """The scores of a pod's ScheduleAnyway constraints (upstream: podtopologyspread/scoring.go).

    A constraint's counts weigh with the logarithm of how many domains the feasible nodes have, so no node can be scored
    without knowing all feasible ones.
    """

    def scores(self, feasible: Rows) -> Scores:
        """Return the final 0..100 scores if exactly the rows `feasible` are feasible, `(feasible,) int64`."""
        self.catch_up()
        if not self.requires_all_keys:
            return normalized(self._raw(feasible))
        ranked = self.has_all_keys[feasible]
        if ranked.all():
            return self._ranked(feasible)
        result: Scores = np.zeros(len(feasible), dtype=np.int64)
        if ranked.any():
            result[ranked] = self._ranked(feasible[ranked])
        return result

    def _ranked(self, rows: Rows) -> Scores:
        """Return the final scores of `rows`, which have all topology keys, `(rows,) int64`."""
        if len(self.domains) == 1 and len(rows):
            (domains,) = self.domains
            counts, size = _counted(domains, rows)
            highest = int(counts.max())
            lowest = int(counts.min())
            if lowest >= 0 and highest < len(rows):
                # Pods that are counted are few numbers on many nodes, so each number is scored once. Scores rise with
                # them, so the smallest and the largest number have the smallest and the largest score.
                scores = rounded(_share(domains, np.arange(lowest, highest + 1), size))
                return normalized(scores)[counts - lowest]
        return normalized(self._raw(rows))

    def _raw(self, rows: Rows) -> Scores:
        """Return the raw score of `rows`, none of which is ignored, `(rows,) int64`; float64 in upstream's order."""
        total = np.zeros(len(rows), dtype=np.float64)
        for domains in self.domains:
            share = _share(domains, *_counted(domains, rows))
            total += np.where(domains.labelled[rows], share, 0.0)
        return rounded(total)


def _counted(domains: Domains, rows: Rows) -> tuple[NDArray[np.int64], int]:
    """Return the matching pods that a constraint counts for each row, and how many domains the rows have."""
    if domains.constraint.topology_key == _HOSTNAME:
        return domains.pods_on(rows), len(rows)
    ids = domains.ids[rows]
    return domains.totals()[ids], int(np.count_nonzero(np.bincount(ids)))


def _share(domains: Domains, counts: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    share = counts.astype(np.float64) * natural_logarithm(size + 2)
    share += float(domains.constraint.max_skew - 1)
    return share


def normalized(raw: Scores) -> Scores:
    """Return 100 for the smallest raw score, less the larger they are; integers as upstream divides them."""
    highest = max(0, int(raw.max(initial=0)))
    if highest == 0:
        return np.full(len(raw), MAX_NODE_SCORE, dtype=np.int64)
    lowest = int(raw.min(initial=_INT64_MAX))
    return MAX_NODE_SCORE * (highest + lowest - raw) // highest


def rounded(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round to whole numbers, halves away from zero, as Go's math.Round."""
    whole = np.trunc(values)
    return (whole + np.where(np.abs(values - whole) >= 0.5, np.copysign(1.0, values), 0.0)).astype(np.int64)


def natural_logarithm(number: int) -> float:
    """Return the logarithm of a whole `number` of at least 1, to the last bit as Go computes it.

    C libraries round differently at times, and in spread scores a last bit can tip a rounding.
    """
    fraction, exponent = math.frexp(number)
    if fraction < math.sqrt(0.5):
        fraction, exponent = fraction * 2, exponent - 1
    f = fraction - 1
    s = f / (2 + f)
    square = s * s
    fourth = square * square
    odd = square * (_ODD[0] + fourth * (_ODD[1] + fourth * (_ODD[2] + fourth * _ODD[3])))
    even = fourth * (_EVEN[0] + fourth * (_EVEN[1] + fourth * _EVEN[2]))
    half = 0.5 * f * f
    return exponent * _LN2_HIGH - ((half - (s * (half + (odd + even)) + exponent * _LN2_LOW)) - f)
