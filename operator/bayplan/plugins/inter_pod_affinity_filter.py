"""The filter half of InterPodAffinity for one pod shape."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.placed_terms import TermKind
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.inter_pod_affinity_terms import Amounts, OthersTerms, OwnTerms, Surroundings, domain_sums

_Mask = NDArray[np.bool_]


class RequiredTerms:
    """Says which rows the required terms, of the pod and of pods on nodes, rule out.

    Upstream: plugins/interpodaffinity/filtering.go.
    """

    def __init__(self, around: Surroundings, pod: PodInfo) -> None:
        terms = pod.affinity_terms
        self.nodes = around.nodes
        self._around = around
        self._affinity = OwnTerms(around, [(term, 1) for term in terms.required_affinity], together=True)
        self._anti = OwnTerms(around, [(term, 1) for term in terms.required_anti_affinity])
        self._others = OthersTerms(around, {TermKind.REQUIRED_ANTI_AFFINITY: 1})
        self._has_own = bool(terms.required_affinity or terms.required_anti_affinity)

    def concern(self, pod: PodInfo) -> bool:
        """Whether any term may rule out a row now."""
        return self._has_own or bool(self._others.amounts(pod))

    def affinity_fails(self, pod: PodInfo, rows: Rows) -> _Mask | None:
        """The rows without the pods that the pod must be near; None when it need not be near any.

        The first pod of a group that must be near each other may go wherever the topology is known.
        """
        keys = self._affinity.topology_keys
        if not keys:
            return None
        amounts = self._affinity.amounts()
        if len(amounts) < len(keys):
            # No node has the label of some key.
            return np.ones(len(rows), dtype=np.bool_)
        lacking = np.zeros(len(rows), dtype=np.bool_)
        alone = np.zeros(len(rows), dtype=np.bool_)
        nobody_matches = True
        for key, matching in amounts.items():
            column = self._around.labels.column(key)
            sums = domain_sums(column, matching)
            nobody_matches = nobody_matches and not sums.any()
            ids = column.ids[rows]
            lacking |= ids == 0
            alone |= sums[ids] <= 0
        if nobody_matches and self._affinity.match(pod):
            return lacking
        return lacking | alone

    def anti_affinity_fails(self, rows: Rows) -> _Mask | None:
        """The rows near pods that the pod must not be near; None when there are none."""
        return self._near(rows, self._anti_amounts())

    def others_fail(self, pod: PodInfo, rows: Rows) -> _Mask | None:
        """The rows near pods that must not be near the pod; None when there are none."""
        return self._near(rows, self._others.amounts(pod))

    def too_near(self, pod: PodInfo, rows: Rows) -> _Mask | None:
        """The rows that anti-affinity of either side fails; None when there are none."""
        return self._near(rows, self._anti_amounts(), self._others.amounts(pod))

    def _anti_amounts(self) -> Mapping[str, Amounts]:
        return self._anti.amounts() if self._anti.topology_keys else {}

    def _near(self, rows: Rows, *counted: Mapping[str, Amounts]) -> _Mask | None:
        """The rows in a domain where any of the amounts, none of which is below 0, is more than 0."""
        near: _Mask | None = None
        for key in dict.fromkeys(key for amounts in counted for key in amounts):
            column = self._around.labels.column(key)
            held = np.zeros(len(column.values), dtype=np.bool_)
            for amounts in counted:
                matching = amounts.get(key)
                if matching is not None:
                    held[column.ids[matching.nonzero()[0]]] = True
            held[0] = False
            inside = held[column.ids[rows]]
            near = inside if near is None else near | inside
        return near
