"""The score half of InterPodAffinity for one pod shape."""

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import MAX_NODE_SCORE, Scores
from bayplan.plugins.inter_pod_affinity.placed_terms import TermKind, tally, weight_sums
from bayplan.plugins.inter_pod_affinity.terms import (
    Amounts,
    ClusterView,
    ExistingPodsTerms,
    IncomingPodTerms,
    domain_sums,
)


class PreferredTerms:
    """Adds up, per row, the weights of terms that the pod's placement there would meet or break.

    These are its own preferred terms, the preferred terms of pods on nodes and, with `hard_weight`, their required
    affinity. Upstream: plugins/interpodaffinity/scoring.go.
    """

    def __init__(self, cluster: ClusterView, pod: PodInfo, hard_weight: int) -> None:
        self.nodes = cluster.nodes
        self._cluster = cluster
        # Weights that cancel out are scored all the same; with a weight of 0 required terms do not count at all.
        self._own = IncomingPodTerms(cluster, [(term, tally(weight)) for term, weight in pod.affinity_terms.preferred])
        hard = tally(hard_weight) if hard_weight else 0
        self._existing = ExistingPodsTerms(cluster, {TermKind.PREFERRED: 1, TermKind.REQUIRED_AFFINITY: hard})

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return self._own.nbytes + self._existing.nbytes

    def amounts(self, pod: PodInfo) -> dict[str, Amounts]:
        """Return what each topology key's domains are scored by, as tallies; empty when nothing is to be scored."""
        amounts: dict[str, Amounts] = {}
        if self._own.topology_keys:
            amounts.update(self._own.amounts())
        for key, others in self._existing.amounts(pod).items():
            own = amounts.get(key)
            amounts[key] = others if own is None else own + others
        column = self._cluster.labels.column
        return {key: each for key, each in amounts.items() if column(key).ids[np.flatnonzero(each)].any()}

    def score(self, amounts: dict[str, Amounts], rows: Rows) -> Scores:
        """Return the raw score of each row: the sums of all domains it is in."""
        total = np.zeros(len(rows), dtype=np.int64)
        for key, each in amounts.items():
            column = self._cluster.labels.column(key)
            total += weight_sums(domain_sums(column, each))[column.ids[rows]]
        return total


def normalize(scores: Scores) -> Scores:
    """Return 0..100 between the lowest and the highest score, in kube-scheduler's order of float64 operations."""
    if not len(scores):
        return scores
    low = int(scores.min())
    spread = int(scores.max()) - low
    if spread <= 0:
        return np.zeros(len(scores), dtype=np.int64)
    share = (scores - low).astype(np.float64) / np.float64(spread)
    result: Scores = (np.float64(MAX_NODE_SCORE) * share).astype(np.int64)
    return result
