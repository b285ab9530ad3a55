"""The soft half of topology spreading: feasible nodes rank by how few matching pods their domains hold."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.framework.interface import MAX_NODE_SCORE, Scores
from bayplan.plugins.pod_topology_spread.constraints import SpreadConstraint
from bayplan.plugins.pod_topology_spread.domains import SpreadDomains

_HOSTNAME: Final = "kubernetes.io/hostname"
_INT64_MAX: Final = 2**63 - 1

# The minimax polynomial of the FreeBSD msun library (e_log.c), which Go's math package follows.
_ODD: Final = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
_EVEN: Final = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)
_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10


class SoftSpread:
    """The scores of a pod's ScheduleAnyway constraints (upstream: podtopologyspread/scoring.go).

    A constraint's counts weigh with the logarithm of how many domains the feasible nodes have, so no node can be scored
    without knowing all feasible ones.
    """

    def __init__(
        self,
        constraints: Sequence[SpreadConstraint],
        nodes: NodeTable,
        domains: SpreadDomains,
        *,
        requires_all_keys: bool,
    ) -> None:
        self.nodes = nodes
        self._constraints = constraints
        self._domains = domains
        self._requires_all_keys = requires_all_keys

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return self._domains.nbytes

    def scores(self, feasible: Rows) -> Scores:
        """Return the final 0..100 scores if exactly the rows `feasible` are feasible, `(feasible,) int64`."""
        self._domains.catch_up()
        if not self._requires_all_keys:
            return normalized(self._raw(feasible))
        ranked = self._domains.has_all_keys[feasible]
        if ranked.all():
            return self._ranked(feasible)
        result: Scores = np.zeros(len(feasible), dtype=np.int64)
        if ranked.any():
            result[ranked] = self._ranked(feasible[ranked])
        return result

    def _ranked(self, rows: Rows) -> Scores:
        """Return the final scores of `rows`, which have all topology keys, `(rows,) int64`."""
        if len(self._constraints) == 1 and len(rows):
            counts, size = self._counted(0, rows)
            highest = int(counts.max())
            lowest = int(counts.min())
            if lowest >= 0 and highest < len(rows):
                # Pods that are counted are few numbers on many nodes, so each number is scored once. Scores rise with
                # them, so the smallest and the largest number have the smallest and the largest score.
                scores = rounded(self._share(0, np.arange(lowest, highest + 1), size))
                return normalized(scores)[counts - lowest]
        return normalized(self._raw(rows))

    def _counted(self, index: int, rows: Rows) -> tuple[NDArray[np.int64], int]:
        """Return the matching pods that a constraint counts for each row, and how many domains the rows have."""
        domains = self._domains.domains[index]
        if self._constraints[index].topology_key == _HOSTNAME:
            return domains.pods_on(rows), len(rows)
        ids = domains.ids[rows]
        return domains.totals()[ids], int(np.count_nonzero(np.bincount(ids)))

    def _share(self, index: int, counts: NDArray[np.int64], size: int) -> NDArray[np.float64]:
        share = counts.astype(np.float64) * natural_logarithm(size + 2)
        share += float(self._constraints[index].max_skew - 1)
        return share

    def _raw(self, rows: Rows) -> Scores:
        """Return the raw score of `rows`, none of which is ignored, `(rows,) int64`; float64 in upstream's order."""
        total = np.zeros(len(rows), dtype=np.float64)
        for index, domains in enumerate(self._domains.domains):
            share = self._share(index, *self._counted(index, rows))
            total += np.where(domains.labelled[rows], share, 0.0)
        return rounded(total)


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
