"""The filter and the score of InterPodAffinity for one pod shape."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.causes import BlockingPods, first_found
from bayplan.framework.interface import MAX_NODE_SCORE, Scores
from bayplan.framework.nominated_table import NominatedPods
from bayplan.plugins.inter_pod_affinity.placed_terms import TermKind, tally, weight_sums
from bayplan.plugins.inter_pod_affinity.terms import (
    Amounts,
    ClusterView,
    IncomingPodTerms,
    domain_sums,
)

_Mask = NDArray[np.bool_]


class RequiredTerms:
    """Finds the rows that required terms, of the pod and of pods on nodes, rule out.

    Upstream: plugins/interpodaffinity/filtering.go.
    """

    def __init__(self, cluster: ClusterView, pod: PodInfo) -> None:
        terms = pod.affinity_terms
        self.nodes = cluster.nodes
        self._cluster = cluster
        self._affinity = IncomingPodTerms(cluster, [(term, 1) for term in terms.required_affinity], together=True)
        self._anti = IncomingPodTerms(cluster, [(term, 1) for term in terms.required_anti_affinity])
        self._existing = cluster.existing_terms(pod, {TermKind.REQUIRED_ANTI_AFFINITY: 1})
        self._near_at: object = None
        self._added_near: _Mask = np.zeros(0, dtype=np.bool_)
        self._matches_at: object = None
        self._added_matches: Amounts = np.zeros(0, dtype=np.int64)
        self._has_own = bool(terms.required_affinity or terms.required_anti_affinity)

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return self._affinity.nbytes + self._anti.nbytes + self._existing.nbytes

    def may_reject(self, pod: PodInfo) -> bool:
        """Return whether any term may rule out a row now; terms of pods on nodes without their topology key cannot.

        Upstream: getExistingAntiAffinityCounts. If nothing can, the filter is skipped with nominated pods, too.
        """
        return self._has_own or any(_is_in_a_domain(self._cluster, each) for each in self._existing.amounts().items())

    def affinity_fails(self, pod: PodInfo, rows: Rows, more: Amounts | None = None) -> _Mask | None:
        """Return the rows without the pods that the pod must be near; None when it need not be near any.

        With `more`, `(rows,) int64`, each row counts as if it had so many matching pods more.

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
            column = self._cluster.labels.column(key)
            sums = domain_sums(column, matching)
            nobody_matches = nobody_matches and not sums.any()
            ids = column.ids[rows]
            lacking |= ids == 0
            alone |= (sums[ids] if more is None else sums[ids] + more) <= 0
        if nobody_matches and self._affinity.match(pod):
            # Where pods are added that match, the pod is not the first of its group; but then it is not alone either.
            return lacking
        return lacking | alone

    def too_near(self, rows: Rows, *, own: bool = True, theirs: bool = True) -> _Mask | None:
        """Return the rows that anti-affinity fails, the pod's `own` or `theirs` there; None when there are none."""
        counted = [self._anti_amounts()] if own else []
        if theirs:
            counted.append(self._existing.amounts())
        return self._near(rows, counted)

    def blocked_by(self, pod: PodInfo, rows: Rows, *, theirs: bool) -> BlockingPods | None:
        """Return the pods that anti-affinity, its own or `theirs`, keeps the pod away from on the first of `rows`.

        None if no pod on a node does. The other domains in which a row is blocked are counted.
        """
        first: tuple[str, int, Rows] | None = None
        domains = 0
        for key, matching in (self._existing.amounts() if theirs else self._anti_amounts()).items():
            ids, holders = self._cluster.labels.column(key).ids, np.flatnonzero(matching)
            held = np.unique(ids[holders])
            hit = np.isin(ids[rows], held[held != 0])
            if not hit.any():
                continue
            domains += len(np.unique(ids[rows[hit]]))
            if first is None and hit[0]:
                domain = int(ids[rows[0]])
                first = key, domain, holders[ids[holders] == domain]
            # A row that several keys block counts for the first of them.
            rows = rows[~hit]
            if not len(rows):
                break
        if first is None:
            return None
        key, domain, holders = first
        found = (
            other.key
            for holder in holders.tolist()
            for other in self.nodes.pods[holder].values()
            if key in (self._keys_of_theirs(pod, other) if theirs else self._anti.keys_matching(other))
        )
        value = self._cluster.labels.column(key).values[domain] or ""
        return BlockingPods(theirs, key, value, first_found(found), domains - 1)

    def added_near(self, pod: PodInfo, nominated: NominatedPods) -> _Mask:
        """The rows that anti-affinity of either side fails because of the pods added there, `(rows,) bool`."""
        cluster, own = self._cluster, pod.pod.metadata.labels
        # Pods of one shape may differ in labels that no term on a node reads, but terms of added pods may read them.
        version = (nominated, own, cluster.namespaces.version, cluster.nodes.objects_changed.position)
        if self._near_at != version:
            self._near_at = version
            keys: dict[str, list[int]] = {}
            for at, pods in enumerate(nominated.added):
                ours = {key for other in pods for key in self._anti.keys_matching(other)}
                for key in ours.union(*(self._keys_of_theirs(pod, other) for other in pods)):
                    keys.setdefault(key, []).append(at)
            self._added_near = np.zeros(len(nominated.rows), dtype=np.bool_)
            for key, places in keys.items():
                ids = self._cluster.labels.column(key).ids[nominated.rows[places]]
                self._added_near[np.array(places, dtype=np.intp)[ids != 0]] = True
        return self._added_near

    def added_matches(self, nominated: NominatedPods) -> Amounts:
        """How many of the pods added to each row are such as the pod must be near, `(rows,) int64`."""
        version = (nominated, self._cluster.namespaces.version)
        if self._matches_at != version:
            self._matches_at = version
            match = self._affinity.match if self._affinity.topology_keys else lambda pod: False
            self._added_matches = np.array([sum(map(match, pods)) for pods in nominated.added], dtype=np.int64)
        return self._added_matches

    def _keys_of_theirs(self, pod: PodInfo, other: PodInfo) -> Iterator[str]:
        """The topology keys in whose domains `other` must not have `pod` near it."""
        labels = self._cluster.namespace_labels(pod.namespace)
        for term in other.affinity_terms.required_anti_affinity:
            if term.matches(pod.namespace, pod.pod.metadata.labels, labels):
                yield term.topology_key

    def _anti_amounts(self) -> Mapping[str, Amounts]:
        return self._anti.amounts() if self._anti.topology_keys else {}

    def _near(self, rows: Rows, counted: Sequence[Mapping[str, Amounts]]) -> _Mask | None:
        """The rows in a domain where any of the amounts, none of which is below 0, is more than 0."""
        near: _Mask | None = None
        for key in dict.fromkeys(key for amounts in counted for key in amounts):
            column = self._cluster.labels.column(key)
            held = np.zeros(len(column.values), dtype=np.bool_)
            for amounts in counted:
                matching = amounts.get(key)
                if matching is not None:
                    held[column.ids[matching.nonzero()[0]]] = True
            held[0] = False
            inside = held[column.ids[rows]]
            near = inside if near is None else near | inside
        return near


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
        self.existing = cluster.existing_terms(pod, {TermKind.PREFERRED: 1, TermKind.REQUIRED_AFFINITY: hard})

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return self._own.nbytes + self.existing.nbytes

    def amounts(self, pod: PodInfo) -> dict[str, Amounts]:
        """Return what each topology key's domains are scored by, as tallies; empty when nothing is to be scored."""
        amounts: dict[str, Amounts] = {}
        if self._own.topology_keys:
            amounts.update(self._own.amounts())
        for key, others in self.existing.amounts().items():
            own = amounts.get(key)
            amounts[key] = others if own is None else own + others
        return {key: each for key, each in amounts.items() if _is_in_a_domain(self._cluster, (key, each))}

    def score(self, amounts: dict[str, Amounts], rows: Rows) -> Scores:
        """Return the raw score of each row: the sums of all domains it is in."""
        total = np.zeros(len(rows), dtype=np.int64)
        for key, each in amounts.items():
            column = self._cluster.labels.column(key)
            total += weight_sums(domain_sums(column, each))[column.ids[rows]]
        return total


def _is_in_a_domain(cluster: ClusterView, counted: tuple[str, Amounts]) -> bool:
    """Return whether a row that has an amount also has the topology key it is counted for."""
    key, amounts = counted
    return bool(cluster.labels.column(key).ids[np.flatnonzero(amounts)].any())


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
