"""What the filter and the score count: pods that the incoming pod's terms match, and terms of existing pods."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from bayplan.api.selectors import Labels
from bayplan.api.workload_objects import Namespace
from bayplan.cache.affinity_terms import AffinityTerm, Anchor, that_may_match
from bayplan.cache.incremental_view import MatchingPods
from bayplan.cache.inverted_index import InvertedIndex
from bayplan.cache.listers import Lister
from bayplan.cache.node_index import LabelColumn, NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.cache.scratch_table import ScratchTable
from bayplan.plugins.inter_pod_affinity.placed_terms import PlacedTerm, PlacedTerms, TermKind

Amounts = NDArray[np.int64]
"""An amount per row, `(capacity,) int64`; not to be written to by whoever did not make it."""

_Resolved = tuple[AffinityTerm, frozenset[str], int]
"""A term, the namespaces it selects now, and its weight."""

_KEPT_ANSWERS = 4096
_FEW_TERMS = 4

_KEPT_LABEL_BYTES = 2 * 2**20
"""What labels may take for which a counter remembers its answer: those of 2,000 pods, if they differ."""
_BYTES_PER_LABEL = 256


class ClusterView:
    """What the plugin sees of the cluster; one for each node table, shared by all pods of a profile."""

    def __init__(self, nodes: NodeTable, index: NodeIndex, namespaces: Lister[Namespace]) -> None:
        self.nodes = nodes
        self.labels = index.labels
        self.namespaces = namespaces
        self.placed = PlacedTerms(nodes)
        self._existing: WeakValueDictionary[object, ExistingPodsTerms] = WeakValueDictionary()

    def existing_terms(self, pod: PodInfo, factors: Mapping[TermKind, int]) -> "ExistingPodsTerms":
        """Return what counts terms of pods on nodes for `pod`, shared by all shapes of its namespace and labels.

        Labels that no term reads are left out on the real nodes: when one does, the pod is of another shape. On other
        tables terms may come that the shape says nothing of.
        """
        every = isinstance(self.nodes, ScratchTable)
        labels = pod.pod.metadata.labels or {} if every else self.placed.labels_read(pod)
        key = (*factors.items(), pod.namespace, frozenset(labels.items()))
        known = self._existing.get(key)
        if known is None:
            known = self._existing[key] = ExistingPodsTerms(self, pod.namespace, labels, factors)
        return known

    def namespace_labels(self, name: str) -> Labels | None:
        """Return the labels of a namespace; None if it has none or is not known."""
        namespace = self.namespaces.get(name)
        return None if namespace is None else namespace.metadata.labels


def domain_sums(column: LabelColumn, amounts: Amounts) -> NDArray[np.int64]:
    """Return the sum of `amounts` for each value of a label, `(values,) int64`; 0 at id 0, where the label is missing.

    A key and a value are what upstream calls a topologyPair.
    """
    held = np.flatnonzero(amounts)
    sums = np.zeros(len(column.values), dtype=np.int64)
    # Unlike a weighted bincount this never goes through floats.
    np.add.at(sums, column.ids[held], amounts[held])
    sums[0] = 0
    return sums


class IncomingPodTerms:
    """Counts the pods on nodes that the terms of an incoming pod match; one for each pod shape.

    With `together` a pod counts once and only if all terms match it, otherwise with the sum of the weights of those
    that do. Upstream: plugins/interpodaffinity, getIncomingAffinityAntiAffinityCounts and processExistingPod.
    """

    def __init__(
        self, cluster: ClusterView, terms: Sequence[tuple[AffinityTerm, int]], *, together: bool = False
    ) -> None:
        self._cluster = cluster
        self._terms = terms
        self._together = together
        self._selects_namespaces = any(term.selects_namespaces for term, _ in terms)
        self._namespaces_version = -1
        self._node_keys_version = -1
        self._namespaces: list[frozenset[str]] = []
        self._counters: dict[str, MatchingPods] = {}
        self._matches_all: Callable[[PodInfo], int] = lambda pod: 0
        self.topology_keys = tuple(dict.fromkeys(term.topology_key for term, _ in terms))

    @property
    def nbytes(self) -> int:
        """What the counts take."""
        return len(set(map(id, self._counters.values()))) * self._cluster.nodes.capacity * 8

    def amounts(self) -> dict[str, Amounts]:
        """Return what matches now, per topology key that some node has."""
        cluster = self._cluster
        cluster.labels.catch_up()
        self._resolve()
        if self._node_keys_version != cluster.labels.keys_version:
            self._node_keys_version = cluster.labels.keys_version
            known = [key for key in self.topology_keys if key in cluster.labels.keys]
            self._counters = self._counters_of(known)
        return {key: counter.counts() for key, counter in self._counters.items()}

    def match(self, pod: PodInfo) -> bool:
        """Return whether all terms match `pod`; only for terms that count together."""
        self._resolve()
        return bool(self._matches_all(pod))

    def keys_matching(self, pod: PodInfo) -> Iterator[str]:
        """Give the topology keys of the terms that match `pod`."""
        self._resolve()
        for (term, _), names in zip(self._terms, self._namespaces, strict=True):
            if _matches(term, names, pod):
                yield term.topology_key

    def _resolve(self) -> None:
        """Look up the namespaces that terms select by label."""
        version = self._cluster.namespaces.version if self._selects_namespaces else 0
        if version == self._namespaces_version:
            return
        self._namespaces_version = version
        namespaces = [_namespaces(term, self._cluster.namespaces) for term, _ in self._terms]
        if namespaces != self._namespaces:
            self._namespaces = namespaces
            self._node_keys_version = -1
            self._counters = {}
            if self._together:
                resolved = list(zip((term for term, _ in self._terms), namespaces, strict=True))
                self._matches_all = _remembered(
                    lambda pod: all(_matches(*each, pod) for each in resolved), [term for term, _ in resolved]
                )

    def _counters_of(self, keys: Sequence[str]) -> dict[str, MatchingPods]:
        nodes = self._cluster.nodes
        if self._together:
            counter = next(iter(self._counters.values()), None) or MatchingPods(nodes, self._matches_all)
            return dict.fromkeys(keys, counter)
        wanted = {key: self._counters.get(key) for key in keys}
        terms: dict[str, list[_Resolved]] = {key: [] for key, counter in wanted.items() if counter is None}
        for (term, weight), names in zip(self._terms, self._namespaces, strict=True):
            if term.topology_key in terms:
                terms[term.topology_key].append((term, names, weight))
        return {
            key: counter or MatchingPods(nodes, _remembered(_weight_sum(terms[key]), [term for term, *_ in terms[key]]))
            for key, counter in wanted.items()
        }


class ExistingPodsTerms:
    """Counts the terms of pods on nodes that match an incoming pod, times a factor by kind.

    One serves all pods of a namespace with these labels, whose own terms have no part in it.

    Upstream: plugins/interpodaffinity, getExistingAntiAffinityCounts and processExistingPod.
    """

    def __init__(self, cluster: ClusterView, namespace: str, labels: Labels, factors: Mapping[TermKind, int]) -> None:
        self._cluster = cluster
        self._namespace, self._labels = namespace, labels
        self._factors = {kind: factor for kind, factor in factors.items() if factor}
        self._at = -1
        self._made_for: tuple[int, int, Labels | None] | None = None
        self._matches: dict[int, bool] = {}
        self._amounts: dict[str, Amounts] = {}

    @property
    def nbytes(self) -> int:
        """What the amounts take."""
        return sum([each.nbytes for each in self._amounts.values()])

    def amounts(self) -> Mapping[str, Amounts]:
        """Return what matches now, per topology key; keys without any are left out."""
        cluster, placed = self._cluster, self._cluster.placed
        placed.catch_up()
        if not any(placed.kinds[kind] for kind in self._factors):
            self._made_for = None
            return {}
        cluster.labels.catch_up()
        made_for = (cluster.nodes.layout, cluster.labels.keys_version, cluster.namespace_labels(self._namespace))
        changes = placed.changes.since(self._at) if made_for == self._made_for else None
        self._at = placed.changes.position
        too_many = len(self._matches) > 2 * len(placed) + _KEPT_ANSWERS
        if changes is None or too_many:
            if made_for != self._made_for or too_many:
                self._matches.clear()
            self._made_for = made_for
            self._amounts.clear()
            near = placed.that_may_match(self._namespace, self._labels)
            changes = [(term, row, amount) for term in near for row, (_, amount) in term.rows.items()]
        if changes:
            self._apply(made_for[2], changes)
        return self._amounts

    def _apply(self, namespace_labels: Labels | None, changes: list[tuple[PlacedTerm, int, int]]) -> None:
        known, capacity = self._cluster.labels.keys, self._cluster.nodes.capacity
        labels, matches, touched = self._labels, self._matches, set()
        for placed, row, amount in changes:
            factor = self._factors.get(placed.kind)
            if factor is None:
                continue
            term = placed.term
            answer = matches.get(placed.number)
            if answer is None:
                answer = matches[placed.number] = term.topology_key in known and term.matches(
                    self._namespace, labels, namespace_labels
                )
            if answer:
                key = term.topology_key
                amounts = self._amounts.get(key)
                if amounts is None:
                    amounts = self._amounts[key] = np.zeros(capacity, dtype=np.int64)
                amounts[row] += factor * amount
                touched.add(key)
        for key in touched:
            if not self._amounts[key].any():
                del self._amounts[key]


def _weight_sum(terms: Sequence[_Resolved]) -> Callable[[PodInfo], int]:
    """Return what sums up the weights of the terms that match a pod; terms that need a label are found by it."""
    if len(terms) == 1:
        ((term, namespaces, weight),) = terms
        return lambda pod: weight if _matches(term, namespaces, pod) else 0
    # By their numbers: a term may be there twice.
    index: InvertedIndex[Anchor, int] = InvertedIndex()
    for number, (term, _, _) in enumerate(terms):
        index.set(number, term.anchors)

    def weight_sum(pod: PodInfo) -> int:
        found = [terms[number] for number in that_may_match(index, pod.pod.metadata.labels)]
        return sum([weight for term, namespaces, weight in found if _matches(term, namespaces, pod)])

    return weight_sum


def _matches(term: AffinityTerm, namespaces: frozenset[str], pod: PodInfo) -> bool:
    """Return whether an incoming pod's term matches a pod on a node.

    kube-scheduler looks up only the namespaces that exist when the cycle starts; an empty selector selects all.
    """
    if pod.namespace not in namespaces and not term.namespace_selector.is_everything:
        return False
    return term.selects(pod.pod.metadata.labels)


def _namespaces(term: AffinityTerm, namespaces: Lister[Namespace]) -> frozenset[str]:
    if not term.selects_namespaces:
        return term.namespaces
    selector = term.namespace_selector
    found = (each.metadata.name for each in namespaces.objects.values() if selector.matches(each.metadata.labels))
    return term.namespaces.union(found)


def _remembered(answer: Callable[[PodInfo], int], terms: Sequence[AffinityTerm]) -> Callable[[PodInfo], int]:
    """Return `answer`, called once for pods of one namespace and with equal labels, as far as `terms` read them.

    Few terms are quicker asked than remembered.
    """
    if len(terms) <= _FEW_TERMS:
        return answer
    read = frozenset[str]().union(*(term.label_keys for term in terms))
    known: RecentlyUsed[tuple[object, ...], int] = RecentlyUsed(
        _KEPT_LABEL_BYTES, lambda key, _: _BYTES_PER_LABEL * len(key)
    )

    def remembered(pod: PodInfo) -> int:
        key = (pod.namespace, *(item for item in (pod.pod.metadata.labels or {}).items() if item[0] in read))
        value = known.get(key)
        if value is None:
            value = known.put(key, answer(pod))
        return value

    return remembered
